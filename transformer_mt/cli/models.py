"""Which models a command means (when none is named: that of the run that finished last), how they search, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_mt.cli.options import SEED

if TYPE_CHECKING:
    from transformer_mt.config.decoding import DecodingConfig
    from transformer_mt.decoding.translator import Translator
    from transformer_mt.errors import TmtError

RUNS = Path("runs")
SAMPLING = ("samples", "temperature", "top_k", "top_p")  # search settings that say something of samples only


def find_model(given: Path | None) -> Path:
    """The given folder, its `model` folder where a run directory was given, or the newest under runs/.

    Raises TmtError where there is none.
    """
    from transformer_mt.errors import TmtError

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


def search_settings(folder: Path, given: Mapping[str, Any]) -> DecodingConfig:
    """A model's own search settings, with what the command line changes; None changes nothing.

    A beam asked for without a method means beam search; with minimum Bayes risk, that it chooses among what the
    beam finds. Raises TmtError where options do not fit together, or a value is out of range.
    """
    from pydantic import ValidationError

    from transformer_mt.config.decoding import DecodingConfig
    from transformer_mt.config.load import CONFIG, load_config

    file = folder / CONFIG
    own = load_config(file).decoding if file.is_file() else DecodingConfig()
    changes = {key: value for key, value in given.items() if value is not None}
    changes.setdefault("method", "beam" if "beam" in changes else own.method)
    if changes["method"] == "mbr" and not changes.keys().isdisjoint(("beam", *SAMPLING)):
        changes["candidates"] = "beam" if "beam" in changes else "samples"
    wanted = own.model_copy(update=changes)
    _check_options_fit(wanted, changes)
    if changes.get("n_best", 1) > own.beam and "beam" not in changes:
        changes["beam"] = changes["n_best"]  # a beam as wide as what is asked of it
    if _by_beam(wanted) and "n_best" not in changes:
        changes["n_best"] = min(own.n_best, changes.get("beam", own.beam))
    try:
        return DecodingConfig.model_validate({**own.model_dump(), **changes})
    except ValidationError as error:
        raise _refused([(".".join(map(str, item["loc"])), item["msg"]) for item in error.errors()], given) from None


def _check_options_fit(wanted: DecodingConfig, changes: Mapping[str, Any]) -> None:
    """Raises TmtError where an option would say nothing."""
    drawn = [name for name in SAMPLING if name in changes]
    option = option_of(drawn[0]) if drawn else ""
    if wanted.method == "sample" and "beam" in changes:
        raise _unfit("--sample and --beam are two ways of searching", "Give one of them.")
    if wanted.method == "mbr" and "beam" in changes and drawn:
        raise _unfit(f"--mbr chooses among what --beam finds, and {option} is for samples", "Leave one of the two out.")
    if "length_penalty" in changes and not _by_beam(wanted):
        raise _unfit("--length-penalty is for a beam, but here samples are drawn", "Leave it out, or search by a beam.")
    for name in ("samples", "utility"):
        if name in changes and wanted.method != "mbr":
            raise _unfit(f"{option_of(name)} is for --mbr", "Add --mbr: of many, the one most like the others.")
    if wanted.method == "beam" and drawn:
        raise _unfit(
            f"{option} is for sampling, but this is a search for the best",
            "Add --sample (draw one) or --mbr (draw many, keep the one the others agree with).",
        )


def _by_beam(decoding: DecodingConfig) -> bool:
    from transformer_mt.decoding.searches.base import make_search
    from transformer_mt.decoding.searches.beam import Beam

    return isinstance(make_search(decoding).proposer, Beam)


def option_of(setting: str) -> str:
    """What a search setting is called on the command line."""
    return f"--{setting.replace('_', '-')}"


def _unfit(message: str, remedy: str) -> TmtError:
    from transformer_mt.errors import TmtError

    return TmtError(message, remedy=remedy)


def _refused(problems: Sequence[tuple[str, str]], given: Mapping[str, Any]) -> TmtError:
    """What is wrong, by the options that were given: a beam made as wide as --n-best is no option of the user's."""
    from transformer_mt.errors import TmtError

    own = [(name, said) for name, said in problems if given.get(name) is not None] or problems
    name, said = own[0][0], "; ".join(message.removeprefix("Value error, ") for _, message in own)
    place = option_of(name) if name else ""
    return TmtError(said[:1].lower() + said[1:], place=place, remedy="See the command's --help.")


def load_translator(
    folders: Sequence[Path],
    decoding: DecodingConfig | None,
    device: str,
    threads: int | None = None,
    seed: int = SEED,
    scored: bool = True,
) -> Translator:
    """One model or an ensemble, on the device and the threads that the options name. Raises as `Translator.load`."""
    import torch

    from transformer_mt.decoding.translator import Translator
    from transformer_mt.runtime.device import keep_freed_memory, pick_device

    if threads is not None:
        torch.set_num_threads(threads)
    keep_freed_memory()
    return Translator.load(folders, decoding, str(pick_device(device)), seed, scored)
