"""`tmt inspect`: every parameter and every shape of a model, with or without data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transformer_mt.cli.options import JsonOption, ModelOption, SetOption, print_json

if TYPE_CHECKING:
    from transformer_mt.config.schema import Config
    from transformer_mt.model.transformer import Transformer
    from transformer_mt.workflows.inspect import ParameterRow, ShapeRow

VocabularySize = Annotated[
    int | None,
    typer.Option(min=1, max=10_000_000, metavar="N", help="Size of the vocabulary; with both, no data is needed."),
]


def inspect(
    config: Annotated[Path | None, typer.Option("--config", "-c", help="YAML config of a run.")] = None,
    model: ModelOption = None,
    source_vocab: VocabularySize = None,
    target_vocab: VocabularySize = None,
    shapes: Annotated[bool, typer.Option("--shapes", help="Also walk a batch through, and show each shape.")] = False,
    json: JsonOption = False,
    set_: SetOption = None,
) -> None:
    """List every parameter with its shape and count; with --shapes, every tensor on the way of a batch."""
    from transformer_mt.cli.inspect_tables import parameter_lines, shape_lines
    from transformer_mt.workflows.inspect import example_batch, parameter_table, walk_of_shapes

    if config is None:
        built = _shipped(model, source_vocab or target_vocab or set_)
    else:
        built = _described(config, model, set_, source_vocab, target_vocab)
    rows = parameter_table(built)
    steps = walk_of_shapes(built, *example_batch(built)) if shapes else None
    if json:
        print_json(_as_json(rows, steps))
        return
    print("\n".join(parameter_lines(rows)))
    if steps is not None:
        print("\n".join(["", *shape_lines(built, steps)]))


def _shipped(folder: Path | None, config_option: object) -> Transformer:
    """The model of a model directory, weights and all."""
    from transformer_mt.cli.models import find_model
    from transformer_mt.decoding.model_directory import load_model_directory
    from transformer_mt.errors import TmtError

    if config_option:
        raise TmtError(
            "--source-vocab, --target-vocab and --set go with --config; a trained model is what it is",
            remedy="Give --config C, or leave these options out.",
        )
    return load_model_directory(find_model(folder)).model


def _described(
    file: Path, model: Path | None, overrides: list[str] | None, source_vocab: int | None, target_vocab: int | None
) -> Transformer:
    """The model a config describes, on the device `meta`: all shapes, no memory."""
    import torch

    from transformer_mt.config.load import load_config
    from transformer_mt.errors import TmtError
    from transformer_mt.kernels.build import build_model

    if model is not None:
        raise TmtError("--config and --model exclude each other", remedy="Give one of them.")
    config = load_config(file, overrides or ())
    sizes = _vocabulary_sizes(config, file, source_vocab, target_vocab)
    with torch.device("meta"):
        return build_model(config, *sizes, device="meta")


def _vocabulary_sizes(config: Config, file: Path, source: int | None, target: int | None) -> tuple[int, int]:
    """As given; else as prepared from this config; else as they are configured, where that tells."""
    from transformer_mt.errors import TmtError

    if config.has_shared_vocabulary:
        source, target = source or target, target or source
        if source != target:
            raise TmtError(
                f"both languages share one vocabulary, which cannot have {source} and {target} tokens",
                place=file,
                remedy="Give one size, or set tokenizer.shared: false.",
            )
    if source and target:
        return source, target
    prepared = _prepared_sizes(config)
    source = source or prepared[0] or config.source_tokenizer.size
    target = target or prepared[1] or config.target_tokenizer.size
    if source and target:
        return source, target
    raise TmtError(
        "the sizes of the vocabularies are not known before the data is prepared",
        place=file,
        remedy=f"Give --source-vocab N --target-vocab N, or run `tmt prepare --config {file}` first.",
    )


def _prepared_sizes(config: Config) -> tuple[int | None, int | None]:
    """Of the vocabularies that lie prepared; None where they are of other data or other tokenizers."""
    from transformer_mt.data.prepared import open_prepared
    from transformer_mt.errors import TmtError

    try:
        source, target = open_prepared(config).codecs()
    except TmtError:
        return None, None
    return len(source), len(target)


def _as_json(rows: list[ParameterRow], steps: list[ShapeRow] | None) -> dict[str, object]:
    from transformer_mt.workflows.inspect import count_parts

    tensors = [
        {"name": row.name, "shape": row.shape, "count": row.count, "trainable": row.trainable}
        | ({"aliases": row.aliases} if row.aliases else {})
        for row in rows
    ]
    totals = {"total": sum(row.count for row in rows), "trainable": sum(row.count for row in rows if row.trainable)}
    value: dict[str, object] = {"parameters": totals, "parts": count_parts(rows), "tensors": tensors}
    if steps is not None:
        value["shapes"] = [
            {"module": step.path, "name": step.name, "letters": step.letters, "shape": step.shape} for step in steps
        ]
    return value
