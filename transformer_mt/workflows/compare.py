"""Compares runs: the settings that differ, the best validation, the test scores, and means over seeds."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from transformer_mt.config.load import flat_values
from transformer_mt.config.runs import METRICS, RUNS
from transformer_mt.errors import TmtError
from transformer_mt.evaluation.metrics import METRICS as MEASURES
from transformer_mt.files.lines import paths_of
from transformer_mt.reporting.history import run_names
from transformer_mt.reporting.notes import note
from transformer_mt.reporting.table import TableForm, aligned
from transformer_mt.workflows.comparing.differences import GroupDifference, differences_of
from transformer_mt.workflows.comparing.groups import SeedGroup, groups_of, made_in
from transformer_mt.workflows.comparing.summary import (
    KEPT,
    MADE_WITH,
    Origin,
    RunSummary,
    folder_of,
    summary_of,
    vocabularies_of,
    with_common_names,
    with_corpus_keys,
)
from transformer_mt.workflows.comparing.tables import (
    UNKNOWN,
    ScoreColumn,
    how_made,
    score_columns,
    titled_tables,
)

_MINUS = re.compile(r"^-(?=\d)")
_TITLES = {"text": "{}", "markdown": "{}\n", "latex": "% {}"}  # of a table
_WAYS = {  # keys of `made_in`
    "text": "{others} translated other sentences than {first}",
    "decoding": "{others} searched with other settings than {first}",
    "weights": "{others} computed in another number format than {first}",
    "signature": "{others} and {first} have other forms of {name}",
}


@dataclass(frozen=True, repr=False)
class RunComparison:
    """Runs side by side. Printed, it is its tables; a notebook shows them as such.

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
        return self._tables("text", score_columns(self.runs, (), ()))

    def __repr__(self) -> str:
        return "\n".join(self.lines)

    def _repr_markdown_(self, form: TableForm = "markdown") -> str:
        return "\n".join(self.written(form))

    def written(self, form: TableForm, test_sets: Sequence[str] = (), metrics: Sequence[str] = ()) -> list[str]:
        """The lines of the tables, and how the scores in them were made.

        form:      text (aligned for a terminal), markdown, or latex (with its package booktabs)
        test_sets: whose scores to show; none: all
        metrics:   names in evaluation/metrics.py; none: of each test set the first one that a run has
        Raises TmtError if no run has such scores, or if there is no such form.
        """
        if form not in _TITLES:
            raise TmtError(f"no form {form!r} of tables", remedy=f"There are: {', '.join(_TITLES)}.")
        test_sets, metrics = ([one] if isinstance(one, str) else one for one in (test_sets, metrics))
        scores = score_columns(self.runs, test_sets, metrics)
        made = [part for line in how_made(self.runs, scores) for part in _TITLES[form].format(line).split("\n")]
        return [*self._tables(form, scores), *(["", *made] if made else [])]

    def _tables(self, form: TableForm, scores: Sequence[ScoreColumn]) -> list[str]:
        lines = list[str]()
        for title, rows in titled_tables(self.runs, self.keys, self.groups, self.differences, scores):
            lines += ["", *_TITLES[form].format(title).split("\n")] if title else []
            if form != "text":
                rows = [[name, *(_MINUS.sub("\N{MINUS SIGN}", cell) for cell in cells)] for name, *cells in rows]
            lines += aligned(rows, "<" + ">" * (len(rows[0]) - 1), form)
        return lines

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
    origins, names = with_corpus_keys([Origin.of(folder) for folder in folders]), run_names(folders)
    known = [one.settings for one in origins if one.settings is not None]
    chosen = [flat_values(one.config, exclude_defaults=True) for one in origins if one.config is not None]
    unusual = {key for values in chosen for key in values}
    keys = [key for key in dict.fromkeys(key for one in known for key in one) if _differs(known, key, unusual)]
    found = [
        summary_of(name, folder, origin, keys) for name, folder, origin in zip(names, folders, origins, strict=True)
    ]
    renamed = with_common_names([one.scores for one in found])
    found = [replace(one, scores=scores) for one, scores in zip(found, renamed, strict=True)]
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


def _differs(configs: Sequence[Mapping[str, Any]], key: str, unusual: Container[str]) -> bool:
    """unusual: keys that are not at their default. Other kinds of tokenizers have other keys, most at their default."""
    if key.startswith("tokenizer.") and key not in unusual and not all(key in one for one in configs):
        return False
    values = [one.get(key, UNKNOWN) for one in configs if key in one or key not in KEPT]
    return any(one != values[0] for one in values)


def _incomparable(runs: Sequence[RunSummary], origins: Sequence[Origin]) -> Iterator[str]:
    """Which figures of the runs do not compare."""
    names = [run.name for run in runs]
    vocabularies = vocabularies_of(origins)
    yield from _others("losses do not compare: {others} and {first} have other vocabularies", names, vocabularies)
    corpora = [str(one.corpus or "") for one in origins]
    yield from _others("the corpus of {others} has other contents than that of {first}", names, corpora)
    yield from _others("{others} started from other weights than {first}", names, [one.parent for one in origins])
    for key, text in MADE_WITH.items():
        values = [one.made_with.get(key) for one in origins]
        if isinstance(first := next(filter(None, values), None), dict):  # what a run does not know counts as equal
            values = [own and {name: own.get(name, known) for name, known in first.items()} for own in values]
        yield from _others(f"{text} (run.json: {key})", names, values)
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
                text = text.replace("{name}", MEASURES[measure].title)
                said |= {f"{test_set}: {one}" for one in _others(text, list(having), values)}
        yield from sorted(said)


def _others(text: str, names: Sequence[str], values: Sequence[Any]) -> list[str]:
    """A note on the names whose value is not that of the first one that has a value; none if all are equal."""
    known = [(name, value) for name, value in zip(names, values, strict=True) if value]
    others = [name for name, value in known if value != known[0][1]]
    return [text.replace("{others}", ", ".join(others)).replace("{first}", known[0][0])] if others else []
