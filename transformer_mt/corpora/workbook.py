"""The rows of an .xlsx workbook, one by one, and the pairs in them.

Only this module imports openpyxl and handles its exceptions.
"""

from __future__ import annotations

import warnings
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from transformer_mt.corpora.base import Pair, SkippedRows
from transformer_mt.corpora.tables import Skip, cell_text
from transformer_mt.errors import TmtError, at, from_os_error, reason
from transformer_mt.files.memory import MemoryLimit
from transformer_mt.files.opening import open_seekable

LARGEST_PART = 1 << 30  # bytes, unpacked; a small workbook can contain many GiB
MOST_MEMORY = 4 << 30  # bytes for what openpyxl makes of a part; 16 MiB of empty cells or styles become one GiB
MOST_ROWS = 1 << 21  # of a sheet; Excel has half of that, and a row may claim any number
MOST_MISSING = 1 << 26  # cells of a sheet that are empty; a single far one makes a row of 16,384
HEADER_ROWS = 10  # the header is one of the first rows of a sheet; a title can come before it
_NO_HEADER = "no header names both columns"
_SAME_HEADER = "If these rows are pairs, give the sheet the same header as the others."
Row = tuple[int, Sequence[Any]]  # the number of the row, counted from 1, and its cells

# openpyxl raises these for damaged files and for files that are not workbooks; SyntaxError means bad XML inside.
# OSError: a place in the archive that does not exist; RecursionError: XML that is nested too deeply.
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, SyntaxError, EOFError, KeyError, ValueError, TypeError, OSError),
    *(IndexError, AttributeError, RecursionError, OverflowError, NotImplementedError, RuntimeError, MemoryError),
)


class Header(NamedTuple):
    """The header of a table. end: its row, counted from 1; 0: none. source, target: the columns, counted from 0."""

    end: int
    source: int
    target: int


def workbook_pairs(
    file: Path, find: Callable[[Sequence[Row]], Header | None], skip: Skip, sheet: str | None = None
) -> Generator[Pair, None, int]:
    """The rows of every sheet in which `find` sees a header; returns the number of these sheets.

    Other sheets with content, such as notes, are skipped. Places count the rows of a sheet from 1.
    find: gets the first rows. sheet: the only sheet to read.
    """
    n_read = 0
    for title, sheet_rows in open_sheets(file):
        if sheet not in (None, title):
            continue
        rows = enumerate(sheet_rows, start=1)
        first = list(islice(rows, HEADER_ROWS))
        header = find(first)
        if header is None:
            if filled := sum(any(row) for _, row in chain(first, rows)):
                skip(SkippedRows(f"{file}[{title}]", filled, _NO_HEADER, _SAME_HEADER))
            continue
        n_read += 1
        name = str(file) if n_read == 1 else f"{file}[{title}]"
        for number, row in chain(first[header.end :], rows):
            yield pair_of(row, header, at(name, number))
    return n_read


def pair_of(row: Sequence[Any], header: Header, place: str) -> Pair:
    """The pair of a row. A missing or empty cell gives an empty side; cleaning counts and drops such pairs."""
    columns = (header.source, header.target)
    source, target = (cell_text(row[column], "cell", place) if column < len(row) else "" for column in columns)
    return Pair(source, target, place)


def titles(rows: Sequence[Row]) -> list[str]:
    """The cells of the first row that is not empty, for the error that lists the columns."""
    return [str(cell).strip() for cell in next((row for _, row in rows if any(row)), ()) if cell is not None]


def open_sheets(file: Path) -> Iterator[tuple[str, Iterator[Sequence[Any]]]]:
    """Title and rows of each sheet; rows can have different lengths. Raises TmtError if `file` is not a workbook."""
    from openpyxl import load_workbook

    limit = MemoryLimit(MOST_MEMORY)
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(open_seekable(file))  # openpyxl does not close a broken workbook
        except OSError as error:
            raise from_os_error(error, "reading a workbook") from None
        try:
            _require_bearable(stream, file)
            with limit, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about styles and extensions, which do not affect the text
                book = load_workbook(stream, read_only=True, data_only=True)
        except _BROKEN as error:
            raise _broken(file, error) from None
        try:
            for sheet in book.worksheets:
                yield sheet.title, _rows(sheet, file, limit)
        finally:
            book.close()


def _rows(sheet: Any, file: Path, limit: MemoryLimit) -> Iterator[Sequence[Any]]:
    from openpyxl.cell.cell import ERROR_CODES
    from openpyxl.utils.escape import unescape

    sheet.reset_dimensions()  # some programs store a wrong size, and rows would be missing
    rows = sheet.iter_rows(values_only=True)
    missing = 0
    for number in count(1):
        try:
            with limit:
                row = next(rows, None)
        except _BROKEN as error:
            raise _broken(file, error) from None
        if row is None:
            return
        missing += row.count(None)
        if number > MOST_ROWS or missing > MOST_MISSING:
            many = f"{MOST_ROWS:,} rows" if number > MOST_ROWS else f"{MOST_MISSING:,} empty cells"
            remedy = "Delete empty rows and columns, or save the sheet as CSV."
            raise TmtError(f"the sheet has more than {many}", place=at(f"{file}[{sheet.title}]", number), remedy=remedy)
        # Excel writes codes for control characters (_x000D_), and an error (#N/A) where a formula failed.
        yield [
            None if cell in ERROR_CODES else unescape(cell) if isinstance(cell, str) and "_x" in cell else cell
            for cell in row
        ]


def _require_bearable(stream: BinaryIO, file: Path) -> None:
    """Raises TmtError if a part of the workbook unpacks to more than LARGEST_PART bytes: the texts are read at once."""
    with zipfile.ZipFile(stream) as parts:
        large = next((part for part in parts.infolist() if part.file_size > LARGEST_PART), None)
    stream.seek(0)
    if large is not None:
        size = f"{large.file_size >> 20:,} MiB, more than {LARGEST_PART >> 20:,} MiB"
        remedy = "Save the sheets as several workbooks, or as CSV."
        raise TmtError(f"the part {large.filename} of the workbook has {size}", place=file, remedy=remedy)


def _broken(file: Path, error: Exception) -> TmtError:
    if isinstance(error, MemoryError):
        remedy = "Save the sheets as several workbooks, or as CSV."
        return TmtError(f"reading the workbook needs more than {MOST_MEMORY >> 30} GiB", place=file, remedy=remedy)
    return TmtError(
        f"not an .xlsx workbook, or damaged ({reason(error)})",
        place=file,
        remedy="Download or copy it again; save an .xls or a protected workbook as .xlsx without a password.",
    )
