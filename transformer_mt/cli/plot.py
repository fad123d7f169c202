"""`tmt plot`: the learning curves of a run as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def plot(
    run: Annotated[Path, typer.Option("--run", help="Run folder, such as runs/NAME.", show_default=False)],
) -> None:
    """Draw loss, BLEU, learning rate and speed as PNG files in the run's plots folder."""
    from transformer_mt.errors import TmtError
    from transformer_mt.reporting.plots import plot_curves

    if not run.is_dir():
        raise TmtError("no such run folder", place=run, remedy="Check the path; `ls runs` lists yours.")
    for file in plot_curves(run / "metrics.jsonl", run / "plots"):
        print(file)
