"""`tmt export`: convert a model for CTranslate2, and check that it translates as before."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transformer_mt.cli.completion import quantizations
from transformer_mt.cli.options import (
    FromOption,
    JsonOption,
    ModelOption,
    ThreadsOption,
    ToOption,
    ZeroShotOption,
    print_json,
)

if TYPE_CHECKING:
    from transformer_mt.workflows.export import ExportReport

_QUANTIZATION = "Type of the weights: float32, float16, bfloat16, int16, int8, int8_float32, ..."
_INPUT = "Sentences to compare. Default: the validation split."
_REFERENCE = "Reference translations of --input, for BLEU."


def export(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write.", show_default=False)],
    model: ModelOption = None,
    format_: Annotated[str, typer.Option("--format", metavar="NAME", help="Format: ctranslate2.")] = "ctranslate2",
    quantization: Annotated[
        str, typer.Option(metavar="TYPE", help=_QUANTIZATION, autocompletion=quantizations)
    ] = "float32",
    sample: Annotated[int, typer.Option(min=1, metavar="N", help="Number of sentences to compare.")] = 200,
    input_: Annotated[Path | None, typer.Option("--input", "-i", metavar="FILE", help=_INPUT)] = None,
    reference: Annotated[Path | None, typer.Option(metavar="FILE", help=_REFERENCE)] = None,
    to: ToOption = None,
    from_: FromOption = None,
    zero_shot: ZeroShotOption = False,
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Convert a model for CTranslate2, and compare the two on a sample."""
    from transformer_mt.workflows import export as workflow

    report = workflow.export(
        output,
        model,
        format_=format_,
        quantization=quantization,
        sample=sample,
        source=input_,
        reference=reference,
        threads=threads,
        wanted=workflow.Wanted(to, from_, zero_shot),
    )
    if json:
        print_json(asdict(report))
    else:
        print(_table(output, report))


def _table(output: Path, report: ExportReport) -> str:
    size = sum(file.stat().st_size for file in output.rglob("*") if file.is_file()) / 1e6
    titles = f"{'BLEU tmt':>8} {'exported':>8} {'change':>7}   {'sentences/s tmt':>15} {'exported':>8}"
    lines = [f"{output}: CTranslate2, {report.quantization}, {size:.1f} MB", f"{'search':<8} {'equal':>7}   {titles}"]
    for one in report.searches:
        search = "greedy" if one.beam == 1 else f"beam {one.beam}"
        bleu = "{tmt:8.2f} {ctranslate2:8.2f} {difference:+7.2f}".format(**one.bleu) if one.bleu else f"{'-':>25}"
        ours, theirs = one.sentences_per_second.values()
        faster = f"({theirs / ours:.1f} x)"
        lines.append(f"{search:<8} {one.equal:7.1%}   {bleu}   {ours:15,.0f} {theirs:8,.0f} {faster}")
    if any(one.equal < 1 for one in report.searches):
        why = "" if report.quantization == "float32" else f"; {report.quantization} rounds the weights, so words change"
        lines.append(f"equal: the same text, of {report.sentences} sentences{why}. BLEU says if they became worse")
    return "\n".join(lines)
