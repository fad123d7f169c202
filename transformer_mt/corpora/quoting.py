"""Rows of cells that may be in quotes (CSV)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from transformer_mt.errors import TmtError, at, reason
from transformer_mt.files.encodings import STRICT
from transformer_mt.files.lines import read_lines

_SEPARATOR = re.compile("sep=.", re.IGNORECASE)  # the first line, by which Excel is told the character between columns
_MANY = 10  # lines of a row, which may be several rows after a quote that is not closed
_SHARE = 0.8  # of these lines


def is_separator_line(line: str) -> bool:
    """Whether the first line of a CSV file is none of its rows, but names the character between columns."""
    return bool(_SEPARATOR.fullmatch(line))


def parse_csv(lines: Iterable[str], delimiter: str, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """The line with which a row ends, counted from 1, and its cells. A CR in a line is a space, as in other tables.

    If the first rows have a space before their quotes, as in `"a", "b"`, spaces before cells are left out.
    Raises csv.Error.
    """
    remaining = iter(lines)
    head = list(islice(remaining, 2))
    mark = re.escape(delimiter)
    spaced = [re.match(rf'"[^"]*"{mark} +"[^"]*"({mark}|$)', line) is not None for line in head]
    skips = any(spaced) and (spaced[0] or head[0].count(delimiter) == head[0].count(f"{delimiter} "))
    texts = (line.replace("\r", " ") + "\n" for line in chain(head, remaining))
    reader = csv.reader(texts, delimiter=delimiter, strict=strict, skipinitialspace=skips)
    for row in reader:
        yield reader.line_num, row


def csv_rows(
    file: Path, delimiter: str = ",", encoding: str = "utf-8", errors: str = STRICT
) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file without empty lines, each with its first line.

    Raises TmtError at a row with wrong quoting.
    """
    lines = (line for _, line in read_lines(file, encoding, errors=errors))
    first = next(lines, "")
    offset = int(is_separator_line(first))
    rows = parse_csv(lines if offset else chain([first], lines), delimiter, strict=True)
    begin, width = offset + 1, 0
    while True:
        try:
            end, row = next(rows, (0, None))
        except csv.Error as error:
            remedy = 'Write a quote inside a quoted cell twice: "". For files without quoting use kind: tsv.'
            raise TmtError(f"wrong quoting: {reason(error)}", place=at(file, begin), remedy=remedy) from None
        if row is None:
            return
        width = width or len(row)
        is_long = end + offset - begin >= _MANY
        if is_long and width > 1 and (line := _line_of_rows(row, delimiter, width - 1)):
            remedy = "Look for a quote that is not closed. For files without quoting use kind: tsv."
            raise TmtError(f"a cell contains whole rows, such as '{line}'", place=at(file, begin), remedy=remedy)
        if row:
            yield begin, row
        begin = offset + end + 1


def _line_of_rows(row: Sequence[str], delimiter: str, number: int) -> str:
    """The start of a line of the longest cell, if nearly all of its lines have so many delimiters; else empty."""
    lines = max(row, key=len).split("\n")[1:-1]
    like_rows = [line for line in lines if line.count(delimiter) == number]
    return like_rows[0][:60] if like_rows and len(like_rows) >= _SHARE * len(lines) else ""
