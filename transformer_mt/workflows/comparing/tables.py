"""The tables of `tmt compare`, and what belongs below them: how each score was made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from transformer_mt.config.space import short_names, shown
from transformer_mt.errors import TmtError, number_of, visible
from transformer_mt.evaluation.metrics import METRICS as MEASURES
from transformer_mt.reporting.table import duration, shortened
from transformer_mt.workflows.comparing.differences import Difference, GroupDifference
from transformer_mt.workflows.comparing.groups import SEED, SeedGroup, Spread, made_in
from transformer_mt.workflows.comparing.summary import RunSummary

_MEANS = "Mean and standard deviation of runs that differ only in their seed"
_DIFFERENCES = "Difference from {}: ± half its 95 % confidence interval over seeds (Welch's t-test)"
UNKNOWN = "-"
_LONGEST = 40  # columns of a setting
_MOST_NAMES = 5
_One = RunSummary | SeedGroup | GroupDifference
_Figure = float | Spread | Difference | None
Rows = list[list[str]]


class Column(NamedTuple):
    """A column of results: heading, digits after the point, and the figure of a run or group."""

    heading: str
    digits: int
    figure: Callable[[_One], _Figure]


class ScoreColumn(NamedTuple):
    """The scores of a test set by one metric."""

    heading: str
    test_set: str
    measure: str


def titled_tables(
    runs: Sequence[RunSummary],
    keys: Sequence[str],
    groups: Sequence[SeedGroup],
    differences: Sequence[GroupDifference],
    scores: Sequence[ScoreColumn],
) -> list[tuple[str, Rows]]:
    """The title and the rows of each table; the first row has the headings. keys: of the settings"""
    columns = _columns(runs, scores)
    sizes = ["parameters"] if any(run.parameters is not None for run in runs) else []
    rows = [["run", *short_names(keys), *sizes, "updates", "time", *(one.heading for one in columns)]]
    for run in runs:
        name = visible(run.name) + (f" ({run.state})" if run.state != "finished" else "")
        size = [UNKNOWN if run.parameters is None else f"{run.parameters:,}"] * len(sizes)
        numbers = *size, f"{run.updates:,}", duration(run.seconds), *_cells(run, columns)
        rows.append([name, *_settings(run, keys), *numbers])
    tables = [("", rows)]
    keys = [key for key in keys if key != SEED]
    if groups:
        tables.append((_MEANS, _rows(groups, keys, columns)))
    if differences:
        tables.append((_DIFFERENCES.format(_together(groups[0])), _rows(differences, keys, columns)))
    return tables


def score_columns(runs: Sequence[RunSummary], wanted: Sequence[str], metrics: Sequence[str]) -> list[ScoreColumn]:
    """The scores to show.

    wanted:  names of test sets; none: all
    metrics: none: of each test set the first one that a run has
    Raises TmtError if no run has scores of a test set or a metric.
    """
    test_sets = list(dict.fromkeys(test_set for run in runs for test_set in run.scores))
    last = [Path(test_set).name for test_set in test_sets]
    short = [name if last.count(name) == 1 else test_set for name, test_set in zip(last, test_sets, strict=True)]
    known = dict(zip(test_sets, short, strict=True))
    if unknown := [one for one in wanted if one not in {*known, *known.values()}]:
        remedy = f"There are: {', '.join(map(visible, known.values()))}." if known else "Score them:  tmt evaluate"
        raise TmtError(f"no run has scores of {visible(unknown[0])}", place="--test-set", remedy=remedy)
    if unknown := [one for one in metrics if one not in [*MEASURES]]:
        raise TmtError(f"no metric {unknown[0]!r}", place="--metric", remedy=f"There are: {', '.join(MEASURES)}.")
    found = []
    for test_set, name in known.items():
        having = [measure for measure in MEASURES if any(measure in run.scores.get(test_set, {}) for run in runs)]
        if not wanted or test_set in wanted or name in wanted:
            measures = [one for one in dict.fromkeys(metrics) if one in having] if metrics else having[:1]
            found += [ScoreColumn(f"{visible(name)} {MEASURES[one].title}", test_set, one) for one in measures]
    if missing := [one for one in metrics if one not in {column.measure for column in found}]:
        name, metric = missing[0], MEASURES[missing[0]]
        option = f"--{name}" if metric.by_default else f"--metric {name}"
        problem = f"no run has {metric.title} here"
        raise TmtError(problem, place="--metric", remedy=f"Score them:  tmt evaluate {option}")
    return found


def how_made(runs: Sequence[RunSummary], scores: Sequence[ScoreColumn]) -> Iterator[str]:
    """Of each column of scores that was made in one way: signature, search and number of sentences."""
    for heading, test_set, measure in scores:
        entries = [one for run in runs if measure in (one := run.scores.get(test_set, {}))]
        if any(made_in(one, measure) != made_in(entries[0], measure) for one in entries):
            continue  # a note says which runs differ
        first = entries[0]
        sentences = first.get("sentences")
        parts = [first["signatures"].get(measure), first.get("search")]
        parts += [number_of(sentences, "sentence")] if isinstance(sentences, int) else []
        if any(parts):
            yield f"{heading}: {', '.join(visible(str(part)) for part in parts if part)}"


def _columns(runs: Sequence[RunSummary], scores: Sequence[ScoreColumn]) -> list[Column]:
    columns = [
        Column("valid loss", 3, lambda one: one.loss),
        Column("greedy BLEU", 2, lambda one: one.bleu),
    ]
    columns = [one for one in columns if any(one.figure(run) is not None for run in runs)]
    for heading, test_set, measure in scores:
        columns.append(Column(heading, 2, partial(_score, test_set=test_set, measure=measure)))
    return columns


def _rows(
    groups: Sequence[SeedGroup | GroupDifference], keys: Sequence[str], columns: Sequence[Column]
) -> list[list[str]]:
    """A row for each group, below their headings."""
    head = ["seeds", *short_names(keys), *(one.heading for one in columns)]
    return [head, *([_together(one), *_settings(one, keys), *_cells(one, columns)] for one in groups)]


def _together(group: SeedGroup | GroupDifference) -> str:
    """The names of its runs, or the first and the last of many."""
    names = [visible(name) for name in group.names]
    few = len(names) <= _MOST_NAMES
    return ", ".join(names) if few else f"{names[0]} … {names[-1]} ({len(names)})"


def _settings(one: _One, keys: Sequence[str]) -> list[str]:
    settings: Mapping[str, object] = one.settings or {}
    return [shortened(shown(settings.get(key, UNKNOWN)), _LONGEST) for key in keys]


def _score(one: _One, test_set: str, measure: str) -> _Figure:
    return one.scores.get(test_set, {}).get(measure)


def _cells(one: _One, columns: Sequence[Column]) -> list[str]:
    of = 1 if isinstance(one, RunSummary) else len(one.names)
    return [_written(column.figure(one), column.digits, of) for column in columns]


def _written(value: _Figure, digits: int, of: int) -> str:
    """A figure of a run, or of a group of `of` runs; one that only some of these have says of how many."""
    if isinstance(value, Difference):
        if value.interval is None or value.p_value is None:
            return f"{value.value:+.{digits}f}"
        chance = f"p {value.p_value:.3f}" if value.p_value >= 0.0005 else "p < 0.001"
        return f"{value.value:+.{digits}f} ± {value.interval:.{digits}f}, {chance}"
    if isinstance(value, Spread):
        some = "" if value.runs == of else f" (of {value.runs})"
        return f"{value.mean:.{digits}f} ± {value.deviation:.{digits}f}{some}"
    return UNKNOWN if value is None else f"{value:.{digits}f}"
