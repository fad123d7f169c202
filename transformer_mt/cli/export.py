"""`tmt export`: a trained model for another program, proved to translate as before."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transformer_mt.cli.options import JsonOption, ModelOption, ThreadsOption, print_json

if TYPE_CHECKING:
    from transformer_mt.decoding.model_directory import ModelDirectory


def export(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.", show_default=False)],
    model: ModelOption = None,
    format_: Annotated[str, typer.Option("--format", help="The format: ctranslate2.")] = "ctranslate2",
    quantization: Annotated[
        str,
        typer.Option(help="Numbers of the weights: float32, float16, bfloat16, int16, int8, int8_float32 and so on."),
    ] = "float32",
    sample: Annotated[int, typer.Option(min=1, help="Sentences to compare the two engines on.")] = 200,
    input_: Annotated[
        Path | None, typer.Option("--input", "-i", help="Compare on these sentences. Default: the validation split.")
    ] = None,
    reference: Annotated[Path | None, typer.Option(help="Translations of --input by people, for BLEU.")] = None,
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Turn a model into a CTranslate2 folder, and compare the two on a sample before reporting success."""
    from transformer_mt.cli.models import find_model
    from transformer_mt.decoding.model_directory import load_model_directory
    from transformer_mt.export.ctranslate2 import export as write
    from transformer_mt.export.ctranslate2 import refuse_foreign, require_ctranslate2

    _check_options(format_, quantization, input_, reference)
    require_ctranslate2()
    refuse_foreign(output)
    directory = load_model_directory(find_model(model))
    lines, references = _sample(directory, sample, input_, reference)
    rows: list[dict[str, Any]] = []

    def prove(written: Path) -> None:
        rows.extend(_compared(directory, written, lines, references, threads))
        _require_agreement(output, quantization, rows)

    write(directory, output, quantization, prove)
    if json:
        print_json({"folder": str(output), "quantization": quantization, "sentences": len(lines), "searches": rows})
    else:
        print(_table(output, quantization, rows))


def _check_options(format_: str, quantization: str, input_: Path | None, reference: Path | None) -> None:
    from transformer_mt.errors import TmtError
    from transformer_mt.export.ctranslate2 import QUANTIZATIONS

    if format_ != "ctranslate2":
        raise TmtError(f"'{format_}' is no format", place="--format", remedy="Use ctranslate2.")
    if quantization not in QUANTIZATIONS:
        remedy = f"Use one of {', '.join(QUANTIZATIONS)}."
        raise TmtError(f"'{quantization}' is no quantization", place="--quantization", remedy=remedy)
    if reference is not None and input_ is None:
        raise TmtError("--reference has no --input to belong to", remedy="Add --input FILE.")


def _sample(
    directory: ModelDirectory, count: int, input_: Path | None, reference: Path | None
) -> tuple[list[str], list[str]]:
    """Sentences to compare on, with their references where these are known."""
    from transformer_mt.data.prepared import open_prepared, prepared_folder
    from transformer_mt.errors import TmtError
    from transformer_mt.evaluation.scores import check_parallel
    from transformer_mt.export.agreement import made_up_lines
    from transformer_mt.files.lines import lines_of
    from transformer_mt.text.vocabulary import MARKS

    sources, references = lines_of(input_) if input_ else [], lines_of(reference) if reference else []
    data = directory.config.data
    prepared, why = prepared_folder(directory.config), "no validation data here"
    if input_ is None and prepared.is_dir():
        try:
            sources, references = open_prepared(directory.config).raw("validation")
        except TmtError as error:
            why = f"{error.place}: {error.message}"
    if references:
        check_parallel(sources, str(input_ or prepared), references, str(reference or prepared))
    if input_ is not None and not any(line.strip() for line in sources):
        raise TmtError("this file holds no sentence", place=input_, remedy="Give a file of sentences, one a line.")
    if not sources:
        print(f"tmt: {why}; comparing on sentences of random tokens", file=sys.stderr)
        tokens = directory.source.vocabulary.tokens[len(MARKS) :]
        sources = made_up_lines(tokens, directory.source.segmenter.detokenize, count, min(20, data.max_length - 1))
    return sources[:count], references[:count]


def _compared(
    directory: ModelDirectory, exported: Path, lines: Sequence[str], references: Sequence[str], threads: int | None
) -> list[dict[str, Any]]:
    """Greedy, and with the model's own beam: one row each."""
    import torch

    from transformer_mt.decoding.translator import Translator
    from transformer_mt.evaluation.scores import score
    from transformer_mt.export.agreement import compare
    from transformer_mt.export.ctranslate2 import load_engine
    from transformer_mt.runtime.device import keep_freed_memory

    keep_freed_memory()
    if threads is not None:
        torch.set_num_threads(threads)
    own = directory.config.decoding
    shared: dict[str, Any] = {"method": "beam", "coverage_penalty": 0.0, "min_length_ratio": 0.0, "no_repeat_ngram": 0}
    if any(getattr(own, key) != value for key, value in shared.items()):
        print("tmt: compared by plain beam search; the two cannot agree on the config's", file=sys.stderr)
    rows: list[dict[str, Any]] = []
    for beam in (1, own.beam if own.beam > 1 else 5):
        decoding = own.model_copy(update={**shared, "beam": beam, "n_best": 1})
        print(f"tmt: translating {len(lines)} sentences with both, beam {beam}", file=sys.stderr)
        engine = load_engine(exported, decoding, threads or torch.get_num_threads())
        result = compare(Translator([directory], decoding), engine, lines)
        row: dict[str, Any] = {"beam": beam, "equal": result.share, "bleu": None}
        if references:
            language = directory.config.data.target
            both = [score(list(side), references, language, ("bleu",))["bleu"] for side in (result.ours, result.theirs)]
            bleu = [one.value for one in both]
            row["bleu"] = {"tmt": bleu[0], "ctranslate2": bleu[1], "difference": bleu[1] - bleu[0]}
        seconds = {"tmt": result.our_seconds, "ctranslate2": result.their_seconds}
        row["sentences_per_second"] = {name: len(lines) / value for name, value in seconds.items()}
        rows.append(row)
    return rows


def _table(output: Path, quantization: str, rows: Sequence[dict[str, Any]]) -> str:
    size = sum(file.stat().st_size for file in output.rglob("*") if file.is_file()) / 1e6
    titles = f"{'BLEU tmt':>8} {'exported':>8} {'change':>7}   {'sentences/s tmt':>15} {'exported':>8}"
    lines = [f"{output}: CTranslate2, {quantization}, {size:.1f} MB", f"{'search':<8} {'equal':>7}   {titles}"]
    for row in rows:
        search = "greedy" if row["beam"] == 1 else f"beam {row['beam']}"
        bleu = "{tmt:8.2f} {ctranslate2:8.2f} {difference:+7.2f}".format(**row["bleu"]) if row["bleu"] else f"{'-':>25}"
        ours, theirs = row["sentences_per_second"].values()
        faster = f"({theirs / ours:.1f} x)"
        lines.append(f"{search:<8} {row['equal']:7.1%}   {bleu}   {ours:15,.0f} {theirs:8,.0f} {faster}")
    return "\n".join(lines)


def _require_agreement(output: Path, quantization: str, rows: Sequence[dict[str, Any]]) -> None:
    """Fewer bits may change translations; float32 must not. Raises TmtError where it does, a defect of ours."""
    from transformer_mt.errors import TmtError
    from transformer_mt.export.agreement import ENOUGH

    alike = ", ".join(f"beam {row['beam']} {row['equal']:.1%}" for row in rows)
    if quantization == "float32" and min(row["equal"] for row in rows) < ENOUGH:
        raise TmtError(
            f"VERIFICATION FAILED: of the sentences are translated alike, by {alike}, not {ENOUGH:.0%}",
            place=output,
            remedy="Nothing was written. Please report this with the model's config.yaml.",
            exit_code=1,
        )
