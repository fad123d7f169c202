"""The rows of an .xlsx workbook, one by one. Only this module imports openpyxl and handles its exceptions."""

from __future__ import annotations

import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from transformer_mt.errors import TmtError, from_os_error

# openpyxl raises these for damaged files and for files that are not workbooks; SyntaxError means bad XML inside.
_BROKEN = (zipfile.BadZipFile, zlib.error, SyntaxError, EOFError, KeyError, ValueError, TypeError)


def open_sheets(file: Path) -> Iterator[tuple[str, Iterator[Sequence[Any]]]]:
    """Title and rows of each sheet; rows can have different lengths. Raises TmtError if `file` is not a workbook."""
    from openpyxl import load_workbook

    try:
        stream = file.open("rb")  # opened here, because openpyxl does not close a broken workbook
    except OSError as error:
        raise from_os_error(error, "reading a workbook") from None
    with stream:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about styles and extensions, which do not affect the text
                book = load_workbook(stream, read_only=True, data_only=True)
        except _BROKEN as error:
            raise _broken(file, error) from None
        try:
            for sheet in book.worksheets:
                yield sheet.title, _rows(sheet, file)
        finally:
            book.close()


def _rows(sheet: Any, file: Path) -> Iterator[Sequence[Any]]:
    from openpyxl.cell.cell import ERROR_CODES
    from openpyxl.utils.escape import unescape

    sheet.reset_dimensions()  # some programs store a wrong size, and rows would be missing
    rows = sheet.iter_rows(values_only=True)
    while True:
        try:
            row = next(rows, None)
        except _BROKEN as error:
            raise _broken(file, error) from None
        if row is None:
            return
        # Excel writes codes for control characters (_x000D_), and an error (#N/A) where a formula failed.
        yield [
            None if cell in ERROR_CODES else unescape(cell) if isinstance(cell, str) and "_x" in cell else cell
            for cell in row
        ]


def _broken(file: Path, error: Exception) -> TmtError:
    return TmtError(
        f"not an .xlsx workbook, or damaged ({error})",
        place=file,
        remedy="Download or copy it again; save an .xls or a protected workbook as .xlsx without a password.",
    )
