"""`tmt evaluate`: score the translations of a model, or those in a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from transformer_mt.cli.options import (
    DeviceOption,
    FromOption,
    JsonOption,
    MbrOption,
    ModelsOption,
    SamplesOption,
    ThemeOption,
    ThreadsOption,
    ToOption,
    UtilityOption,
    WeightsOption,
    ZeroShotOption,
    picture_file,
    print_json,
)

File = Path | None
_SPLIT = "Split of the model's data, such as validation. Default: the first test set."
_SOURCE = "Sentences to translate instead of a split."
_REFERENCE = "Reference translations of --source, line by line."
_HYPOTHESIS = "Translations to score; nothing is translated."
_BASELINE = "Compare with these translations, or with this model: paired bootstrap resampling."
_TOKENIZED = "Also lowercased BLEU, and BLEU on lowercased Moses tokens as in papers."
_PUBLISHED = "Published tokenized references for --tokenized, such as *.lc.norm.tok.de."
_LANGUAGE = "Target language (ISO code). Default: the model's."
_PLOT = "Draw BLEU and chrF by sentence length: a .png or .svg file."
_BEAM = "Beam width; 1: greedy. Default: the model's."
_LENGTH_PENALTY = "GNMT length penalty; 0: none. Default: the model's."


def evaluate(
    bleu: Annotated[bool, typer.Option("--bleu", help="BLEU. Default: BLEU, chrF and TER.")] = False,
    chrf: Annotated[bool, typer.Option("--chrf", help="chrF.")] = False,
    ter: Annotated[bool, typer.Option("--ter", help="TER (translation edit rate).")] = False,
    model: ModelsOption = None,
    to: ToOption = None,
    from_: FromOption = None,
    zero_shot: ZeroShotOption = False,
    split: Annotated[str | None, typer.Option("--split", metavar="NAME", help=_SPLIT)] = None,
    source: Annotated[File, typer.Option("--source", metavar="FILE", help=_SOURCE)] = None,
    reference: Annotated[File, typer.Option("--reference", metavar="FILE", help=_REFERENCE)] = None,
    hypothesis: Annotated[File, typer.Option("--hypothesis", metavar="FILE", help=_HYPOTHESIS)] = None,
    baseline: Annotated[File, typer.Option("--baseline", metavar="PATH", help=_BASELINE)] = None,
    tokenized: Annotated[bool, typer.Option("--tokenized", help=_TOKENIZED)] = False,
    tokenized_reference: Annotated[File, typer.Option("--tokenized-reference", metavar="FILE", help=_PUBLISHED)] = None,
    language: Annotated[str | None, typer.Option("--language", metavar="CODE", help=_LANGUAGE)] = None,
    beam: Annotated[int | None, typer.Option("--beam", min=1, metavar="N", help=_BEAM)] = None,
    length_penalty: Annotated[float | None, typer.Option("--length-penalty", metavar="X", help=_LENGTH_PENALTY)] = None,
    mbr: MbrOption = False,
    samples: SamplesOption = None,
    utility: UtilityOption = None,
    device: DeviceOption = "auto",
    weights: WeightsOption = "float32",
    threads: ThreadsOption = None,
    json: JsonOption = False,
    plot: Annotated[File, typer.Option("--plot", metavar="FILE", help=_PLOT, parser=picture_file)] = None,
    theme: ThemeOption = "light",
) -> None:
    """Score translations: BLEU, chrF, TER, examples, significance."""
    from transformer_mt import Computing, TestFiles, Wanted
    from transformer_mt import evaluate_directions as work
    from transformer_mt.evaluation.report import as_json, as_text, directions_as_json, directions_as_text
    from transformer_mt.workflows.plot import check_picture, plot_report

    check_picture(plot, theme, (source, reference, hypothesis, tokenized_reference, baseline))
    wanted = [name for name, is_wanted in (("bleu", bleu), ("chrf", chrf), ("ter", ter)) if is_wanted]
    search = {"beam": beam, "length_penalty": length_penalty, "samples": samples, "utility": utility}
    search["method"] = "mbr" if mbr else None
    reports = work(
        model or (),
        split=split,
        files=TestFiles(source, reference, hypothesis, tokenized_reference),
        baseline=baseline,
        metrics=wanted or ("bleu", "chrf", "ter"),
        tokenized=tokenized,
        language=language,
        search=search,
        computing=Computing(device=device, threads=threads, scored=False, weights=weights),
        wanted=Wanted(to, from_, zero_shot),
        several=plot is None,
    )
    first, *others = reports.values()
    if json:
        print_json(directions_as_json(reports) if others else as_json(first))
    else:
        print(directions_as_text(reports) if others else as_text(first))
    if plot is not None:  # last: a full disk then costs the picture, not the scores
        print(f"tmt: wrote {plot_report(first, plot, theme)}", file=sys.stderr)
