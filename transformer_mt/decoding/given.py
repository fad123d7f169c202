"""What callers in Python give: text, one line or many, and as many prefixes and terms as lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from itertools import repeat
from pathlib import Path
from typing import TypeVar

from transformer_mt.errors import TmtError, named, number_of

T = TypeVar("T")
_ONE_EACH = "Give one for each line, in the same order."
_REMEDY = 'Give one line as str, or an iterable of lines:  translate("...")  translate(["...", "..."])'


def checked(lines: str | Iterable[str]) -> Iterator[str]:
    """The lines; a str is one line. Raises TmtError if they are not text: at once, or when a wrong line is read."""
    if isinstance(lines, str):
        return iter([checked_text(lines)])
    if isinstance(lines, (bytes, bytearray)):
        raise TmtError("bytes are not text", remedy="Decode them first:  line.decode()")
    if isinstance(lines, Path):
        raise TmtError("a path is not text", place=lines, remedy="Read its lines first:  path.read_text().splitlines()")
    if not isinstance(lines, Iterable):
        raise TmtError(f"{named(lines)} is not text", remedy=_REMEDY)
    return (checked_text(line, f"line {number}", _REMEDY) for number, line in enumerate(lines, start=1))


def checked_text(text: object, place: str = "", remedy: str = "Give a str.") -> str:
    """The same text. Raises TmtError if it is not text that UTF-8 can encode."""
    if not isinstance(text, str):
        raise TmtError(f"{named(text)} is not text", place=place, remedy=remedy)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TmtError(
            f"character {error.start + 1} is U+{ord(text[error.start]):04X}, half of a surrogate pair",
            place=place,
            remedy='Replace such characters:  text.encode("utf-8", "replace").decode()',
        ) from None
    return text


def prefix_for_each_line(prefixes: str | Iterable[str] | None, n_lines: int | None) -> Iterator[str]:
    """The prefixes; one str, or None, is for all lines. Raises TmtError as `checked_text` and `for_each_line` do."""
    if prefixes is None or isinstance(prefixes, (str, bytes)):
        return repeat(checked_text(prefixes or "", "prefixes"))
    return (checked_text(prefix, "prefixes") for prefix in for_each_line(prefixes, "prefixes", n_lines))


def for_each_line(given: Iterable[T], name: str, n_lines: int | None) -> Iterator[T]:
    """What is given for each line. Raises TmtError if there are fewer than lines, or more and both numbers are known.

    name:    of one of them, such as `prefix`
    n_lines: None: not known
    """
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
        raise TmtError(f"{named(given)} is not a list", place=name, remedy=_ONE_EACH)
    if n_lines is not None and isinstance(given, Sized) and len(given) != n_lines:
        raise TmtError(f"{len(given):,} for {number_of(n_lines, 'line')}", place=name, remedy=_ONE_EACH)
    return _or_missing(given, name)


def _or_missing(given: Iterable[T], name: str) -> Iterator[T]:
    count = 0
    for one in given:
        yield one
        count += 1
    raise TmtError(f"{count:,} for more lines than that", place=name, remedy=_ONE_EACH)
