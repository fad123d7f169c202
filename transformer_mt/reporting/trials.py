"""The trials of a search as a picture: their validations side by side, and the best one so far over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_mt.errors import number_of
from transformer_mt.reporting.canvas import PLAIN, Theme, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES = (9.0, 4.4)
_ABOVE: dict[str, Any] = {"linestyle": "", "marker": "^", "color": "C3"}  # a score that is outside of the picture


@dataclass(frozen=True)
class TrialCurve:
    """Scores by the number of the validation, and the minutes since the start of the search when each was measured."""

    number: int
    scores: Mapping[int, float]
    minutes: Mapping[int, float]


def draw_trials(
    trials: Sequence[TrialCurve], best: int | None, measure: str, file: Path, theme: Theme = "light"
) -> Path:
    """Draw all trials. best: its number; measure: loss or bleu. Raises TmtError if the file cannot be written."""
    title = "Validation loss" if measure == "loss" else "Validation BLEU, greedy search"
    description = number_of(len(trials), "trial") + (f", the best is trial {best}" if best is not None else "")
    with canvas(file, _INCHES, theme, title=f"{title} of each trial", description=description) as figure:
        grid = figure.add_gridspec(1, 2, left=0.075, right=0.975, wspace=0.2, bottom=0.14, top=0.88)
        first = figure.add_subplot(grid[0], title=f"{title} of each trial")
        second = figure.add_subplot(grid[1], title="Best so far; a dot is a validation", sharey=first)
        low, top = _limits(trials, measure)
        above = [(one, number) for one in trials for number, score in one.scores.items() if score > top]
        _draw_trials(first, trials, best, len(above))
        _draw_best_so_far(second, trials, measure)
        if above:
            first.set_ylim(low, top)
            minutes = [one.minutes[number] for one, number in above if number in one.minutes]
            for axes, places in ((first, [number for _, number in above]), (second, minutes)):
                axes.plot(places, [top] * len(places), **_ABOVE, clip_on=False, zorder=3)
    return file


def _limits(trials: Sequence[TrialCurve], measure: str) -> tuple[float, float]:
    """Where the axis of the scores begins and ends: below the highest fifth of the losses, which may be far above."""
    scores = sorted(score for trial in trials for score in trial.scores.values())
    room = scores[int(0.8 * len(scores))] - scores[0] if measure == "loss" and len(scores) > 5 else 0.0
    return (scores[0] - 0.05 * room, scores[0] + 1.15 * room) if room else (-math.inf, math.inf)


def _draw_trials(axes: Axes, trials: Sequence[TrialCurve], best: int | None, above: int) -> None:
    from matplotlib import rcParams
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    others = rcParams["axes.edgecolor"]
    for trial in sorted(trials, key=lambda trial: trial.number == best):
        is_best = trial.number == best
        style = {"linewidth": 2.2, "color": "C1"} if is_best else {"linewidth": 1.0, "color": others, "alpha": 0.75}
        axes.plot(list(trial.scores), list(trial.scores.values()), marker=".", **style)
    axes.set_xlabel("validation", fontsize=PLAIN)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    lines = [Line2D([], [], color="C1", linewidth=2.2), Line2D([], [], color=others, linewidth=1.0)]
    named = [f"trial {best}, the best", "other trials"] if best is not None else []
    if above and named:
        lines.append(Line2D([], [], **_ABOVE))
        named.append(f"above: {number_of(above, 'validation')}")
    axes.legend(lines, named, loc="best", fontsize=PLAIN)


def _draw_best_so_far(axes: Axes, trials: Sequence[TrialCurve], measure: str) -> None:
    points = sorted(
        (trial.minutes[number], score, trial.number)
        for trial in trials
        for number, score in trial.scores.items()
        if number in trial.minutes
    )
    better = max if measure == "bleu" else min
    minutes, scores = list[float](), list[float]()
    for at, score, _ in points:
        minutes.append(at)
        scores.append(better(score, scores[-1]) if scores else score)
    axes.plot([at for at, _, _ in points], [score for _, score, _ in points], ".", color="C0", alpha=0.45)
    axes.step(minutes, scores, where="post", color="C1", linewidth=2.2)
    axes.set_xlabel("minutes of the search", fontsize=PLAIN)
    axes.set_xlim(left=0)
