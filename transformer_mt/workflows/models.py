"""Finds models (by default that of the run that finished last) and their search settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from transformer_mt.config.choices import CHOICES, chosen
from transformer_mt.config.decoding import DecodingConfig, SearchName
from transformer_mt.config.load import CONFIG, load_config
from transformer_mt.config.problems import plain, value_problem
from transformer_mt.config.runs import FACTS
from transformer_mt.config.schema import Config
from transformer_mt.decoding.finding import closed_runs, find_model, finished_at, unfinished_runs
from transformer_mt.decoding.searches.base import make_search, option_of
from transformer_mt.errors import TmtError
from transformer_mt.files.lines import paths_of
from transformer_mt.reporting.notes import note

IN_HELP = "Run the command with --help to see its options."


def find_models(given: str | Path | Sequence[str | Path] = ()) -> list[Path]:
    """The model folders, at least one. Default: that of `default_model`. Raises TmtError as `find_model` does."""
    if given == ():
        return [default_model()]
    folders = paths_of(given)
    if not folders:  # a pattern may have found nothing: another model would be a surprise
        raise TmtError("the list of models is empty", remedy="Name a run or model folder, such as runs/NAME.")
    return [find_model(folder) for folder in folders]


def default_model() -> Path:
    """The model of the run that finished last, which a note names. Raises TmtError if there is none."""
    model = find_model(None)
    runs, finished = [run for run in unfinished_runs() if run != model.parent], finished_at(model.parent) or 0.0
    later = [run for run in runs if (run / FACTS).stat().st_mtime > finished]
    more = f"; {later[-1]} has not finished" if later else ""
    more += f"; no permission to read {closed[0]}" if (closed := closed_runs()) else ""
    note(f"model {model.parent}{more}")
    return model


def config_of_model(folder: Path) -> Config:
    """The config in a model folder. Raises TmtError if the folder has no model."""
    file = folder / CONFIG
    if not file.is_file():
        raise TmtError(
            "not a model folder", place=folder, remedy="Name a run folder, such as runs/NAME, or its folder `model`."
        )
    return load_config(file)


def search_settings(folder: Path, given: Mapping[str, Any]) -> DecodingConfig:
    """The search settings of a model with those that are given. Raises TmtError as `changed_settings` does."""
    file = folder / CONFIG
    return changed_settings(load_config(file).decoding if file.is_file() else DecodingConfig(), given)


def changed_settings(own: DecodingConfig, given: Mapping[str, Any]) -> DecodingConfig:
    """The search settings of a model with those that are given; None keeps the setting of the model.

    A beam without a method means beam search, unless the method of the model uses a beam; 1 is greedy search. Raises
    TmtError, with options of the command line, if a setting has no effect, if settings contradict each other, or if a
    value is wrong.
    """
    changes = {key: plain(value) for key, value in given.items() if value is not None}
    _check_values(changes)
    if "method" in changes:  # with options it is a dict
        changes["method"] = TypeAdapter(SearchName).validate_python(changes["method"])
    search = make_search(own)
    if "beam" in changes and ("beam" not in search.reads or ("beam" not in search.settings and changes["beam"] == 1)):
        changes.setdefault("method", DecodingConfig().method)
    cls, _ = chosen("search", changes.get("method", own.method))
    changes |= cls.adapt(changes)
    search = make_search(own.model_copy(update=changes))
    if refusal := search.refusal(given.keys() & changes):
        raise TmtError(refusal[0], remedy=refusal[1])
    if changes.get("n_best", 1) > own.beam and "beam" not in changes:
        changes["beam"] = changes["n_best"]  # a beam that is wide enough
    if "beam" in search.proposer.settings and "n_best" not in changes:
        changes["n_best"] = min(own.n_best, changes.get("beam", own.beam))
    try:
        return DecodingConfig.model_validate({**own.model_dump(), **changes})
    except ValidationError as error:  # all values are right, so the settings contradict each other
        problems = str(error.errors()[0]["ctx"]["error"]).splitlines()
        raise TmtError("; ".join(problems), remedy=IN_HELP) from None


def _check_values(changes: Mapping[str, Any]) -> None:
    """Raises TmtError if a setting does not exist, or its value has the wrong type or is out of range."""
    try:
        DecodingConfig.model_validate(changes)
    except ValidationError as error:
        # An error without a key is a contradiction. Those are checked later, with the settings of the model.
        if problems := [_problem(item) for item in error.errors() if item["loc"]]:
            raise TmtError("; ".join(problems), remedy=IN_HELP) from None


def _problem(item: Mapping[str, Any]) -> str:
    name, inner = str(item["loc"][0]), str(item["loc"][-1])
    if name == "method" and inner not in ("method", "name", "options", *CHOICES["search"]):
        name = f"method.{inner}"
    if item["type"] == "extra_forbidden":
        return f"unknown setting '{name}'; the settings are {', '.join(DecodingConfig.model_fields)}"
    return f"{name if name.startswith('method') else option_of(name)} {value_problem(item)}"
