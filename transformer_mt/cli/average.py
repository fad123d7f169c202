"""`tmt average`: average the last checkpoints of a run."""

from __future__ import annotations

from typing import Annotated

import typer

from transformer_mt.cli.options import RunOption


def average(
    run: RunOption = None,
    last: Annotated[int, typer.Option("--last", min=1, metavar="N", help="Number of checkpoints, newest first.")] = 5,
) -> None:
    """Average the last checkpoints of a run; the result replaces its model."""
    from transformer_mt import average as work

    report = work(run, last)
    what = "checkpoint of step" if len(report.steps) == 1 else "mean of steps"
    print(f"{report.model}: {what} {', '.join(map(str, report.steps))}")
