"""`tmt average`: average the last checkpoints of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def average(
    run: Annotated[Path, typer.Option("--run", help="Folder of the run, such as runs/NAME.", show_default=False)],
    last: Annotated[int, typer.Option("--last", min=1, help="Number of checkpoints, newest first.")] = 5,
) -> None:
    """Average the last checkpoints of a run; the result replaces its model."""
    from transformer_mt import average as work

    report = work(run, last)
    print(f"{report.model}: mean of steps {', '.join(map(str, report.steps))}")
