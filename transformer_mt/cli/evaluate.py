"""`tmt evaluate`: score the translations of a model, or those in a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transformer_mt.cli.answers import check_outputs, opened
from transformer_mt.cli.options import (
    STDOUT,
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
from transformer_mt.errors import TmtError
from transformer_mt.evaluation.metrics import BY_DEFAULT, METRICS

if TYPE_CHECKING:
    from transformer_mt.evaluation.report import Report

File = Path | None
_METRIC = f"This metric: {', '.join(METRICS)}; repeat it for several."
_SPLIT = "Split of the model's data, such as validation. Default: the first test set."
_SOURCE = "Sentences to translate instead of a split."
_REFERENCE = "Reference translations of --source, line by line. Repeat for several references."
_HYPOTHESIS = "Translations to score; nothing is translated."
_BASELINE = "Compare with these translations, or with this model: paired bootstrap resampling."
_TOKENIZED = "Also lowercased BLEU, and BLEU on lowercased Moses tokens as in papers."
_PUBLISHED = "Published tokenized references, such as *.lc.norm.tok.de; implies --tokenized."
_LANGUAGE = "Target language (ISO code). Default: the model's."
_OUTPUT = "Also write the translations to this file, line by line."
_PLOT = "Draw BLEU and chrF by sentence length: a .png or .svg file."
_BEAM = "Beam width; 1: greedy. Default: the model's."
_LENGTH_PENALTY = "GNMT length penalty; 0: none. Default: the model's."


def evaluate(
    bleu: Annotated[bool, typer.Option("--bleu", help="BLEU. Default: BLEU, chrF and TER.")] = False,
    chrf: Annotated[bool, typer.Option("--chrf", help="chrF.")] = False,
    ter: Annotated[bool, typer.Option("--ter", help="TER (translation edit rate).")] = False,
    metric: Annotated[list[str] | None, typer.Option("--metric", metavar="NAME", help=_METRIC)] = None,
    model: ModelsOption = None,
    to: ToOption = None,
    from_: FromOption = None,
    zero_shot: ZeroShotOption = False,
    split: Annotated[str | None, typer.Option("--split", metavar="NAME", help=_SPLIT)] = None,
    source: Annotated[File, typer.Option("--source", metavar="FILE", help=_SOURCE)] = None,
    reference: Annotated[list[Path] | None, typer.Option("--reference", metavar="FILE", help=_REFERENCE)] = None,
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
    output: Annotated[File, typer.Option("--output", "-o", metavar="FILE", help=_OUTPUT)] = None,
    json: JsonOption = False,
    plot: Annotated[File, typer.Option("--plot", metavar="FILE", help=_PLOT, parser=picture_file)] = None,
    theme: ThemeOption = "light",
) -> None:
    """Score translations: BLEU, chrF, TER, examples, significance."""
    from transformer_mt import Computing, TestFiles, Wanted, evaluate_directions
    from transformer_mt.workflows.plot import check_picture, plot_report

    one, *others = reference or (None,)
    read = [file for file in (source, one, *others, hypothesis, tokenized_reference, baseline) if file is not None]
    check_picture(plot, theme, read)
    check_outputs(read, (STDOUT, output, plot), model)
    if output is not None and hypothesis is not None:
        raise TmtError("--output writes translations, and --hypothesis has them already", remedy="Remove one of them.")
    search = {"beam": beam, "length_penalty": length_penalty, "samples": samples, "utility": utility}
    with opened(output) if output is not None else nullcontext() as stream:
        reports = evaluate_directions(
            model or (),
            split=split,
            files=TestFiles(source, one, hypothesis, tokenized_reference, others),
            baseline=baseline,
            metrics=["bleu"] * bleu + ["chrf"] * chrf + ["ter"] * ter + (metric or []) or BY_DEFAULT,
            tokenized=tokenized,
            language=language,
            search={"method": "mbr" if mbr else None, **search},
            computing=Computing(device=device, threads=threads, scored=False, weights=weights),
            wanted=Wanted(to, from_, zero_shot),
            several=plot is None and output is None,
        )
        first = _print(reports, json)
        if stream is not None:  # after the scores, which a full disk then does not cost
            stream.write("".join(f"{line}\n" for line in first.hypotheses).encode("utf-8", "replace"))
    if plot is not None:
        print(f"tmt: wrote {plot_report(first, plot, theme)}", file=sys.stderr)


def _print(reports: Mapping[str, Report], json: bool) -> Report:
    """Print the only report, or a table of several directions; the first one."""
    from transformer_mt.evaluation.report import as_json, as_text, directions_as_json, directions_as_text

    first, *others = reports.values()
    with suppress(BrokenPipeError):  # the reader may have gone; the translations are written all the same
        if json:
            print_json(directions_as_json(reports) if others else as_json(first))
        else:
            print(directions_as_text(reports) if others else as_text(first))
    return first
