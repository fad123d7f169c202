"""Compares runs: the settings that differ, the best validation, the test scores, and means over seeds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from transformer_mt.config.runs import METRICS, RUNS
from transformer_mt.config.space import short_names, shown
from transformer_mt.errors import TmtError, visible
from transformer_mt.evaluation.metrics import METRICS as MEASURES
from transformer_mt.files.lines import paths_of
from transformer_mt.reporting.history import run_names
from transformer_mt.reporting.notes import note
from transformer_mt.reporting.table import TableForm, aligned, duration, shortened
from transformer_mt.workflows.comparing.differences import Difference, GroupDifference, differences_of
from transformer_mt.workflows.comparing.groups import SEED, SeedGroup, Spread, groups_of, made_in
from transformer_mt.workflows.comparing.summary import Origin, RunSummary, folder_of, summary_of, vocabularies_of

_NAMES = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}
_MEANS = "Mean and standard deviation of runs that differ only in their seed"
_DIFFERENCES = "Difference from {}: ± half its 95 % confidence interval over seeds (Welch's t-test)"
_TITLES = {"text": "{}", "markdown": "{}\n", "latex": "% {}"}  # of a table
_UNKNOWN = "-"
_LONGEST = 40  # columns of a setting
_MOST_NAMES = 5
_WAYS = {  # keys of `made_in`
    "text": "{others} translated other sentences than {first}",
    "decoding": "{others} searched with other settings than {first}",
    "weights": "{others} computed in another number format than {first}",
    "signature": "{others} and {first} have other forms of {name}",
}
_One = RunSummary | SeedGroup | GroupDifference
_Figure = float | Spread | Difference | None
_Value = Callable[[_One], _Figure]


@dataclass(frozen=True)
class RunComparison:
    """Runs side by side.

    keys:        of the settings that differ
    groups:      means over seeds
    differences: of each group from the first one
    notes:       what does not compare
    """

    runs: Sequence[RunSummary]
    keys: Sequence[str]
    groups: Sequence[SeedGroup] = ()
    differences: Sequence[GroupDifference] = ()
    notes: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        """The tables as text."""
        return self.written("text")

    def written(self, form: TableForm) -> list[str]:
        """The lines of the tables, aligned for a terminal, or as Markdown or LaTeX (with its package booktabs)."""
        lines = list[str]()
        for title, rows in self._tables():
            lines += ["", *_TITLES[form].format(title).split("\n")] if title else []
            lines += aligned(rows, "<" + ">" * (len(rows[0]) - 1), form)
        return lines

    def _tables(self) -> list[tuple[str, list[list[str]]]]:
        """The title and the rows of each table; the first row has the headings."""
        columns = _columns(self.runs)
        sizes = ["parameters"] if any(run.parameters is not None for run in self.runs) else []
        rows = [["run", *short_names(self.keys), *sizes, "updates", "time", *columns]]
        for run in self.runs:
            name = visible(run.name) + (f" ({run.state})" if run.state != "finished" else "")
            size = [_UNKNOWN if run.parameters is None else f"{run.parameters:,}"] * len(sizes)
            numbers = *size, f"{run.updates:,}", duration(run.seconds), *_cells(run, columns)
            rows.append([name, *_settings(run, self.keys), *numbers])
        tables = [("", rows)]
        keys = [key for key in self.keys if key != SEED]
        if self.groups:
            tables.append((_MEANS, _rows(self.groups, keys, columns)))
        if self.differences:
            tables.append((_DIFFERENCES.format(_together(self.groups[0])), _rows(self.differences, keys, columns)))
        return tables

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        runs = [{**asdict(run), "folder": str(run.folder)} for run in self.runs]
        groups, differences = ([asdict(one) for one in some] for some in (self.groups, self.differences))
        return {
            "keys": list(self.keys),
            "runs": runs,
            "groups": groups,
            "differences": differences,
            "notes": list(self.notes),
        }


def compare_runs(runs: str | Path | Sequence[str | Path] = ()) -> RunComparison:
    """What differs between runs, and how good each is; with means over runs that differ only in their seed, and
    whether these means differ by more than the seeds explain.

    runs: folders; default: all in runs/. Scores are those that `train` and `evaluate` stored with the models. Notes
    say what of it does not compare, and which folders are not runs.
    Raises TmtError if there are no runs, or if a folder does not exist.
    """
    folders = _runs_among(paths_of(runs) if runs != () else _all_runs())
    origins, names = [Origin.of(folder) for folder in folders], run_names(folders)
    known = [one.settings for one in origins if one.settings is not None]
    keys = [key for key in dict.fromkeys(key for one in known for key in one) if _differs(known, key)]
    found = [
        summary_of(name, folder, origin, keys) for name, folder, origin in zip(names, folders, origins, strict=True)
    ]
    groups, notes = groups_of(found, origins)
    notes = [*_incomparable(found, origins), *notes]
    for text in notes:
        note(text)
    return RunComparison(found, keys, groups, differences_of(groups, found, origins), notes)


def _all_runs() -> list[Path]:
    """The runs in runs/, by their names; of numbers in these, the smallest first."""
    runs = [file.parent for file in RUNS.glob(f"*/{METRICS}")]
    return sorted(runs, key=lambda run: [(len(part), part) if part.isdigit() else (0, part) for part in _parts(run)])


def _parts(run: Path) -> list[str]:
    return re.split(r"(\d+)", run.name)


def _runs_among(given: Sequence[Path]) -> list[Path]:
    """The folders of runs, each once. Raises TmtError if one does not exist, or if none is a run."""
    folders = {folder.resolve(): folder for folder in map(folder_of, given)}
    for folder in folders.values():
        if not folder.exists():
            raise TmtError("no such run folder", place=folder, remedy="Check the path; `ls runs` lists your runs.")
    runs = [folder for folder in folders.values() if (folder / METRICS).is_file()]
    if not runs:
        remedy = "Name folders of runs, such as runs/NAME, or train one:  tmt train --config C"
        raise TmtError("not a run", place=next(iter(folders.values()), RUNS), remedy=remedy)
    if others := [str(folder) for folder in folders.values() if folder not in runs]:
        note(f"left out, because {'it is not a run' if len(others) == 1 else 'they are not runs'}: {', '.join(others)}")
    return runs


def _differs(configs: Sequence[Mapping[str, Any]], key: str) -> bool:
    return any(one.get(key, _UNKNOWN) != configs[0].get(key, _UNKNOWN) for one in configs)


def _incomparable(runs: Sequence[RunSummary], origins: Sequence[Origin]) -> Iterator[str]:
    """Which figures of the runs do not compare."""
    names = [run.name for run in runs]
    vocabularies = vocabularies_of(origins)
    yield from _others("losses do not compare: {others} and {first} have other vocabularies", names, vocabularies)
    corpora = [str(one.corpus or "") for one in origins]
    yield from _others("the corpus of {others} has other contents than that of {first}", names, corpora)
    yield from _others("{others} started from other weights than {first}", names, [one.parent for one in origins])
    counts = [
        one.config.training.bleu_sentences if one.config is not None and run.bleu is not None else 0
        for run, one in zip(runs, origins, strict=True)
    ]
    yield from _others(
        "greedy BLEU of {others} may be of another number of sentences than that of {first}", names, counts
    )
    for test_set in dict.fromkeys(test_set for run in runs for test_set in run.scores):
        said = set[str]()
        for measure in MEASURES:
            having = {run.name: run.scores[test_set] for run in runs if measure in run.scores.get(test_set, {})}
            ways = [made_in(entry, measure) for entry in having.values()]
            for key, text in _WAYS.items():
                values = [str(way[key]) if key == "weights" or way[key] else "" for way in ways]
                text = text.replace("{name}", _NAMES[measure])
                said |= {f"{test_set}: {one}" for one in _others(text, list(having), values)}
        yield from sorted(said)


def _others(text: str, names: Sequence[str], values: Sequence[Any]) -> list[str]:
    """A note on the names whose value is not that of the first one that has a value; none if all are equal."""
    known = [(name, value) for name, value in zip(names, values, strict=True) if value]
    others = [name for name, value in known if value != known[0][1]]
    return [text.replace("{others}", ", ".join(others)).replace("{first}", known[0][0])] if others else []


def _rows(
    groups: Sequence[SeedGroup | GroupDifference], keys: Sequence[str], columns: Mapping[str, tuple[int, _Value]]
) -> list[list[str]]:
    """A row for each group, below their headings."""
    head = ["seeds", *short_names(keys), *columns]
    return [head, *([_together(one), *_settings(one, keys), *_cells(one, columns)] for one in groups)]


def _together(group: SeedGroup | GroupDifference) -> str:
    """The names of its runs, or the first and the last of many."""
    names = [visible(name) for name in group.names]
    few = len(names) <= _MOST_NAMES
    return ", ".join(names) if few else f"{names[0]} … {names[-1]} ({len(names)})"


def _settings(one: _One, keys: Sequence[str]) -> list[str]:
    return [shortened(shown((one.settings or {}).get(key, _UNKNOWN)), _LONGEST) for key in keys]


def _columns(runs: Sequence[RunSummary]) -> dict[str, tuple[int, _Value]]:
    """The columns of results, by heading: digits after the point, and the value in a run or group."""
    columns: dict[str, tuple[int, _Value]] = {
        "valid loss": (3, lambda one: one.loss),
        "greedy BLEU": (2, lambda one: one.bleu),
    }
    columns = {head: one for head, one in columns.items() if any(one[1](run) is not None for run in runs)}
    test_sets = dict[str, str]()  # with the first metric that a run has
    for test_set in dict.fromkeys(test_set for run in runs for test_set in run.scores):
        having = [measure for measure in MEASURES if any(measure in run.scores.get(test_set, {}) for run in runs)]
        test_sets |= {test_set: having[0]} if having else {}
    last = [Path(test_set).name for test_set in test_sets]
    short = [name if last.count(name) == 1 else test_set for name, test_set in zip(last, test_sets, strict=True)]
    for (test_set, measure), name in zip(test_sets.items(), short, strict=True):
        heading = f"{visible(name)} {_NAMES[measure]}"
        columns[heading] = (2, partial(_score, test_set=test_set, measure=measure))
    return columns


def _score(one: _One, test_set: str, measure: str) -> _Figure:
    return one.scores.get(test_set, {}).get(measure)


def _cells(one: _One, columns: Mapping[str, tuple[int, _Value]]) -> list[str]:
    of = 1 if isinstance(one, RunSummary) else len(one.names)
    return [_written(value(one), digits, of) for digits, value in columns.values()]


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
    return _UNKNOWN if value is None else f"{value:.{digits}f}"
