"""`tmt download`: fetch a corpus, resume broken downloads, verify every file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from transformer_mt.cli.completion import corpora

_CORPUS = "Corpus to download: multi30k."
_TO = "Folder for the files. Default: data/multi30k."
_MIRROR = "Another URL, or a folder, that has the files."


def download(
    corpus: Annotated[str, typer.Argument(metavar="CORPUS", help=_CORPUS, autocompletion=corpora)],
    to: Annotated[Path | None, typer.Option("--to", metavar="DIR", help=_TO)] = None,
    mirror: Annotated[str | None, typer.Option(metavar="URL", help=_MIRROR)] = None,
) -> None:
    """Download a public corpus and verify every file."""
    from transformer_mt.workflows.download import download as work

    folder = to or Path("data/multi30k")
    outcomes = []
    for name, outcome in work(corpus, folder, mirror):
        print(f"{folder / name}: {outcome}", file=sys.stderr)
        outcomes.append(outcome)
    if "downloaded and verified" not in outcomes:
        print(f"Nothing to fetch: {outcomes.count('verified')} files are already there.", file=sys.stderr)
