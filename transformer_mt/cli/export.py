"""`tmt export`: convert a model for CTranslate2, and check that it translates as before."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

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
        print(report.table)
