"""Pictures of runs, of prepared data, and of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from transformer_mt.config.load import ConfigLike, Overrides, config_of
from transformer_mt.data.prepared import open_prepared
from transformer_mt.data.store import SIDES, Side
from transformer_mt.errors import TmtError
from transformer_mt.evaluation.report import Report, span_of
from transformer_mt.files.lines import path_of, paths_of
from transformer_mt.reporting.canvas import Theme, check_theme, check_writable
from transformer_mt.reporting.curves import draw_run, draw_runs
from transformer_mt.reporting.distributions import plot_data, plot_scores
from transformer_mt.text.vocabulary import MARKS
from transformer_mt.workflows.models import default_model

COMPARISON = Path("learning-curves.png")
_CHUNK = 1 << 22  # ids that are counted at once


def plot(
    runs: str | Path | Sequence[str | Path] = (),
    config: ConfigLike | None = None,
    overrides: Overrides = (),
    output: str | Path | None = None,
    theme: Theme = "light",
) -> list[Path]:
    """Draw the learning curves of runs, or the prepared data of a config; return the files. Without both: the last run.

    runs:   folders. One without `output`: each curve as a PNG in its `plots` folder; several: loss and BLEU of all in
            one picture
    output: PNG or SVG, by its ending
    Raises TmtError if a run has no metrics yet, or the data is not prepared.
    """
    check_theme(theme)
    runs, output = paths_of(runs), None if output is None else path_of(output)
    if config is None and not overrides:
        return plot_runs(runs or [default_model().parent], output, theme)
    if not runs and config is not None:
        return plot_prepared(config, overrides, output, theme)
    if overrides and config is None:
        raise TmtError("--set needs --config", remedy="Remove --set: a run keeps the settings it was trained with.")
    raise TmtError(
        "--run and --config cannot be combined",
        remedy="For a run:  tmt plot --run runs/NAME      For prepared data:  tmt plot --config C",
    )


def plot_runs(runs: Sequence[Path], output: Path | None = None, theme: Theme = "light") -> list[Path]:
    """Draw the learning curves of one run or several; return the files.

    One run without `output`: each curve as a PNG in its `plots` folder. Otherwise loss and BLEU of all runs in one
    picture, `output` or ./learning-curves.png. Raises TmtError if a run has no metrics yet.
    """
    if len(runs) == 1 and output is None:
        return draw_run(runs[0], theme)
    return [draw_runs(runs, output or COMPARISON.absolute(), theme)]


def plot_prepared(
    config: ConfigLike, overrides: Overrides = (), output: Path | None = None, theme: Theme = "light"
) -> list[Path]:
    """Draw sentence lengths and vocabulary of the prepared training data; return the files.

    Without `output`: two PNG files in `plots` of the prepared data; otherwise both panels in one picture.
    Raises TmtError if the data is not prepared.
    """
    prepared = open_prepared(config_of(config, overrides))
    lengths, store = prepared.lengths(), prepared.store("train")
    languages = prepared.report.languages
    sides = zip(SIDES, (store.source, store.target), strict=True)
    frequencies = {f"{name} ({languages[name]})": _frequencies(side) for name, side in sides}
    if output is not None:
        return [plot_data(lengths, frequencies, output, theme)]
    vocabulary = prepared.picture.with_name("vocabulary.png")
    return [plot_data(lengths, None, prepared.picture, theme), plot_data(None, frequencies, vocabulary, theme)]


def plot_report(report: Report, file: Path, theme: Theme = "light") -> Path:
    """Draw BLEU and chrF by the length of the reference."""
    rows = [(span_of(one), one.sentences, one.bleu, one.chrf) for one in report.buckets]
    return plot_scores(rows, f"Score by sentence length: {report.name}", file, theme)


def check_picture(file: Path | None, theme: Theme, read: Sequence[Path | None] = ()) -> None:
    """Raises TmtError if `plot_report` cannot write this file: before the long work that is to be drawn.

    file: None to draw nothing; `theme` must then be `light`. read: files that must not be replaced
    """
    if file is not None:
        if file.is_file() and any(one.exists() and one.samefile(file) for one in read if one is not None):
            raise TmtError("this file would be replaced by the picture", place=file, remedy="Name another file.")
        check_writable(file)
    elif theme != "light":
        raise TmtError("--theme needs --plot", remedy="Add a file to draw in:  --plot scores.png")


def _frequencies(side: Side) -> list[int]:
    """How often each vocabulary entry occurs; marks such as </s> are left out."""
    counts = np.zeros(0, dtype=np.int64)
    for start in range(0, len(side.ids), _CHUNK):  # bincount makes a copy of eight bytes per id
        more = np.bincount(side.ids[start : start + _CHUNK], minlength=len(counts))
        more[: len(counts)] += counts
        counts = more
    found: list[int] = counts[len(MARKS) :].tolist()
    return found
