"""Which model a command means when none is named: that of the run that finished last."""

from __future__ import annotations

from pathlib import Path

RUNS = Path("runs")


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
