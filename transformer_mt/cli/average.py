"""`tmt average`: average the last checkpoints of a run."""

from __future__ import annotations

from typing import Annotated

import typer

from transformer_mt.cli.options import RunOption


def average(
    run: RunOption = None,
    last: Annotated[int, typer.Option("--last", min=1, metavar="N", help="Number of checkpoints, newest first.")] = 5,
    force: Annotated[bool, typer.Option("--force", help="Also replace a model that scores higher.")] = False,
) -> None:
    """Average the last checkpoints of a run; the result replaces its model unless it scores lower."""
    from transformer_mt import average as work

    report = work(run, last, force)
    what = "checkpoint of step" if len(report.steps) == 1 else "mean of steps"
    made = f"{what} {', '.join(map(str, report.steps))}"
    if report.replaced:
        print(f"{report.model}: {made}")
    elif not report.compared:
        print(f"{report.model}: unchanged, it is the {made} already")
    else:
        print(f"{report.model}: unchanged, because the {made} scores lower; to replace it in any case:  --force")
