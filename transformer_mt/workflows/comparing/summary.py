"""What the folder of a run says: its settings, its best validation, the scores of its model, and where it came from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError, safe_open

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.load import SCORES, flat, flat_values
from transformer_mt.config.runs import METRICS, MODEL, STEPS, WEIGHTS
from transformer_mt.config.schema import Config
from transformer_mt.errors import TmtError, reason
from transformer_mt.evaluation.metrics import METRICS as MEASURES
from transformer_mt.evaluation.record import entries_of, is_damaged, read_scores
from transformer_mt.reporting.curves import tokens_of
from transformer_mt.reporting.history import Record, points, records_of
from transformer_mt.reporting.notes import note
from transformer_mt.training.run_facts import (
    FROM_STEP,
    PARENT,
    SETTINGS,
    config_of_run,
    corpus_files_of,
    starts_of,
    versions_of,
)
from transformer_mt.training.schedules.base import ends_with
from transformer_mt.workflows.comparing.directions import with_means
from transformer_mt.workflows.tuning.halving import STOPPED

State = Literal["finished", "stopped", "unfinished"]
# Settings that are each run's own, or that do not change what it learns.
_LEFT_OUT = {"name", "data.prepared", "data.workers", "training.tracker"} | {
    f"runtime.{key}" for key in ("threads", "prefetch", "tensorboard")
}
# Without a mean of checkpoints, these change nothing, if the best one is kept.
KEPT = {f"training.{key}" for key in ("checkpoint_every", "keep_last", "keep_best", "average_checkpoints")}
MADE_WITH = {  # in run.json, and a note for it
    "git": "other code trained {others} than {first}",
    "packages": "other versions of packages trained {others} than {first}",
    "processes": "another number of processes trained {others} than {first}",
    "device": "another device, number of threads or number format trained {others} than {first}",
}
_MOST_CORPUS_KEYS = 3  # that are columns of their own
_LARGEST = 1e100  # not a score, and its square is a number


@dataclass(frozen=True)
class RunSummary:
    """What is known of a run.

    name:      of its folder, with parent folders in front if two names are equal
    state:     finished; stopped by a search; or unfinished, also if it goes on after an earlier end
    parameters: of its model; None before there is one
    updates:   of its last record
    best_step: update of the best validation; None if there was none
    seconds:   of training, without validations
    loss:      validation loss in nats per token, where the validation was best
    bleu:      greedy BLEU of the same validation
    scores:    by test set: `bleu` and other metrics with signatures, search settings and date, as in scores.json. Of
               several searches that of the config, otherwise the newest. Of several directions also the mean
    settings:  those that differ between the compared runs, by key; None if its config cannot be read
    """

    name: str
    folder: Path
    state: State
    parameters: int | None
    updates: int
    best_step: int | None
    seconds: float
    loss: float | None
    bleu: float | None
    scores: Mapping[str, Mapping[str, Any]]
    settings: Mapping[str, Any] | None


@dataclass(frozen=True)
class Origin:
    """What a run was made of; None: unknown.

    settings:   all that may change what it learns
    corpus:     contents of its files, in their order
    tokenizers: their checksum
    parent:     checksum of the weights that it started from; empty without such
    made_with:  what of its last start changes results without being a setting, by key of run.json
    has_ended:  whether its training has ended before, and made a model
    goes_on:    whether it was started again after that, with other settings, and has not ended
    has_other_history: whether its config does not say what made its model, which compares with no other seed
    """

    config: Config | None
    settings: Mapping[str, Any] | None
    corpus: Sequence[str] | None
    tokenizers: str
    parent: str | None
    made_with: Mapping[str, Any] = field(default_factory=dict)
    has_ended: bool = False
    goes_on: bool = False
    has_other_history: bool = False

    @classmethod
    def of(cls, folder: Path) -> Origin:
        """Prints a note if the config, or what run.json has to say, is missing or damaged."""
        config, starts = _config_of(folder), starts_of(folder)
        settings = None if config is None else flat_values(config)
        if settings is not None:
            only_kept = settings["training.average"] == "none" and settings["training.keep_best"] > 0
            left_out = _LEFT_OUT | (KEPT if only_kept else set())
            settings = {key: value for key, value in settings.items() if key not in left_out}
        if not starts:
            note(f"{folder}: no run.json that can be read: its corpus is unknown, so it is in no mean over seeds")
            return cls(config, settings, None, "", None)
        contents, listed = corpus_files_of(starts[-1]), starts[-1].get("corpus")
        corpus = tuple(content for _, content in contents) if contents or listed == [] else None
        parents = [str(start[PARENT]) for start in starts if PARENT in start]
        is_child = config is not None and config.training.start_from is not None
        parent = parents[-1] if parents else None if is_child else ""
        for unknown, what in ((corpus, "its corpus"), (parent, "the weights that it started from")):
            if unknown is None:
                note(f"{folder}: run.json does not say {what}, so it is in no mean over seeds")
        ends, steps = _ends_of_schedule(starts), _averaged_later(folder / MODEL)
        if len(ends) > 1:
            note(f"{folder}: begun for {ends[0]}, it went on for {ends[-1]}, so it is in no mean over seeds")
        if steps:
            note(f"{folder}: tmt average made its model later, of steps {steps}, so it is in no mean over seeds")
        has_other_history = len(ends) > 1 or bool(steps)
        ended = [start for start in starts if "finished" in start]
        goes_on = bool(ended) and ended[-1] is not starts[-1] and ended[-1].get(SETTINGS) != starts[-1].get(SETTINGS)
        tokenizers = str(starts[-1].get("tokenizers", ""))
        versions, others = versions_of(starts[-1]), {key: starts[-1].get(key) for key in ("processes", "device")}
        made_with = {"git": versions.pop("git", None), "packages": versions, **others}
        return cls(config, settings, corpus, tokenizers, parent, made_with, bool(ended), goes_on, has_other_history)


def with_corpus_keys(origins: Sequence[Origin]) -> list[Origin]:
    """With the settings of the corpus one by one, if each has one corpus, all of one kind, and few settings differ."""
    corpora = [one.settings["data.corpus"] for one in origins if one.settings is not None]
    if any(len(some) != 1 for some in corpora) or len({some[0]["kind"] for some in corpora}) != 1:
        return list(origins)
    flats = [flat(some[0], "data.corpus") for some in corpora]
    if len({key for own in flats for other in flats for key in own if own[key] != other.get(key)}) > _MOST_CORPUS_KEYS:
        return list(origins)
    found = []
    for one in origins:
        settings = dict(one.settings or {})
        own = [flat(corpus, "data.corpus") for corpus in settings.pop("data.corpus", ())]
        found.append(replace(one, settings={**settings, **own[0]}) if own else one)
    return found


def with_common_names(scores: Sequence[Mapping[str, Mapping[str, Any]]]) -> list[dict[str, Mapping[str, Any]]]:
    """The scores of several runs. A file of test sentences that was elsewhere for another run gets one name for all.

    It is the same if its name and its sentences are. A run with two such files keeps its own names.
    """

    def known_as(name: str, entry: Mapping[str, Any]) -> tuple[str, str]:
        return Path(name).name, str(entry.get("text") or name)

    names = dict[tuple[str, str], str]()
    for some in scores:
        for name, entry in some.items():
            names.setdefault(known_as(name, entry), name)
    found = []
    for some in scores:
        renamed = {names[known_as(name, entry)]: entry for name, entry in some.items()}
        found.append(renamed if len(renamed) == len(some) else dict(some))
    return found


def _ends_of_schedule(starts: Sequence[Mapping[str, Any]]) -> list[str]:
    """The limits with which the schedule of a run ended: if they differ, its learning rate jumped when it went on."""
    ends = dict[str, None]()
    begun = max((number for number, start in enumerate(starts) if start.get(FROM_STEP) == 0), default=0)
    for start in starts[begun:]:  # those before have trained nothing that is left
        with suppress(KeyError, ValueError):
            training = Config.model_validate(start[SETTINGS]).training
            if key := ends_with(training):
                ends[f"training.{key} {getattr(training, key)}"] = None
    return list(ends)


def _averaged_later(model: Path) -> str:
    """The steps of which `tmt average` has made a model, whose scores then do not belong to the validation."""
    with suppress(OSError, ValueError, TypeError, LookupError, RecursionError):
        made = json.loads((model / STEPS).read_text(encoding="utf-8"))
        return ", ".join(f"{step:,}" for step in made["steps"]) if made["by"] == "average" else ""
    return ""


def vocabularies_of(origins: Sequence[Origin]) -> list[str]:
    """What the vocabularies of each run are: losses of others do not compare."""
    if all(one.tokenizers for one in origins):
        return [one.tokenizers for one in origins]
    return [str(one.config and tokens_of(one.config)) for one in origins]


def folder_of(given: Path) -> Path:
    """The folder of a run; of its model, if that is given."""
    is_model = (given / WEIGHTS).is_file() and not (given / METRICS).exists()
    return given.parent if is_model and (given.parent / METRICS).is_file() else given


def summary_of(name: str, folder: Path, origin: Origin, keys: Sequence[str]) -> RunSummary:
    """keys: of the settings that differ between the runs. Raises TmtError if it is not a run."""
    records = records_of(folder)
    validations = [one for one in records if one.get("event") == "validation"]
    best = [one for one in validations if one.get("best")][-1:] or validations[-1:]
    loss, bleu = (points(best, "validation", key)[1] for key in ("loss", "bleu"))
    state, end = _state_of(records)
    if not records:
        note(f"{folder / METRICS}: no records, so nothing is known of its validations")
        state = "finished" if origin.has_ended else "unfinished"
    state = "unfinished" if origin.goes_on else state
    scores = _scores_of(folder, origin)
    if state == "unfinished" and (end is not None or origin.has_ended) and scores:
        note(f"{folder}: goes on after the training that made its model, so the scores of that model are left out")
        scores = {}
    own = origin.settings
    return RunSummary(
        name=name,
        folder=folder,
        state=state,
        parameters=_parameters_of(folder / MODEL / WEIGHTS),
        updates=records[-1]["step"] if records else 0,
        best_step=best[0]["step"] if best else None,
        seconds=_seconds(end) if end is not None and state != "unfinished" else sum(map(_seconds, validations)),
        loss=loss[0] if loss else None,
        bleu=bleu[0] if bleu else None,
        scores=scores,
        settings=None if own is None else {key: own[key] for key in keys if key in own},
    )


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


def _state_of(records: Sequence[Record]) -> tuple[State, Record | None]:
    """How a run is, and the record of its last end."""
    places = {str(one.get("event")): place for place, one in enumerate(records)}
    place = places.get("finished")
    if place is None:
        return "unfinished", None
    if any(places.get(event, -1) > place for event in ("step", "validation")):
        return "unfinished", records[place]
    return "stopped" if str(records[place].get("reason")).startswith(STOPPED) else "finished", records[place]


def _parameters_of(weights: Path) -> int | None:
    """How many numbers a model has; None, with a note if there is a file that cannot be read."""
    try:
        with safe_open(weights, framework="np") as opened:
            return sum(int(prod(opened.get_slice(name).get_shape())) for name in opened.keys())  # noqa: SIM118
    except FileNotFoundError:
        return None
    except (SafetensorError, OSError) as error:
        note(f"{weights} cannot be read, so its parameters are not counted: {reason(error)}")
        return None


def _seconds(record: Record) -> float:
    return _number(record.get("seconds")) or 0.0


def _scores_of(folder: Path, origin: Origin) -> dict[str, dict[str, Any]]:
    """By test set the entry of scores.json that was made with the search of the config, or else the newest one."""
    file = folder / MODEL / SCORES
    try:
        stored = read_scores(file)
    except OSError as error:
        note(f"{file} cannot be read, so its scores are left out: {error.strerror}")
        return {}
    if is_damaged(file, stored):
        note(f"{file} is damaged: its scores are left out")
    own = None if origin.config is None else origin.config.decoding
    found = {}
    for test_set, entry in stored.items():
        entries = [_checked(one) for one in entries_of(entry)]
        as_configured = [one for one in entries if _search_of(one) == own and one.get("weights") is None]
        if entries:
            found[test_set] = (as_configured or entries)[0]
    return with_means(found, () if origin.config is None else origin.config.data.all_directions)


def _search_of(entry: Mapping[str, Any]) -> DecodingConfig | None:
    """How the translations were searched; keys that an older version did not have get their defaults."""
    with suppress(ValueError):
        return DecodingConfig.model_validate(entry.get("decoding"))
    return None


def _checked(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with numbers only as scores, and signatures by metric."""
    kept = {key: value for key, value in entry.items() if key not in MEASURES}
    signatures = kept.get("signatures")
    kept["signatures"] = signatures if isinstance(signatures, dict) else {}
    return kept | {key: entry[key] for key in MEASURES if _number(entry.get(key)) is not None}


def _number(value: Any) -> float | None:
    """The value, if it is a number of usual size."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and abs(value) < _LARGEST else None
