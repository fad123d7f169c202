"""Finds the model folder that a command uses."""

from __future__ import annotations

from pathlib import Path

from transformer_mt.errors import TmtError
from transformer_mt.files.replace import recover

RUNS = Path("runs")


def find_model(given: Path | None) -> Path:
    """The given folder, its `model` folder if it is a run directory, or the newest under runs/.

    Raises TmtError if there is none.
    """
    for run in RUNS.glob("*") if given is None else (given,):
        recover(run / "model")
    if given is not None:
        recover(given)
        if not given.exists():
            raise TmtError(
                "no such model folder",
                place=given,
                remedy="Check the path. `ls runs/*/model` lists the models of your runs.",
            )
        inside = given / "model"
        return inside if inside.is_dir() and not (given / "model.safetensors").exists() else given
    finished = sorted(RUNS.glob("*/model/model.safetensors"), key=lambda file: file.stat().st_mtime)
    if not finished:
        raise TmtError(
            "no finished run under runs/, so there is no model to use",
            remedy="Train one:  tmt train --config configs/quickstart.yaml   or name one:  --model DIR",
        )
    return finished[-1].parent
