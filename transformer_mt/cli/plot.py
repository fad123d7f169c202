"""`tmt plot`: pictures of runs, and of prepared data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transformer_mt.cli import completion
from transformer_mt.cli.options import SetOption, ThemeOption, picture_file

_RUNS = "Folder of the run; repeat it to compare several in one picture. Default: the run that finished last."
_DATA = "YAML config: draw the sentence lengths and vocabulary of its training data."
_RUN = typer.Option("--run", metavar="DIR", help=_RUNS, autocompletion=completion.runs)
_CONFIG = typer.Option("--config", "-c", metavar="FILE", help=_DATA, autocompletion=completion.config_files)
_OUTPUT = (
    "One picture, .png or .svg. Default: PNG files in `plots` of the run or data; for several runs learning-curves.png."
)
_PICTURE = typer.Option("--output", "-o", metavar="FILE", help=_OUTPUT, parser=picture_file)


def plot(
    run: Annotated[list[Path] | None, _RUN] = None,
    config: Annotated[Path | None, _CONFIG] = None,
    set_: SetOption = None,
    output: Annotated[Path | None, _PICTURE] = None,
    theme: ThemeOption = "light",
) -> None:
    """Draw the learning curves of one run or several, or the lengths and the vocabulary of prepared data."""
    from transformer_mt.workflows.plot import plot as work

    for file in work(run or (), config, set_ or (), output, theme):
        print(file)
