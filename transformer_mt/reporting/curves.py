"""Learning curves: of one run, or of several in one picture. Knows the records of runs; no model, no data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_mt.config.load import CONFIG, load_config
from transformer_mt.config.runs import METRICS
from transformer_mt.config.schema import Config
from transformer_mt.errors import TmtError
from transformer_mt.reporting.canvas import COLORS, PLAIN, Theme, canvas, drawable, fitted
from transformer_mt.reporting.history import Record, points, read_history, records_of, run_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLOTS = "plots"  # in the folder of a run
_INCHES = (9.0, 4.6)
_MOST_MARKS = 60  # on a line
_LOSS, _BLEU = "Loss (nats per token)", "BLEU of the validation set, greedy search"
_OTHER_TOKENS = "other vocabularies: losses do not compare"
_THIN: dict[str, Any] = {"linewidth": 1.1, "alpha": 0.85}  # training, if the colour says which run it is
_THICK: dict[str, Any] = {"linewidth": 2.0}
_DOTTED: dict[str, Any] = {"marker": ".", "markersize": 7}
_LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (8, 2, 1, 2, 1, 2)), (0, (12, 4)), (0, (4, 1)))
_MARKERS = "os^Dv*P"


@dataclass(frozen=True)
class Curve:
    """Values of one kind by step; empty if nothing was measured."""

    steps: list[int]
    values: list[float]

    def place(self, best: Callable[..., int]) -> int:
        """The place of the best value. best: max or min."""
        return best(range(len(self.values)), key=self.values.__getitem__)

    def in_words(self, name: str, best: Callable[..., int] | None) -> list[str]:
        """Its best value, or the last one if best is None; empty if there is none. best: max or min"""
        if not self.steps:
            return []
        place = -1 if best is None else self.place(best)
        which = "last" if best is None else "best"
        return [f"{which} {name} {self.values[place]:,.4g} at update {self.steps[place]:,}"]

    def smoothed(self) -> Curve:
        """Each value as the mean of its neighbours on both sides, so that the line has no delay."""
        reach = len(self.values) // 80
        sums, last = list(accumulate(self.values, initial=0.0)), len(self.values)
        windows = [(max(0, place - reach), min(last, place + reach + 1)) for place in range(last)]
        return Curve(self.steps, [(sums[end] - sums[start]) / (end - start) for start, end in windows])

    def merged(self) -> Curve:
        """Means over equally many updates, as far as possible. A value is the mean of the updates since the one before.

        Older versions also wrote the few updates before a checkpoint: their means would jump.
        """
        widths = [step - before for before, step in pairwise([0, *self.steps])]
        usual = sorted(widths)[len(widths) * 9 // 10] if widths else 0  # not the widest: records may be lost
        steps, values, total, width = list[int](), list[float](), 0.0, 0
        for step, value, own in zip(self.steps, self.values, widths, strict=True):
            total, width = total + own * value, width + own
            if width >= usual or step == self.steps[-1]:
                steps.append(step)
                values.append(total / width)
                total, width = 0.0, 0
        return Curve(steps, values)


def draw_run(run: Path, theme: Theme = "light") -> list[Path]:
    """Draw all curves of a run in its `plots` folder; as `draw_curves`. Raises TmtError if there is no such folder."""
    return _draw_curves(records_of(run), run / METRICS, run / PLOTS, theme)


def draw_curves(metrics_file: Path, folder: Path, theme: Theme = "light", apart: bool = True) -> list[Path]:
    """Draw what was measured of loss, BLEU, learning rate and speed; return the PNG files in `folder`.

    apart: loss and BLEU also in a picture each, besides the one that has both
    Raises TmtError if there is no metrics file, or nothing in it yet.
    """
    return _draw_curves(read_history(metrics_file), metrics_file, folder, theme, apart)


def _draw_curves(
    records: Sequence[Record], metrics_file: Path, folder: Path, theme: Theme, apart: bool = True
) -> list[Path]:
    _require_measured(records, metrics_file)
    name = run_names([metrics_file.parent])[0]
    drawn: list[Path | None] = [_compare({name: records}, folder / "learning-curves.png", theme)]
    if apart:
        drawn.append(_draw_loss(records, folder / "loss.png", theme))
        drawn.append(
            _draw_directions(records, folder / "bleu.png", theme)
            or _draw_one(records, "validation", "bleu", _BLEU, folder / "bleu.png", theme, max)
        )
    drawn += [
        _draw_one(records, "step", "learning_rate", "Learning rate", folder / "learning_rate.png", theme),
        _draw_one(records, "step", "tokens_per_second", "Target tokens per second", folder / "speed.png", theme),
    ]
    return [file for file in drawn if file is not None]


def draw_runs(runs: Sequence[Path], file: Path, theme: Theme = "light") -> Path:
    """Draw loss and BLEU of some runs side by side, one colour per run.

    Raises TmtError if a run has no metrics yet, or if there are more runs than colours.
    """
    runs = list({run.resolve(): run for run in runs}.values())
    most = len(COLORS[theme].series)
    if len(runs) > most:
        raise TmtError(f"{len(runs)} runs in one picture", remedy=f"Give at most {most}: each needs its own colour.")
    records = [records_of(run) for run in runs]
    for run, own in zip(runs, records, strict=True):
        _require_measured(own, run / METRICS)
    known = [tokens_of(config) for config in map(_config_of, runs) if config is not None]
    warning = _OTHER_TOKENS if any(one != known[0] for one in known) else ""
    return _compare(dict(zip(run_names(runs), records, strict=True)), file, theme, warning)


def _config_of(run: Path) -> Config | None:
    with suppress(TmtError):
        return load_config(run / CONFIG)
    return None


def tokens_of(config: Config) -> dict[str, Any]:
    """The settings that decide the vocabularies of a run: with others, losses do not compare."""
    return config.model_dump(
        include={"data": {"source", "target", "directions", "corpus", "cleaning"}, "tokenizer": True}
    )


def _require_measured(records: Sequence[Record], metrics_file: Path) -> None:
    """Raises TmtError if the records have neither loss nor BLEU."""
    kinds = ("step", "loss"), ("validation", "loss"), ("validation", "bleu")
    if not any(points(records, event, key)[0] for event, key in kinds):
        raise TmtError("nothing is measured yet", place=metrics_file, remedy="Let the run train for a while first.")


def _compare(runs: Mapping[str, Sequence[Record]], file: Path, theme: Theme, warning: str = "") -> Path:
    """Draw the two panels: loss, and BLEU if a run has it. warning: for the reader of the losses."""
    bleu = {name: Curve(*points(records, "validation", "bleu")) for name, records in runs.items()}
    panels = 2 if any(curve.steps for curve in bleu.values()) else 1
    rows = len(runs) if len(runs) > 1 else 0
    height = 4.2 + 0.22 * rows
    description = "; ".join(f"{name}: {_in_words(records)}" for name, records in runs.items())
    title = f"Learning curves of {', '.join(runs)}"
    with canvas(file, (_INCHES[0], height), theme, title=title, description=description) as figure:
        grid = figure.add_gridspec(
            1, panels, left=0.075, right=0.975, wspace=0.2, bottom=0.56 / height, top=1 - (0.52 + 0.22 * rows) / height
        )
        first = figure.add_subplot(grid[0], title=_LOSS)
        _draw_losses(first, list(runs.values()), warning)
        if panels == 2:
            axes = figure.add_subplot(grid[1], title=_BLEU, sharex=first)
            for place, curve in enumerate(bleu.values()):
                _draw(axes, curve, {**_look(place), **({} if rows else _DOTTED)})
                _mark_best(axes, curve, f"C{place}", max, named=not rows)
            _name_steps(axes)
            _begin_at_zero(axes, 100)
        if rows:
            _name_runs(figure, bleu)
    return file


def _in_words(records: Sequence[Record]) -> str:
    """The best values of a run, for those who do not see its curves."""
    loss, bleu = (Curve(*points(records, "validation", key)) for key in ("loss", "bleu"))
    return ", ".join([*loss.in_words("validation loss", min), *bleu.in_words("BLEU", max)]) or "no validation yet"


def _look(place: int) -> dict[str, Any]:
    """Colour, line and marks of a run or a direction: each of the three says which one it is."""
    return {"color": f"C{place}", "linestyle": _LINES[place], "marker": _MARKERS[place], "markersize": 5}


def _name_runs(figure: Figure, bleu: Mapping[str, Curve]) -> None:
    """Write the names of the runs and their best BLEU above the panels, each after its line."""
    from matplotlib.lines import Line2D

    width, height = figure.get_size_inches()
    lines = [Line2D([], [], linewidth=2.4, **_look(place)) for place in range(len(bleu))]
    labels = []
    for name, curve in bleu.items():
        labels.append(fitted(drawable(name), PLAIN, width / 2))
        if curve.steps:
            best = curve.place(max)
            labels[-1] += f"   best BLEU {curve.values[best]:.2f} at update {curve.steps[best]:,}"
    figure.legend(
        lines, labels, loc="upper left", bbox_to_anchor=(0.06, 1 - 0.06 / height), fontsize=PLAIN,
        labelspacing=0.35, borderaxespad=0, borderpad=0.2, handlelength=3.5,
    )  # fmt: skip


def _draw_losses(axes: Axes, runs: Sequence[Sequence[Record]], warning: str = "") -> None:
    """Draw the loss of training and validation: in two colours for one run; in its look, thin and thick, for each of
    several."""
    from matplotlib import rcParams
    from matplotlib.lines import Line2D

    alone, values = len(runs) == 1, list[float]()
    style = _THICK if alone else _THIN
    for place, records in enumerate(runs):
        train, validation = (Curve(*points(records, event, "loss")) for event in ("step", "validation"))
        train = train.merged()
        values += train.values + validation.values
        if alone:
            axes.plot(train.steps, train.values, color="C0", alpha=0.25, linewidth=0.8)
        smooth = train.smoothed()
        axes.plot(smooth.steps, smooth.values, **{**_look(place), "marker": ""}, **style)
        _draw(axes, validation, {"color": "C1", **_DOTTED} if alone else _look(place))
    _name_steps(axes)
    _leave_out_the_start(axes, values)
    first, second = ("C0", "C1") if alone else [rcParams["axes.labelcolor"]] * 2
    lines = [Line2D([], [], color=first, **style), Line2D([], [], color=second, marker=".", **_THICK)]
    title = {"title": warning, "title_fontsize": PLAIN} if warning else {}
    axes.legend(lines, ["training", "validation"], loc="upper right", fontsize=PLAIN, **title)


def _draw_loss(records: Sequence[Record], file: Path, theme: Theme) -> Path | None:
    """Draw the loss of training and validation; None if there is none."""
    if not any(points(records, event, "loss")[0] for event in ("step", "validation")):
        return None
    with canvas(file, _INCHES, theme, title=_LOSS, description=_in_words(records)) as figure:
        axes = _only_panel(figure, _LOSS)
        _draw_losses(axes, [records])
        _mark_best(axes, Curve(*points(records, "validation", "loss")), "C1", min)
    return file


def _draw_one(
    records: Sequence[Record],
    event: str,
    key: str,
    title: str,
    file: Path,
    theme: Theme,
    best: Callable[..., int] | None = None,
) -> Path | None:
    """Draw one curve; None if it has no points. best: max or min, to mark the best value."""
    curve = Curve(*points(records, event, key))
    if not curve.steps:
        return None
    description = curve.in_words("value", best)[0]
    with canvas(file, _INCHES, theme, title=title, description=description) as figure:
        axes = _only_panel(figure, title)
        _draw(axes, curve, {"color": "C0", **_DOTTED})
        if best is not None:
            _mark_best(axes, curve, "C0", best)
        _name_steps(axes)
        _begin_at_zero(axes, 100 if key == "bleu" else math.inf)
    return file


def _draw_directions(records: Sequence[Record], file: Path, theme: Theme) -> Path | None:
    """Draw the BLEU of each direction and, thick, their mean; None if there is one direction, or no BLEU."""
    steps, by_name = list[int](), dict[str, Curve]()
    for record in records:
        found = record.get("bleu_by_direction")
        for name, value in found.items() if isinstance(found, dict) else ():
            if record.get("event") == "validation" and isinstance(value, (int, float)) and math.isfinite(value):
                curve = by_name.setdefault(str(name), Curve([], []))
                curve.steps.append(record["step"])
                curve.values.append(float(value))
                steps.append(record["step"])
    mean = Curve(*points(records, "validation", "bleu"))
    if not steps or not mean.steps:
        return None
    curves = {"mean": mean, **by_name}
    description = ", ".join(word for name, curve in curves.items() for word in curve.in_words(f"BLEU of {name}", max))
    with canvas(file, _INCHES, theme, title=_BLEU, description=description) as figure:
        axes = _only_panel(figure, _BLEU)
        colors = len(COLORS[theme].series)
        for place, (name, curve) in enumerate(by_name.items(), start=1):
            _draw(axes, curve, {**_look(place % colors), "label": drawable(name), **_THIN})
        axes.plot(mean.steps, mean.values, color="C0", label="mean", **_THICK)
        _mark_best(axes, mean, "C0", max)
        _name_steps(axes)
        _begin_at_zero(axes, 100)
        axes.legend(loc="lower right", fontsize=PLAIN, handlelength=3.5)
    return file


def _only_panel(figure: Figure, title: str) -> Axes:
    width, height = figure.get_size_inches()
    return figure.add_axes((0.95 / width, 0.6 / height, 1 - 1.2 / width, 1 - 1.12 / height), title=title)


def _draw(axes: Axes, curve: Curve, look: Mapping[str, Any]) -> None:
    """Draw a line with marks: at each point, or at every second, third ... of many."""
    every = 1 + (len(curve.steps) - 1) // _MOST_MARKS
    axes.plot(curve.steps, curve.values, markevery=every, **{**_THICK, **look})


def _mark_best(axes: Axes, curve: Curve, color: str, best: Callable[..., int], named: bool = True) -> None:
    """Draw a ring around the best value, and write it below (the highest) or above it. best: max or min."""
    if not curve.steps:
        return
    place = curve.place(best)
    step, value = curve.steps[place], curve.values[place]
    axes.plot(step, value, "o", color=color, markersize=10, fillstyle="none", markeredgewidth=1.6)
    if not named:
        return
    side, gap = ("top", -13) if best is max else ("bottom", 13)
    end = "right" if step > sum(curve.steps[:: len(curve.steps) - 1 or 1][:2]) / 2 else "left"
    text = f"best: {value:.2f} at {step:,}"
    axes.annotate(text, (step, value), (0, gap), textcoords="offset points", ha=end, va=side, fontsize=PLAIN)


def _name_steps(axes: Axes) -> None:
    """Set the name and the ticks of the x axis."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axes.set_xlabel("update", fontsize=PLAIN)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.margins(x=0.03, y=0.14)
    axes.set_xlim(left=0)


def _begin_at_zero(axes: Axes, largest: float) -> None:
    """Begin the y axis at 0. largest: the largest possible value, above which the axis only needs room for a ring."""
    top = axes.get_ylim()[1]
    axes.set_ylim(0, min(top, 1.04 * largest))


def _leave_out_the_start(axes: Axes, values: list[float]) -> None:
    """End the y axis below the high losses of the first updates, which would flatten the rest, and at 0 or above."""
    values = sorted(values)
    usual = values[int(0.95 * (len(values) - 1))] if values else 0.0
    if len(values) > 20 and values[-1] > 1.5 * usual:
        axes.set_ylim(top=1.3 * usual)
    axes.set_ylim(bottom=max(0, axes.get_ylim()[0]))
