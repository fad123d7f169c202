"""Finds the model folder that a command uses. Importing this file takes no time: shell completion does."""

from __future__ import annotations

import json
import os
import shlex
from contextlib import suppress
from pathlib import Path

from transformer_mt.config.runs import FACTS, METRICS, MODEL, RUNS, STATE, WEIGHTS
from transformer_mt.errors import TmtError
from transformer_mt.files.replace import recover


def find_model(given: Path | None) -> Path:
    """The given folder, its `model` folder if it is a run directory, or that of the run that finished last.

    Raises TmtError if there is none.
    """
    if given is None:
        return newest_model()
    recover(given / MODEL)
    recover(given)
    if not given.exists():
        raise TmtError(
            "no such model folder",
            place=given,
            remedy="Check the path. `ls runs/*/model` lists the models of your runs.",
        )
    if (given / STATE).exists():
        checkpoint = given.absolute()
        step = checkpoint.name.rpartition("-")[2].lstrip("0") or "0"
        run = shlex.quote(str(checkpoint.parent.parent))
        remedy = f"Make a model of it:  tmt average --run {run} --step {step} --output DIR"
        raise TmtError("this is a checkpoint, not a model", place=given, remedy=remedy)
    if (given / WEIGHTS).exists():
        return given
    inside = given / MODEL
    if not inside.is_dir() and _is_run(given):
        raise TmtError("this run has not finished, so it has no model yet", place=given, remedy=how_to_finish(given))
    return inside if inside.is_dir() else given


def newest_model() -> Path:
    """The model of the run under runs/ that finished last.

    Averaging checkpoints, copying or renaming a run does not count as finishing it. Models of runs that have never
    finished, made by `tmt average`, come after all others. Raises TmtError if there is none.
    """
    for run in RUNS.glob("*"):
        with suppress(PermissionError):  # told by `closed_runs`
            recover(run / MODEL)
    models = [weights.parent for weights in RUNS.glob(f"*/{MODEL}/{WEIGHTS}")]
    if models:
        return max(sorted(models), key=lambda model: _finish_of(model.parent))
    if closed := closed_runs():
        remedy = "Check its permissions, or name a model:  --model DIR"
        raise TmtError("no permission to read this folder", place=closed[0], remedy=remedy)
    unfinished = unfinished_runs()
    if unfinished:
        place = unfinished[-1]
        raise TmtError("no run has finished, so there is no model to use", place=place, remedy=how_to_finish(place))
    raise TmtError(
        "no finished run under runs/, so there is no model to use",
        remedy="Train one:  tmt train --config configs/quickstart.yaml   or name one:  --model DIR",
    )


def closed_runs() -> list[Path]:
    """The folders of runs whose permissions hide what is in them."""
    folders = (RUNS, *RUNS.glob("*"), *RUNS.glob(f"*/{MODEL}"))
    there = [folder for folder in folders if os.path.isdir(folder)]  # noqa: PTH112 (Path.is_dir needs permission)
    return [folder for folder in there if not os.access(folder, os.R_OK | os.X_OK)]


def unfinished_runs() -> list[Path]:
    """The runs under runs/ that have never finished, the one that was started last at the end."""
    runs = [facts.parent for facts in RUNS.glob(f"*/{FACTS}") if finished_at(facts.parent) is None]
    return sorted(runs, key=lambda run: (run / FACTS).stat().st_mtime)


def how_to_finish(run: Path) -> str:
    """What to do with a run that has no model yet."""
    if not any((run / "checkpoints").glob("step-*")):
        return "Repeat its `tmt train` command; it has no checkpoint yet."
    return (
        "Repeat its `tmt train` command to finish it, or make a model of what it has learnt so far:"
        f"  tmt average --run {shlex.quote(str(run))} --last 1"
    )


def finished_at(run: Path) -> float | None:
    """When the training of a run ended last, in seconds since 1970; None if it never did, or is unknown.

    From run.json, or from the metrics of runs that older versions trained.
    """
    return _recorded_finish(run)[0]


def _finish_of(run: Path) -> tuple[bool, float, bool]:
    """What orders the models of runs: unfinished runs first, then by time; a copy before the run it was copied from."""
    finished, name = _recorded_finish(run)
    if finished is None and not _is_run(run):  # a model without a record
        finished = (run / MODEL / WEIGHTS).stat().st_mtime
    return finished is not None, finished or 0.0, name == run.name


def _recorded_finish(run: Path) -> tuple[float | None, str]:
    """When the training ended, and the name that the folder had then."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        for start in reversed(json.loads((run / FACTS).read_text(encoding="utf-8"))):
            if "finished" in start:
                return float(start["finished"]["time"]), str(start["finished"]["run"])
    times: dict[int, float] = {}  # by step: a finished run that is started again says so again
    with suppress(OSError), (run / METRICS).open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if '"finished"' in line:
                with suppress(ValueError, TypeError, KeyError):
                    record = json.loads(line)
                    times.setdefault(int(record["step"]), float(record["time"]))
    return (list(times.values())[-1] if times else None), ""


def _is_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in (FACTS, METRICS))
