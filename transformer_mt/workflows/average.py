"""One model from the last checkpoints of a run."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from transformer_mt.config.load import CONFIG, load_config
from transformer_mt.data.prepared import open_prepared
from transformer_mt.decoding.model_directory import save_model_directory
from transformer_mt.errors import TmtError
from transformer_mt.text.codec import load_codecs
from transformer_mt.training.run_directory import FinalModel, RunDirectory


@dataclass(frozen=True)
class AverageReport:
    """steps: of the checkpoints that `model` is the mean of."""

    model: Path
    steps: list[int]


def average(run: str | Path, last: int = 5) -> AverageReport:
    """Replace a run's model by the mean of its last checkpoints. Damaged ones are left out, which is said on stderr.

    Raises TmtError if there is no usable checkpoint.
    """
    if last < 1:
        raise TmtError(f"the mean of {last} checkpoints", remedy="Give a number from 1 on:  --last 5")
    directory = RunDirectory(Path(run))
    if not directory.checkpoints.steps():
        raise TmtError("no checkpoints here", place=run, remedy="Give the folder of a run, such as runs/NAME.")
    config = load_config(directory.folder / CONFIG)
    checkpoint, problems = directory.checkpoints.newest()
    if checkpoint is None:
        raise TmtError("no checkpoint of this run can be used", place=run, remedy="\n  ".join(problems))
    whole, damaged = directory.checkpoints.undamaged()
    for problem in dict.fromkeys([*problems, *damaged]):
        print(f"tmt: {problem}: left out", file=sys.stderr)
    usable = [step for step in whole if step <= checkpoint.state.step]
    steps = checkpoint.state.latest(usable)[-min(last, config.training.kept_last) :]
    if len(steps) < last:
        newest = "the newest checkpoint is" if len(steps) == 1 else f"the newest {len(steps)} checkpoints are"
        print(f"tmt: only {newest} kept (training.keep_last)", file=sys.stderr)
    codecs = load_codecs(directory.model) if directory.model.is_dir() else open_prepared(config).codecs()
    save_model_directory(directory.model, config, directory.checkpoints.mean_weights(steps), codecs)
    directory.record_final_model(FinalModel(steps, "average"))
    return AverageReport(directory.model, steps)
