"""Pictures: learning curves and lengths of sentences. Knows numbers; no model, no data."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_mt.errors import TmtError
from transformer_mt.reporting.canvas import BLUE, GREEN, ORANGE, PURPLE, canvas, drawable
from transformer_mt.reporting.history import Record, points, read_history

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES = (8.0, 4.5)
_FEW = 60  # up to so many points, each gets a dot


def plot_run(run: Path) -> list[Path]:
    """Draw the curves of a run in its `plots` folder; as `plot_curves`. Raises TmtError if there is no such folder."""
    if not run.is_dir():
        raise TmtError("no such run folder", place=run, remedy="Check the path; `ls runs` lists yours.")
    return plot_curves(run / "metrics.jsonl", run / "plots")


def plot_curves(metrics_file: Path, folder: Path) -> list[Path]:
    """Draw loss, BLEU, learning rate and speed, as far as they were measured; return the PNG files in `folder`.

    Raises TmtError if there is no metrics file, or nothing in it yet.
    """
    records = read_history(metrics_file)
    drawn = [
        _loss(records, folder / "loss.png"),
        _curve(points(records, "validation", "bleu"), "BLEU of the validation set", GREEN, folder / "bleu.png", max),
        _curve(points(records, "step", "learning_rate"), "Learning rate", PURPLE, folder / "learning_rate.png"),
        _curve(points(records, "step", "tokens_per_second"), "Target tokens a second", BLUE, folder / "speed.png"),
    ]
    files = [file for file in drawn if file is not None]
    if not files:
        raise TmtError("nothing is measured yet", place=metrics_file, remedy="Let it train for a while first.")
    return files


def plot_lengths(lengths: Mapping[str, Sequence[int]], file: Path) -> Path:
    """Draw a histogram of sentence lengths for each side.

    lengths: for each side (such as "source (de)"), element n is the number of sentences with n tokens.
    """
    with canvas(file, _INCHES) as figure:
        axes = figure.add_subplot(title="Lengths of sentences")
        for (side, counts), color in zip(lengths.items(), (BLUE, ORANGE, GREEN, PURPLE), strict=False):
            mean = sum(n * count for n, count in enumerate(counts)) / max(1, sum(counts))
            edges = [n - 0.5 for n in range(len(counts) + 1)]
            label = drawable(f"{side}: {mean:.1f} tokens on average")
            axes.stairs(counts, edges, fill=True, color=color, alpha=0.2)
            axes.stairs(counts, edges, color=color, linewidth=1.6, label=label)
        _name_x(axes, _cut_off_the_longest(axes, lengths.values()))
        axes.set_ylabel("sentences")
        axes.yaxis.set_major_formatter(axes.xaxis.get_major_formatter())
        axes.set_ylim(bottom=0)
        axes.legend(loc="upper right")  # "best" takes a second where the curve is long
    return file


def _loss(records: Sequence[Record], file: Path) -> Path | None:
    """Draw the loss of training and validation; None if there is none."""
    train_x, train_y = points(records, "step", "loss")
    valid_x, valid_y = points(records, "validation", "loss")
    if not train_x and not valid_x:
        return None
    with canvas(file, _INCHES) as figure:
        axes = figure.add_subplot(title="Loss a token")
        if train_x:
            reach = len(train_y) // 80  # smoothed over neighbours on both sides, so that the line has no delay
            windows = [train_y[max(0, place - reach) : place + reach + 1] for place in range(len(train_y))]
            smoothed = [sum(window) / len(window) for window in windows]
            axes.plot(train_x, train_y, color=BLUE, alpha=0.22, linewidth=0.8)
            axes.plot(train_x, smoothed, color=BLUE, linewidth=1.8, label="training")
        if valid_x:
            _draw_curve(axes, valid_x, valid_y, ORANGE, min, label="validation")
        _name_x(axes, "update")
        values = sorted(train_y + valid_y)
        usual = values[int(0.95 * (len(values) - 1))]
        if len(values) > 20 and values[-1] > 1.5 * usual:  # the high loss of the first updates would flatten the rest
            axes.set_ylim(top=1.3 * usual)
        axes.legend(loc="upper right")  # "best" takes a second where the curve is long
    return file


def _curve(
    curve: tuple[list[int], list[float]],
    title: str,
    color: str,
    file: Path,
    best: Callable[..., int] | None = None,
) -> Path | None:
    """Draw steps and values; None if there are none. best: max or min, to mark the best value."""
    steps, values = curve
    if not steps:
        return None
    with canvas(file, _INCHES) as figure:
        axes = figure.add_subplot(title=title)
        _draw_curve(axes, steps, values, color, best)
        if best is not None:
            axes.legend(loc="lower right")
        _name_x(axes, "update")
        axes.set_ylim(bottom=0)
    return file


def _draw_curve(
    axes: Axes,
    steps: Sequence[int],
    values: Sequence[float],
    color: str,
    best: Callable[..., int] | None,
    label: str | None = None,
) -> None:
    """Draw a line, and a ring around its best value, which the legend names. best: max or min."""
    axes.plot(steps, values, color=color, linewidth=1.8, marker="." if len(steps) <= _FEW else "", label=label)
    if best is not None:
        place = best(range(len(values)), key=values.__getitem__)
        label = f"best: {values[place]:.2f} at {steps[place]:,}"
        axes.plot(steps[place], values[place], "o", color=color, markersize=9, fillstyle="none", label=label)


def _name_x(axes: Axes, name: str) -> None:
    """Set the name and the ticks of the x axis."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axes.set_xlabel(name)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.margins(x=0.03, y=0.14)


def _cut_off_the_longest(axes: Axes, lengths: Iterable[Sequence[int]]) -> str:
    """End the x axis before a few very long sentences, which would squeeze the rest; returns its name."""
    right, longest = 1, 1
    for counts in lengths:
        so_far = list(accumulate(counts))
        if so_far and so_far[-1]:
            right = max(right, bisect_left(so_far, 0.998 * so_far[-1]))
            longest = max(longest, bisect_left(so_far, so_far[-1]))
    if longest < 1.5 * right:
        axes.set_xlim(0, longest + 1)
        return "tokens"
    axes.set_xlim(0, 1.25 * right)
    return f"tokens (the longest: {longest:,})"
