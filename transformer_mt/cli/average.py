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
    from transformer_mt.data.prepared import prepared_folder
    from transformer_mt.decoding.model_directory import save_model_directory
    from transformer_mt.errors import TmtError
    from transformer_mt.training.run_directory import CONFIG, RunDirectory, Shipped

    directory = RunDirectory(run)
    steps = directory.checkpoints.steps()[-last:]
    if not steps:
        raise TmtError("no checkpoints here", place=run, remedy="Give the folder of a run, such as runs/NAME.")
    if len(steps) < last:
        kept = "1 checkpoint is" if len(steps) == 1 else f"{len(steps)} checkpoints are"
        print(f"tmt: only {kept} kept (training.keep_last)", file=sys.stderr)
    config = load_config(run / CONFIG)
    codecs = directory.model if directory.model.is_dir() else prepared_folder(config)
    save_model_directory(directory.model, config, directory.checkpoints.mean_weights(steps), codecs)
    directory.note_shipped(Shipped(steps, "average"))
    print(f"{directory.model}: mean of steps {', '.join(map(str, steps))}")
