"""One file from an address, or from a local folder, onto the disk: whole and verified, or not at all.

What has arrived so far waits in `NAME.part` and is resumed, in the same run or a later one; the file gets its name
only once its sha256 is right. Which files make a corpus is known elsewhere.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from urllib.parse import quote, urlsplit

from transformer_mt.errors import TmtError, from_os_error
from transformer_mt.files.checksum import sha256_of
from transformer_mt.files.lines import is_web_page, path_of, web_page
from transformer_mt.files.lock import lock
from transformer_mt.files.receiving import USUAL, MissingError, Patience, Reception
from transformer_mt.files.replace import move_into_place


def fetch(
    base: str, file: Path, sha256: str, *, remedy: str, progress: bool = True, patience: Patience = USUAL
) -> bool:
    """Make `file` exist with the sum `sha256`, from `base`/NAME: an http(s) address, file:// or a folder.

    Returns whether it had to be fetched. remedy: what to do where `base` cannot serve.
    Raises MissingError where `base` lacks the file, and TmtError for all else that stops it.
    """
    try:
        if file.exists():
            _verify(file, sha256, file, f"It is damaged or of another version. Delete it and run again:  rm '{file}'")
            return False
        file.parent.mkdir(parents=True, exist_ok=True)
        waiting = f"{file.parent}: waiting for another process that fetches into this folder"
        with lock(file.parent / ".lock", lambda: print(waiting, file=sys.stderr) if progress else None):
            if not file.exists():  # another process may have fetched it meanwhile
                _receive(base, file, sha256, remedy, progress, patience)
        return True
    except OSError as error:
        raise from_os_error(error, f"fetching {file.name}") from None


def _receive(base: str, file: Path, sha256: str, remedy: str, progress: bool, patience: Patience) -> None:
    """Fill NAME.part over HTTP or from a folder, and give it its name."""
    folder, part = _folder(base), file.with_name(f"{file.name}.part")
    place: str | Path
    if folder is None:
        place = f"{base.rstrip('/')}/{quote(file.name)}"
        reception = Reception(place, part, remedy, progress, patience)
        was_begun = reception.have() > 0
        reception.run()
        if was_begun and sha256_of(part) != sha256:  # what was begun long ago may be of another file
            part.unlink()
            reception.run()
    else:
        place = folder / file.name
        if not folder.is_dir():
            raise TmtError("there is no such folder to fetch from", place=folder, remedy=remedy)
        if not place.is_file():
            raise MissingError("the folder does not have this file", place=place, remedy=remedy)
        shutil.copyfile(place, part)
    _finish(part, file, sha256, place, remedy)


def _verify(file: Path, sha256: str, place: str | Path, remedy: str) -> None:
    """Raises TmtError, told of `place`, where the file's sum is another one."""
    found = sha256_of(file)
    if found == sha256:
        return
    with file.open("rb") as stream:
        if is_web_page(stream.read(512)):
            raise web_page(place, remedy)
    raise TmtError(f"this is not the official file: its sha256 is {found}, not {sha256}", place=place, remedy=remedy)


def _folder(base: str) -> Path | None:
    """The folder that `base` means; None for an address on the web."""
    try:
        parts = urlsplit(base)
    except ValueError as error:
        raise TmtError(f"this is no address: {error}", place=base, remedy=_BASES) from None
    if parts.scheme in ("http", "https"):
        return None
    if parts.scheme == "file":
        from urllib.request import url2pathname  # brings HTTP and TLS along

        return Path(url2pathname(parts.path))
    if "://" in base:
        raise TmtError(f"'{parts.scheme}' is no kind of address that can be read", place=base, remedy=_BASES)
    return path_of(base)


_BASES = "Give an address that begins with http:// or https://, or a folder."


def _finish(part: Path, file: Path, sha256: str, place: str | Path, remedy: str) -> None:
    """Give a complete download its name, or drop it where its sum is wrong."""
    try:
        _verify(part, sha256, place, remedy)
    except TmtError:
        part.unlink()
        raise
    move_into_place(part, file)
