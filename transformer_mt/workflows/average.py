"""Averages the last checkpoints of a run into its model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from transformer_mt.config.load import CONFIG, load_config
from transformer_mt.data.prepared import open_prepared
from transformer_mt.decoding.model_directory import save_model_directory
from transformer_mt.errors import TmtError
from transformer_mt.reporting.notes import note
from transformer_mt.text.codec import load_codecs
from transformer_mt.training.run_directory import FinalModel, RunDirectory


@dataclass(frozen=True)
class AverageReport:
    """steps: of the averaged checkpoints."""

    model: Path
    steps: list[int]


def average(run: str | Path, last: int = 5) -> AverageReport:
    """Replace the model of a run by the mean of its last checkpoints, without damaged ones.

    Raises TmtError if there is no usable checkpoint.
    """
    if last < 1:
        raise TmtError(f"cannot average {last} checkpoints", remedy="Use a number of at least 1:  --last 5")
    directory = RunDirectory(Path(run))
    if not directory.checkpoints.steps():
        raise TmtError(
            "no checkpoints in this folder", place=run, remedy="Name the folder of a run, such as runs/NAME."
        )
    config = load_config(directory.folder / CONFIG)
    checkpoint, problems = directory.checkpoints.newest()
    if checkpoint is None:
        raise TmtError("no usable checkpoint in this run", place=run, remedy="\n  ".join(problems))
    undamaged, damaged = directory.checkpoints.undamaged()
    for problem in dict.fromkeys([*problems, *damaged]):
        note(f"{problem}: not averaged")
    usable = [step for step in undamaged if step <= checkpoint.state.step]
    steps = checkpoint.state.latest(usable)[-min(last, config.training.kept_last) :]
    if len(steps) < last:
        newest = "checkpoint" if len(steps) == 1 else f"{len(steps)} checkpoints"
        note(f"averaged only the newest {newest}; training.keep_last decides how many a run keeps")
    codecs = load_codecs(directory.model) if directory.model.is_dir() else open_prepared(config).codecs()
    save_model_directory(directory.model, config, directory.checkpoints.mean_weights(steps), codecs)
    directory.record_final_model(FinalModel(steps, "average"))
    return AverageReport(directory.model, steps)
