"""`tmt inspect`: all parameters and tensor shapes of a model, with or without data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transformer_mt.cli.completion import config_files
from transformer_mt.cli.options import JsonOption, ModelOption, SetOption, print_json
from transformer_mt.errors import TmtError

if TYPE_CHECKING:
    from transformer_mt.workflows.inspect import ParameterRow, ShapeRow

_CONFIG = "YAML config; needs no trained model."
VocabularySize = Annotated[
    int | None,
    typer.Option(min=1, max=10_000_000, metavar="N", help="Vocabulary size; if both are given, no data is needed."),
]


def inspect(
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help=_CONFIG, autocompletion=config_files)
    ] = None,
    model: ModelOption = None,
    source_vocab: VocabularySize = None,
    target_vocab: VocabularySize = None,
    shapes: Annotated[bool, typer.Option("--shapes", help="Also show the shape of every tensor.")] = False,
    json: JsonOption = False,
    set_: SetOption = None,
) -> None:
    """List the parameters of a model with their shapes and counts."""
    from transformer_mt.cli.inspect_tables import parameter_lines, shape_lines
    from transformer_mt.workflows import inspect as work

    if config is not None and model is not None:
        raise TmtError("--config and --model cannot be combined", remedy="Give one of them.")
    if config is None and (source_vocab or target_vocab or set_):
        raise TmtError(
            "--source-vocab, --target-vocab and --set need --config: they cannot change a trained model",
            remedy="Give --config FILE, or remove these options.",
        )
    if config is None:
        built, data = work.shipped_model(model)
    else:
        built, data = work.described_model(config, set_ or (), source_vocab, target_vocab)
    rows = work.parameter_table(built)
    steps = work.walk_of_shapes(built, *work.example_batch(built)) if shapes else None
    if json:
        tagged = {"directions": list(map(str, data.all_directions)), "tags": data.tags} if data.tags else {}
        print_json({**tagged, **_as_json(rows, work.count_parts(rows), steps)})
        return
    if data.tags:
        print(f"directions  {data.direction}\ntags        {', '.join(data.tags)}\n")
    print("\n".join(parameter_lines(rows, work.count_parts(rows))))
    if steps is not None:
        layers = {"encoder": len(built.encoder.layers), "decoder": len(built.decoder.layers)}
        print("\n".join(["", *shape_lines(layers, steps)]))


def _as_json(rows: list[ParameterRow], parts: dict[str, int], steps: list[ShapeRow] | None) -> dict[str, object]:
    tensors = [
        {"name": row.name, "shape": row.shape, "count": row.count, "trainable": row.trainable}
        | ({"aliases": row.aliases} if row.aliases else {})
        for row in rows
    ]
    totals = {"total": sum(row.count for row in rows), "trainable": sum(row.count for row in rows if row.trainable)}
    value: dict[str, object] = {"parameters": totals, "parts": parts, "tensors": tensors}
    if steps is not None:
        value["shapes"] = [
            {"module": step.path, "name": step.name, "letters": step.letters, "shape": step.shape} for step in steps
        ]
    return value
