"""`tmt convert`: a model folder of a model that another program has trained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_MODEL = "Folder of a model of Marian in Hugging Face's form, such as OPUS-MT."
_OUTPUT = "New folder for the model."
_TO = "Target language, or a tag for it. Default: the one that DIR names, or all that it has tags for."
_NAMED = "Default: the one that DIR names."


def convert(
    model: Annotated[Path, typer.Argument(metavar="DIR", help=_MODEL)],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help=_OUTPUT, show_default=False)],
    from_: Annotated[str | None, typer.Option("--from", metavar="CODE", help=f"Source language. {_NAMED}")] = None,
    to: Annotated[str | None, typer.Option("--to", metavar="CODE", help=_TO)] = None,
) -> None:
    """Convert an OPUS-MT model, to translate with it or to start a training from it."""
    from transformer_mt.workflows.convert import convert as work

    print(work(model, output, from_, to).summary)
