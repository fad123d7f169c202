"""Which models are meant (if none is named: that of the run that finished last), and how they search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.load import CONFIG, load_config
from transformer_mt.config.schema import Config
from transformer_mt.decoding.searches.base import make_search
from transformer_mt.decoding.searches.beam import Beam
from transformer_mt.decoding.searches.sampling import Sampling
from transformer_mt.errors import TmtError
from transformer_mt.files.replace import recover

RUNS = Path("runs")
_DRAWS = ("samples", *Sampling.settings)  # settings that matter for samples only


def find_model(given: Path | None) -> Path:
    """The given folder, its `model` folder if it is a run directory, or the newest under runs/.

    Raises TmtError if there is none.
    """
    for run in RUNS.glob("*") if given is None else (given,):
        recover(run)
        recover(run / "model")
    if given is not None:
        if not given.exists():
            raise TmtError("no such model folder", place=given, remedy="Check the path; `ls runs/*/model` lists yours.")
        inside = given / "model"
        return inside if inside.is_dir() and not (given / "model.safetensors").exists() else given
    finished = sorted(RUNS.glob("*/model/model.safetensors"), key=lambda file: file.stat().st_mtime)
    if not finished:
        raise TmtError(
            "no finished run under runs/, so there is no model to use",
            remedy="Train one:  tmt train --config configs/quickstart.yaml   or name one:  --model DIR",
        )
    return finished[-1].parent


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

    A beam asked for without a method means beam search; with minimum Bayes risk, that it chooses among what the beam
    finds. Raises TmtError, in words of the command line, if settings do not fit together or a value is out of range.
    """
    file = folder / CONFIG
    own = load_config(file).decoding if file.is_file() else DecodingConfig()
    changes = {key: value for key, value in given.items() if value is not None}
    changes.setdefault("method", "beam" if "beam" in changes else own.method)
    if changes["method"] == "mbr" and not changes.keys().isdisjoint(("beam", *_DRAWS)):
        changes["candidates"] = "beam" if "beam" in changes else "samples"
    wanted = own.model_copy(update=changes)
    by_beam = isinstance(make_search(wanted).proposer, Beam)
    _check_settings_fit(wanted, changes, by_beam)
    if changes.get("n_best", 1) > own.beam and "beam" not in changes:
        changes["beam"] = changes["n_best"]  # a beam as wide as what is asked of it
    if by_beam and "n_best" not in changes:
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


def option_of(setting: str) -> str:
    """What a search setting is called on the command line."""
    return f"--{setting.replace('_', '-')}"


def _check_settings_fit(wanted: DecodingConfig, changes: Mapping[str, Any], by_beam: bool) -> None:
    """Raises TmtError if a setting would have no effect."""
    drawn = [name for name in _DRAWS if name in changes]
    option = option_of(drawn[0]) if drawn else ""
    if wanted.method == "sample" and "beam" in changes:
        raise TmtError("--sample and --beam are two ways of searching", remedy="Give one of them.")
    if wanted.method == "mbr" and "beam" in changes and drawn:
        message = f"--mbr chooses among what --beam finds, and {option} is for samples"
        raise TmtError(message, remedy="Leave one of the two out.")
    if "length_penalty" in changes and not by_beam:
        message = "--length-penalty is for a beam, but here samples are drawn"
        raise TmtError(message, remedy="Leave it out, or search by a beam.")
    for name in ("samples", "utility"):
        if name in changes and wanted.method != "mbr":
            remedy = "Add --mbr: of many, the one most like the others."
            raise TmtError(f"{option_of(name)} is for --mbr", remedy=remedy)
    if wanted.method == "beam" and drawn:
        raise TmtError(
            f"{option} is for sampling, but this is a search for the best",
            remedy="Add --sample (draw one) or --mbr (draw many, keep the one the others agree with).",
        )
