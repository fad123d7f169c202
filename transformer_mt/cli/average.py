"""`tmt average`: one model from the last checkpoints of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def average(
    run: Annotated[Path, typer.Option("--run", help="Folder of the run, such as runs/NAME.", show_default=False)],
    last: Annotated[int, typer.Option("--last", min=1, help="How many checkpoints, counted from the newest.")] = 5,
) -> None:
    """Average the last checkpoints of a run into its model folder."""
    import sys

    from transformer_mt.config.load import load_config
    from transformer_mt.data.prepared import open_prepared
    from transformer_mt.decoding.model_directory import save_model_directory
    from transformer_mt.errors import TmtError
    from transformer_mt.text.codec import load_codecs
    from transformer_mt.training.run_directory import CONFIG, RunDirectory, Shipped

    directory = RunDirectory(run)
    if not directory.checkpoints.steps():
        raise TmtError("no checkpoints here", place=run, remedy="Give the folder of a run, such as runs/NAME.")
    config = load_config(run / CONFIG)
    checkpoint, problems = directory.checkpoints.newest()
    if checkpoint is None:
        raise TmtError("no checkpoint of this run can be used", place=run, remedy="\n  ".join(problems))
    whole, damaged = directory.checkpoints.whole()
    for problem in dict.fromkeys([*problems, *damaged]):
        print(f"tmt: {problem}: left out", file=sys.stderr)
    usable = [step for step in whole if step <= checkpoint.state.step]
    steps = checkpoint.state.latest(usable)[-min(last, config.training.kept_last) :]
    if len(steps) < last:
        newest = "the newest checkpoint is" if len(steps) == 1 else f"the newest {len(steps)} checkpoints are"
        print(f"tmt: only {newest} kept (training.keep_last)", file=sys.stderr)
    codecs = load_codecs(directory.model) if directory.model.is_dir() else open_prepared(config).codecs()
    save_model_directory(directory.model, config, directory.checkpoints.mean_weights(steps), codecs)
    directory.note_shipped(Shipped(steps, "average"))
    print(f"{directory.model}: mean of steps {', '.join(map(str, steps))}")
