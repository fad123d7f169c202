"""Compares runs: the settings that differ, the best validation, the test scores, and means over seeds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from transformer_mt.config.load import SCORES, flat_values
from transformer_mt.config.runs import METRICS, MODEL, RUNS
from transformer_mt.config.schema import Config
from transformer_mt.config.space import short_names, shown
from transformer_mt.errors import TmtError
from transformer_mt.evaluation.metrics import METRICS as MEASURES
from transformer_mt.evaluation.record import read_scores
from transformer_mt.files.lines import paths_of
from transformer_mt.reporting.curves import tokens_of
from transformer_mt.reporting.history import metrics_of, points, read_history, run_names
from transformer_mt.reporting.notes import note
from transformer_mt.reporting.table import aligned, duration
from transformer_mt.training.run_facts import config_of_run, contents_of, starts_of

SEED = "seed"
_OWN = ("name", "data.prepared")  # each run has its own
_NAMES = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}
_UNKNOWN = "-"
_Value = Callable[["RunSummary | SeedGroup"], "float | Spread | None"]


@dataclass(frozen=True)
class RunSummary:
    """What is known of a run.

    name:     of its folder, with parent folders in front if two names are equal
    updates:  of its last record
    seconds:  of training, without validations
    loss:     validation loss in nats per token, where the validation was best
    bleu:     greedy BLEU of the same validation
    scores:   by test set, then by metric: bleu, chrf, ter
    settings: those that differ between the compared runs, by key; None if its config cannot be read
    """

    name: str
    folder: Path
    is_finished: bool
    updates: int
    seconds: float
    loss: float | None
    bleu: float | None
    scores: Mapping[str, Mapping[str, float]]
    settings: Mapping[str, Any] | None


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of `runs` runs (divided by runs - 1)."""

    mean: float
    deviation: float
    runs: int


@dataclass(frozen=True)
class SeedGroup:
    """Finished runs that differ in nothing but `seed`. What was not measured in at least two of them is missing."""

    names: Sequence[str]
    settings: Mapping[str, Any]
    loss: Spread | None
    bleu: Spread | None
    scores: Mapping[str, Mapping[str, Spread]]


@dataclass(frozen=True)
class RunComparison:
    """Runs side by side. keys: of the settings that differ; groups: means over seeds."""

    runs: Sequence[RunSummary]
    keys: Sequence[str]
    groups: Sequence[SeedGroup] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """Both tables as text."""
        columns = _columns(self.runs)
        heads = [*short_names(self.keys), "updates", "time", *columns]
        rows = [["run", *heads]]
        for run in self.runs:
            found = [(run.settings or {}).get(key, _UNKNOWN) for key in self.keys]
            name = run.name if run.is_finished else f"{run.name} (unfinished)"
            numbers = f"{run.updates:,}", duration(run.seconds), *_cells(run, columns)
            rows.append([name, *map(shown, found), *numbers])
        lines = aligned(rows, "<" + ">" * len(heads))
        if not self.groups:
            return lines
        keys = [key for key in self.keys if key != SEED]
        rows = [["seeds", *short_names(keys), *columns]]
        for group in self.groups:
            own = [group.settings.get(key, _UNKNOWN) for key in keys]
            rows.append([", ".join(group.names), *map(shown, own), *_cells(group, columns)])
        title = "Mean and standard deviation of runs that differ only in their seed"
        return [*lines, "", title, *aligned(rows, "<" + ">" * (len(rows[0]) - 1))]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        runs = [{**asdict(run), "folder": str(run.folder)} for run in self.runs]
        return {"keys": list(self.keys), "runs": runs, "seeds": [asdict(group) for group in self.groups]}


def compare_runs(runs: str | Path | Sequence[str | Path] = ()) -> RunComparison:
    """What differs between runs, and how good each is; with means over runs that differ only in their seed.

    runs: folders; default: all in runs/. Scores are those that `train` and `evaluate` stored with the models, the
    newest of each test set. Notes say what of it does not compare.
    Raises TmtError if a folder is no run, or if there are none.
    """
    given = paths_of(runs) if runs != () else sorted(file.parent for file in RUNS.glob(f"*/{METRICS}"))
    folders = list({run.resolve(): run for run in given}.values())
    if not folders:
        raise TmtError("no runs to compare", remedy="Train one:  tmt train --config C   or name folders of runs.")
    files = [metrics_of(folder) for folder in folders]
    configs = [_config_of(folder) for folder in folders]
    settings = [None if config is None else _settings_of(config) for config in configs]
    known = [one for one in settings if one is not None]
    keys = [key for key in dict.fromkeys(key for one in known for key in one) if _differs(known, key)]
    names, stored = run_names(folders), [_stored(folder) for folder in folders]
    found = [
        _summary(name, file, entries, None if own is None else {key: own[key] for key in keys if key in own})
        for name, file, entries, own in zip(names, files, stored, settings, strict=True)
    ]
    corpora = [tuple(content for _, content in contents_of((starts_of(one) or [{}])[-1])) for one in folders]
    _note_what_differs(names, configs, corpora, stored)
    seeds = [None if config is None else config.seed for config in configs]
    return RunComparison(found, keys, _groups(found, seeds, corpora))


def _config_of(folder: Path) -> Config | None:
    """The config of a run; None, with a note, if it has none that can be read."""
    problem = "there is no config"
    try:
        config = config_of_run(folder)
    except TmtError as error:
        config, problem = None, str(error).splitlines()[0]
    if config is None:
        note(f"{folder}: {problem}; its settings are unknown, so it is in no mean over seeds")
    return config


def _settings_of(config: Config) -> dict[str, Any]:
    """The settings of a run by key, without those that each run has of its own."""
    return {key: value for key, value in flat_values(config).items() if key not in _OWN}


def _differs(configs: Sequence[Mapping[str, Any]], key: str) -> bool:
    return any(one.get(key, _UNKNOWN) != configs[0].get(key, _UNKNOWN) for one in configs)


def _stored(folder: Path) -> dict[str, dict[str, Any]]:
    """The newest scores of a run by test set."""
    entries = read_scores(folder / MODEL / SCORES)
    return {test_set: entry for test_set, entry in entries.items() if isinstance(entry, dict)}


def _summary(
    name: str, file: Path, entries: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any] | None
) -> RunSummary:
    records = read_history(file)
    validations = [one for one in records if one.get("event") == "validation"]
    best = [one for one in validations if one.get("best")][-1:] or validations[-1:]
    loss, bleu = (points(best, "validation", key)[1] for key in ("loss", "bleu"))
    ends = points(records, "finished", "seconds")[1]
    return RunSummary(
        name=name,
        folder=file.parent,
        is_finished=bool(ends),
        updates=records[-1]["step"] if records else 0,
        seconds=ends[-1] if ends else sum(points(records, "validation", "seconds")[1]),
        loss=loss[0] if loss else None,
        bleu=bleu[0] if bleu else None,
        scores={
            test_set: {key: entry[key] for key in MEASURES if isinstance(entry.get(key), (int, float))}
            for test_set, entry in entries.items()
        },
        settings=settings,
    )


def _groups(runs: Sequence[RunSummary], seeds: Sequence[int | None], corpora: Sequence[Hashable]) -> list[SeedGroup]:
    """Finished runs with the same corpus and the same settings but for the seed; at least two seeds."""
    alike: dict[Hashable, list[tuple[int, RunSummary]]] = {}
    for run, seed, corpus in zip(runs, seeds, corpora, strict=True):
        if run.is_finished and run.settings is not None and seed is not None:
            settings = sorted((key, shown(value)) for key, value in run.settings.items() if key != SEED)
            alike.setdefault((corpus, *settings), []).append((seed, run))
    groups = []
    for some in alike.values():
        by_seed = dict(reversed(some))  # the first run of each seed
        if len(by_seed) > 1:
            groups.append(_group([run for seed, run in some if by_seed[seed] is run]))
            for seed, run in some:
                if (first := by_seed[seed]) is not run:
                    note(f"{run.name} has the settings and the seed of {first.name}: the mean has only one of them")
    return groups


def _group(runs: Sequence[RunSummary]) -> SeedGroup:
    tested = dict.fromkeys((test_set, key) for run in runs for test_set, one in run.scores.items() for key in one)
    scores: dict[str, dict[str, Spread]] = {}
    for test_set, key in tested:
        spread = _spread([run.scores.get(test_set, {}).get(key) for run in runs])
        if spread is not None:
            scores.setdefault(test_set, {})[key] = spread
    settings = {key: value for key, value in (runs[0].settings or {}).items() if key != SEED}
    loss, bleu = _spread([run.loss for run in runs]), _spread([run.bleu for run in runs])
    return SeedGroup([run.name for run in runs], settings, loss, bleu, scores)


def _spread(values: Sequence[float | None]) -> Spread | None:
    found = [value for value in values if value is not None]
    return Spread(mean(found), stdev(found), len(found)) if len(found) > 1 else None


def _note_what_differs(
    names: Sequence[str],
    configs: Sequence[Config | None],
    corpora: Sequence[Sequence[str]],
    stored: Sequence[Mapping[str, Mapping[str, Any]]],
) -> None:
    """Say which figures of the runs do not compare."""
    tokens = ["" if config is None else str(tokens_of(config)) for config in configs]
    _note_others("losses do not compare: {others} and {first} have other vocabularies", names, tokens)
    _note_others("the corpus of {others} has other contents than that of {first}", names, corpora)
    for test_set in dict.fromkeys(test_set for one in stored for test_set in one):
        have = {name: one[test_set] for name, one in zip(names, stored, strict=True) if test_set in one}
        entries = list(have.values())
        texts = [one.get("text") for one in entries]
        _note_others(f"{test_set}: {{others}} translated other sentences than {{first}}", list(have), texts)
        searches = [str(one.get("decoding") or "") for one in entries]
        _note_others(f"{test_set}: {{others}} searched with other settings than {{first}}", list(have), searches)
        for measure, name in _NAMES.items():
            forms = [dict(one.get("signatures") or {}).get(measure) for one in entries]
            _note_others(f"{test_set}: {{others}} and {{first}} have other forms of {name}", list(have), forms)


def _note_others(text: str, names: Sequence[str], values: Sequence[Any]) -> None:
    """Print a note on the names whose value is not that of the first one that has a value; none if all are equal."""
    known = [(name, value) for name, value in zip(names, values, strict=True) if value]
    if others := [name for name, value in known if value != known[0][1]]:
        note(text.replace("{others}", ", ".join(others)).replace("{first}", known[0][0]))


def _columns(runs: Sequence[RunSummary]) -> dict[str, tuple[int, _Value]]:
    """The columns of results, by heading: digits after the point, and the value in a run or group."""
    columns: dict[str, tuple[int, _Value]] = {
        "valid loss": (3, lambda one: one.loss),
        "greedy BLEU": (2, lambda one: one.bleu),
    }
    columns = {head: one for head, one in columns.items() if any(one[1](run) is not None for run in runs)}
    test_sets = list(dict.fromkeys(test_set for run in runs for test_set, one in run.scores.items() if one))
    for test_set, short in zip(test_sets, run_names(list(map(Path, test_sets))) if test_sets else (), strict=True):
        measure = next(key for key in MEASURES if any(key in run.scores.get(test_set, {}) for run in runs))
        columns[f"{short} {_NAMES[measure]}"] = (2, partial(_score, test_set=test_set, measure=measure))
    return columns


def _score(one: RunSummary | SeedGroup, test_set: str, measure: str) -> float | Spread | None:
    return one.scores.get(test_set, {}).get(measure)


def _cells(one: RunSummary | SeedGroup, columns: Mapping[str, tuple[int, _Value]]) -> list[str]:
    of = 1 if isinstance(one, RunSummary) else len(one.names)
    return [_written(value(one), digits, of) for digits, value in columns.values()]


def _written(value: float | Spread | None, digits: int, of: int) -> str:
    """A figure of a run, or of a group of `of` runs; one that only some of these have says of how many."""
    if isinstance(value, Spread):
        some = "" if value.runs == of else f" (of {value.runs})"
        return f"{value.mean:.{digits}f} ± {value.deviation:.{digits}f}{some}"
    return _UNKNOWN if value is None else f"{value:.{digits}f}"
