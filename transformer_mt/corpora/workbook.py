"""Rows out of an .xlsx workbook, streamed. The only module that knows openpyxl, and what it raises."""

from __future__ import annotations

import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from transformer_mt.errors import TmtError, from_os_error

# What openpyxl lets through for files that are none or are damaged; SyntaxError is bad XML inside.
_BROKEN = (zipfile.BadZipFile, zlib.error, SyntaxError, EOFError, KeyError, ValueError, TypeError)


def open_sheets(file: Path) -> Iterator[tuple[str, Iterator[Sequence[Any]]]]:
    """Title and rows of each sheet; a row may be shorter than others. Raises TmtError where `file` is no workbook."""
    with _opened(file) as stream:
        book = _load(stream, file)
        try:
            for sheet in book.worksheets:
                yield sheet.title, _rows(sheet, file)
        finally:
            book.close()


def _opened(file: Path) -> BinaryIO:
    try:
        return file.open("rb")  # opened here, and not by openpyxl, which leaves a broken workbook open
    except OSError as error:
        raise from_os_error(error, "reading a workbook") from None


def _load(stream: BinaryIO, file: Path) -> Any:
    from openpyxl import load_workbook

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions, which do not touch the text
            return load_workbook(stream, read_only=True, data_only=True)
    except _BROKEN as error:
        raise _broken(file, error) from None


def _rows(sheet: Any, file: Path) -> Iterator[Sequence[Any]]:
    from openpyxl.cell.cell import ERROR_CODES
    from openpyxl.utils.escape import unescape

    def content(cell: Any) -> Any:
        """Without Excel's spelling of control characters (_x000D_); nothing where a formula failed (#N/A)."""
        if not isinstance(cell, str):
            return cell
        return None if cell in ERROR_CODES else unescape(cell) if "_x" in cell else cell

    sheet.reset_dimensions()  # some writers record a wrong size, and rows would be missing
    rows = sheet.iter_rows(values_only=True)
    while True:
        try:
            row = next(rows, None)
        except _BROKEN as error:
            raise _broken(file, error) from None
        if row is None:
            return
        yield [content(cell) for cell in row]


def _broken(file: Path, error: Exception) -> TmtError:
    return TmtError(
        f"this is no .xlsx workbook, or it is damaged ({error})",
        place=file,
        remedy="Download or copy it again; save an old .xls or a protected workbook as a plain .xlsx.",
    )
