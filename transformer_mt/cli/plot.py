"""`tmt plot`: pictures of runs, and of prepared data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transformer_mt.cli.completion import config_files, runs
from transformer_mt.cli.options import SetOption, ThemeOption
from transformer_mt.errors import TmtError

_RUN = "Folder of the run, such as runs/NAME; repeat it to compare several in one picture."
_CONFIG = "YAML config: draw the sentence lengths and vocabulary of its training data."
_OUTPUT = (
    "One picture, .png or .svg. Default: PNG files in `plots` of the run or data; for several runs learning-curves.png."
)


def plot(
    run: Annotated[list[Path] | None, typer.Option("--run", metavar="DIR", help=_RUN, autocompletion=runs)] = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help=_CONFIG, autocompletion=config_files)
    ] = None,
    set_: SetOption = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help=_OUTPUT)] = None,
    theme: ThemeOption = "light",
) -> None:
    """Draw the learning curves of one run or several, or the lengths and the vocabulary of prepared data."""
    from transformer_mt.workflows.plot import plot_prepared, plot_runs

    if bool(run) == (config is not None):
        what = "--run and --config cannot be combined" if run else "give --run or --config"
        raise TmtError(what, remedy="For a run:  tmt plot --run runs/NAME      For prepared data:  tmt plot --config C")
    if set_ and config is None:
        raise TmtError("--set needs --config", remedy="Remove --set: a run keeps the settings it was trained with.")
    files = plot_runs(run, output, theme) if run else plot_prepared(config or "", set_ or (), output, theme)
    for file in files:
        print(file)
