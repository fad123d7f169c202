"""Which models are meant (if none is named: that of the run that finished last), and how they search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from transformer_mt.config.choices import CHOICES, chosen
from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.load import CONFIG, load_config
from transformer_mt.config.schema import Config
from transformer_mt.decoding.finding import find_model
from transformer_mt.decoding.searches.base import make_search, option_of
from transformer_mt.errors import TmtError


def find_models(given: Sequence[Path] | None) -> list[Path]:
    """The given folders, at least one. Raises TmtError as `find_model` does."""
    return [find_model(folder) for folder in given] if given else [find_model(None)]


def config_of_model(folder: Path) -> Config:
    """Raises TmtError if the folder holds no model."""
    file = folder / CONFIG
    if not file.is_file():
        raise TmtError("this is no model folder", place=folder, remedy="Give the `model` folder of a finished run.")
    return load_config(file)


def search_settings(folder: Path, given: Mapping[str, Any]) -> DecodingConfig:
    """A model's own search settings, with what is `given`; None changes nothing.

    A beam that is given without a method means beam search, unless the model's own method reads it. Raises TmtError, in
    words of the command line, if a setting would have no effect, settings contradict, or a value is out of range.
    """
    file = folder / CONFIG
    own = load_config(file).decoding if file.is_file() else DecodingConfig()
    changes = {key: value for key, value in given.items() if value is not None}
    _require_known(changes)
    if "beam" in changes and "beam" not in make_search(own).settings:
        changes.setdefault("method", DecodingConfig().method)
    cls, _ = chosen("search", changes.get("method", own.method))
    changes |= cls.adapt(changes)
    search = make_search(own.model_copy(update=changes))
    if refusal := search.refusal(given.keys() & changes):
        raise TmtError(refusal[0], remedy=refusal[1])
    if changes.get("n_best", 1) > own.beam and "beam" not in changes:
        changes["beam"] = changes["n_best"]  # a beam as wide as what is asked of it
    if "beam" in search.proposer.settings and "n_best" not in changes:
        changes["n_best"] = min(own.n_best, changes.get("beam", own.beam))
    try:
        return DecodingConfig.model_validate({**own.model_dump(), **changes})
    except ValidationError as error:
        problems = [(".".join(map(str, item["loc"])), item["msg"]) for item in error.errors()]
        # By the options that were given: a beam made as wide as --n-best is no option of the user's
        problems = [(name, said) for name, said in problems if given.get(name) is not None] or problems
        message = "; ".join(said.removeprefix("Value error, ") for _, said in problems)
        place = option_of(problems[0][0]) if problems[0][0] else ""
        raise TmtError(message[:1].lower() + message[1:], place=place, remedy="See the command's --help.") from None


def _require_known(changes: Mapping[str, Any]) -> None:
    """Raises TmtError for settings that do not exist, and for values that cannot be compared."""
    for name in changes:
        if name not in DecodingConfig.model_fields:
            remedy = f"Use one of: {', '.join(DecodingConfig.model_fields)}."
            raise TmtError(f"unknown setting '{name}'", remedy=remedy)
    if (method := changes.get("method", "beam")) not in CHOICES["search"]:
        raise TmtError(f"unknown method '{method}'", remedy=f"Use one of: {', '.join(CHOICES['search'])}.")
    for name in ("beam", "n_best"):
        if not isinstance(changes.get(name, 1), int):
            raise TmtError(f"{option_of(name)} must be a whole number, not {changes[name]!r}", remedy="For example: 5")
