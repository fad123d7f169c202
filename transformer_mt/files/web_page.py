"""What came instead of a file: a web page, with which some servers answer, or nothing."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path

from transformer_mt.errors import TmtError

_PAGES = (b"<!doctype html", b"<html")


def is_web_page(head: bytes) -> bool:
    """Whether the first bytes of a file are those of an HTML page."""
    return head.removeprefix(BOM_UTF8).lstrip().lower().startswith(_PAGES)


def web_page(place: str | Path, remedy: str = "Download the data file itself, and replace this file.") -> TmtError:
    """The error for a web page that came instead of a file, from `place`."""
    message = "this is a web page, not data: a server answered with a page (a login, a notice or an error)"
    return TmtError(message, place=place, remedy=remedy)


def empty_file(place: str | Path) -> TmtError:
    """The error for a file without a byte."""
    return TmtError("the file is empty", place=place, remedy="Download or copy it again.")
