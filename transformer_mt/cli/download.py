"""`tmt download`: a corpus onto the disk, resumed where it broke off and verified."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

_AIHUB = """Sign up at https://aihub.or.kr, apply for a Korean-English parallel corpus, and unpack what you get.
  Then name the folder in your config:  corpus: {kind: aihub, files: data/aihub}   (see data/README.md)"""


def download(
    corpus: Annotated[str, typer.Argument(metavar="CORPUS", help="Which corpus: multi30k.")],
    to: Annotated[Path | None, typer.Option("--to", help="Folder for the files. [default: data/multi30k]")] = None,
    mirror: Annotated[str | None, typer.Option(help="Another address, or a folder, that has the files.")] = None,
) -> None:
    """Fetch a public corpus, resume a broken download, verify every file."""
    _check(corpus)

    from transformer_mt.corpora.multi30k import fetch_all

    folder = to or Path("data/multi30k")
    outcomes = []
    for name, outcome in fetch_all(folder, mirror):
        print(f"{folder / name}: {outcome}", file=sys.stderr)
        outcomes.append(outcome)
    if "fetched and verified" not in outcomes:
        print(f"Nothing to fetch: {outcomes.count('verified')} files were there already.", file=sys.stderr)


def _check(corpus: str) -> None:
    """Raises TmtError, with the way on, unless `corpus` is one that can be downloaded."""
    import difflib

    from transformer_mt.errors import TmtError

    if corpus == "multi30k":
        return
    if corpus == "aihub":
        raise TmtError("AI Hub hands its corpora out to registered users only", remedy=_AIHUB)
    if corpus == "phrasebook":
        raise TmtError(
            "the phrasebook comes with tmt; nothing is to be downloaded", remedy="corpus: {kind: phrasebook}"
        )
    near = difflib.get_close_matches(corpus, ["multi30k", "aihub", "phrasebook"], n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    remedy = "`tmt download multi30k` is public. Files of your own need no download: kinds text, tsv, csv and jsonl."
    raise TmtError(f"there is no corpus '{corpus}' to download{hint}", remedy=remedy)
