"""`tmt average`: average checkpoints of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transformer_mt.cli.options import RunOption

_LAST = "Number of checkpoints, newest first. Default: 5."
_STEP = "Take the checkpoint of this step; repeat it for the mean of several."
_OUTPUT = "New folder for the mean; the model of the run stays as it is."


def average(
    run: RunOption = None,
    last: Annotated[int | None, typer.Option(min=1, metavar="N", help=_LAST)] = None,
    step: Annotated[list[int] | None, typer.Option(min=0, metavar="N", help=_STEP)] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR", help=_OUTPUT)] = None,
    force: Annotated[bool, typer.Option("--force", help="Also replace a model that scores higher.")] = False,
) -> None:
    """Average the last checkpoints of a run; the result replaces its model unless it scores lower."""
    from transformer_mt import average as work

    report = work(run, last, force, steps=step or (), output=output)
    what = "checkpoint of step" if len(report.steps) == 1 else "mean of steps"
    made = f"{what} {', '.join(map(str, report.steps))}"
    if report.replaced:
        print(f"{report.model}: {made}")
    elif not report.compared:
        print(f"{report.model}: unchanged, it is the {made} already")
    else:
        print(f"{report.model}: unchanged, because the {made} scores lower; to replace it in any case:  --force")
