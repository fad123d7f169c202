"""Download a file from an address, or copy it from a folder, and verify it.

The received bytes are in `NAME.part`. An interrupted download continues from there, in the same run or in a later one.
The file gets its name only if its sha256 is correct.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from urllib.parse import quote, urlsplit

from transformer_mt.errors import TmtError, from_os_error
from transformer_mt.files.checksum import sha256_of
from transformer_mt.files.lines import path_of
from transformer_mt.files.lock import lock
from transformer_mt.files.receiving import DEFAULT_RETRIES, HttpDownload, MissingError, RetryPolicy
from transformer_mt.files.replace import move_into_place
from transformer_mt.files.web_page import is_web_page, web_page


def fetch(base: str, file: Path, sha256: str, *, remedy: str, retries: RetryPolicy = DEFAULT_RETRIES) -> bool:
    """Make sure that `file` exists and has this sha256; get it from `base`: an http(s) address, file:// or a folder.

    Returns whether it was downloaded or copied now. remedy: for errors, what to do if `base` does not work.
    Raises MissingError if `base` does not have the file, and TmtError if anything else fails.
    """
    try:
        if file.exists():
            again = f"It is damaged or of another version. Delete it and run the same command again:  rm '{file}'"
            _verify(file, sha256, place=file, remedy=again)
            return False
        file.parent.mkdir(parents=True, exist_ok=True)
        waiting = f"{file.parent}: waiting for another process that downloads into this folder"
        with lock(file.parent / ".lock", lambda: print(waiting, file=sys.stderr)):
            if not file.exists():  # another process may have downloaded it in the meantime
                _receive(base, file, sha256, remedy, retries)
        return True
    except OSError as error:
        raise from_os_error(error, f"downloading {file.name}") from None


def _receive(base: str, file: Path, sha256: str, remedy: str, retries: RetryPolicy) -> None:
    """Download or copy to NAME.part, verify, and rename; a wrong one is deleted."""
    folder, part = _folder(base), file.with_name(f"{file.name}.part")
    place: str | Path
    if folder is None:
        place = f"{base.rstrip('/')}/{quote(file.name)}"
        transfer = HttpDownload(place, part, remedy, retries)
        is_resumed = transfer.have() > 0
        transfer.run()
        if is_resumed and sha256_of(part) != sha256:  # the old part may be of another file
            part.unlink()
            transfer.run()
    else:
        place = folder / file.name
        if not folder.is_dir():
            raise TmtError("no such folder", place=folder, remedy=remedy)
        if not place.is_file():
            raise MissingError("the folder does not have this file", place=place, remedy=remedy)
        shutil.copyfile(place, part)
    try:
        _verify(part, sha256, place, remedy)
    except TmtError:
        part.unlink()
        raise
    move_into_place(part, file)


def _verify(file: Path, sha256: str, place: str | Path, remedy: str) -> None:
    """Raises TmtError with this place if the sha256 of the file differs."""
    found = sha256_of(file)
    if found == sha256:
        return
    with file.open("rb") as stream:
        if is_web_page(stream.read(512)):
            raise web_page(place, remedy)
    raise TmtError(f"not the official file: its sha256 is {found}, not {sha256}", place=place, remedy=remedy)


def _folder(base: str) -> Path | None:
    """The folder that `base` means; None for an http(s) address."""
    try:
        parts = urlsplit(base)
    except ValueError as error:
        raise TmtError(f"not a valid address: {error}", place=base, remedy=_BASES) from None
    if parts.scheme in ("http", "https"):
        return None
    if "://" in base and parts.scheme != "file":
        raise TmtError(f"'{parts.scheme}' addresses are not supported", place=base, remedy=_BASES)
    return path_of(base)


_BASES = "Give an address that starts with http:// or https://, or a folder."
