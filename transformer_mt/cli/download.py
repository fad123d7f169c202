"""`tmt download`: a corpus onto the disk, resumed where it broke off and verified."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def download(
    corpus: Annotated[str, typer.Argument(metavar="CORPUS", help="Which corpus: multi30k.")],
    to: Annotated[Path | None, typer.Option("--to", help="Folder for the files. [default: data/multi30k]")] = None,
    mirror: Annotated[str | None, typer.Option(help="Another address, or a folder, that has the files.")] = None,
) -> None:
    """Fetch a public corpus, resume a broken download, verify every file."""
    from transformer_mt.workflows.download import download as work

    folder = to or Path("data/multi30k")
    outcomes = []
    for name, outcome in work(corpus, folder, mirror):
        print(f"{folder / name}: {outcome}", file=sys.stderr)
        outcomes.append(outcome)
    if "downloaded and verified" not in outcomes:
        print(f"Nothing to fetch: {outcomes.count('verified')} files were there already.", file=sys.stderr)
