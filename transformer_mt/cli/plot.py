"""`tmt plot`: draw the learning curves of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def plot(
    run: Annotated[Path, typer.Option("--run", help="Run folder, such as runs/NAME.", show_default=False)],
) -> None:
    """Draw loss, BLEU, learning rate and speed as PNG files in the run's plots folder."""
    from transformer_mt.reporting.plots import plot_run

    for file in plot_run(run):
        print(file)
