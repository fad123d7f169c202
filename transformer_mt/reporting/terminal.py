"""What a terminal can show: its width, and colours if it has them and the user wants them (https://no-color.org)."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from typing import TextIO

from transformer_mt.files.system import redraws

PLAIN_COLUMNS = 120  # of a line if stderr is not a terminal
LABEL = re.compile(r"\w* +(?=\S)")  # what a line begins with, such as `model      `
LABEL_COLUMNS = 11
_WORD = re.compile(r"[ \t]*[^ \t]+")  # with the spaces before it
STYLES = {"bold": 1, "red": 31, "green": 32}


def columns_of(stream: TextIO) -> int:
    """Width of the terminal that the stream writes to; PLAIN_COLUMNS if it is not a terminal."""
    if not stream.isatty():
        return PLAIN_COLUMNS
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):  # a stream without a descriptor
        return 80


def has_colours(stream: TextIO) -> bool:
    """Whether to write colours: only to a terminal, and not if NO_COLOR is set or TERM is dumb."""
    if not redraws(stream) or os.environ.get("NO_COLOR"):
        return False
    return sys.platform != "win32" or "WT_SESSION" in os.environ  # older Windows consoles print the codes


def painted(text: str, style: str, stream: TextIO) -> str:
    """The text in one of STYLES if the stream has colours, otherwise the text itself."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if style and has_colours(stream) else text


def wrapped(text: str, columns: int, indent: int | None = None) -> str:
    """The text in lines of at most `columns`; further lines are indented. Words are never broken."""
    label = LABEL.match(text)
    indent = indent or (LABEL_COLUMNS if label and label.end() == LABEL_COLUMNS else 2)
    return "\n".join(row for line in text.split("\n") for row in _rows(line, columns, " " * indent))


def _rows(line: str, columns: int, indent: str) -> list[str]:
    """One line of `wrapped`: itself if it is short enough."""
    if columns_of_text(line) <= columns:
        return [line]
    rows = [""]
    for word in _WORD.findall(line):
        if rows[-1].strip() and columns_of_text(rows[-1] + word) > columns:
            rows.append(indent + word.lstrip())
        else:
            rows[-1] += word
    return rows


def columns_of_text(text: str) -> int:
    """Number of terminal columns that a text takes: two for a Hangul letter, none for an accent or a joiner."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.category(letter) in ("Mn", "Me", "Cf") for letter in text)
