"""Workbooks (.xlsx): a pair in each row of a sheet, in two columns with names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from transformer_mt.corpora.base import FilesCorpus, Pair, same_name
from transformer_mt.corpora.tables import (
    ColumnsOptions,
    TableOptions,
    find_column,
    header_skipped,
    is_header,
    listed,
    missing_column,
)
from transformer_mt.corpora.workbook import HEADER_ROWS, Header, Row, open_sheets, pair_of, titles, workbook_pairs
from transformer_mt.errors import TmtError, at
from transformer_mt.files.lines import check_head


class XlsxCorpus(FilesCorpus):
    """The rows of every sheet whose header has both columns, or of one sheet."""

    class Options(ColumnsOptions, TableOptions):
        kind: Literal["xlsx"]
        sheet: str | None = Field(None, description="name of the sheet to read; null: each sheet with both columns")

    options: Options

    def read_files(self, *files: Path) -> Iterator[Pair]:
        (file,) = files
        check_head(file)
        headers: list[list[str]] = []

        def find(rows: Sequence[Row]) -> Header | None:
            headers.append(titles(rows))
            return self._header(rows, file)

        n_read = yield from workbook_pairs(file, find, self.skip, self.options.sheet)
        if not n_read:
            raise self._not_found(file, [title for some in headers for title in some])
        if n_read > 1 and not self.options.named:
            remedy = f"Name one, such as  sheet: {next(open_sheets(file))[0]}  or give the names of the columns."
            raise TmtError("several sheets have rows, and the columns have only numbers", place=file, remedy=remedy)

    def _header(self, rows: Sequence[Row], file: Path) -> Header | None:
        """Both columns of a sheet: a header in its first rows, or numbers, which need none; one there is skipped."""
        columns = (self.options.source_column, self.options.target_column)
        if not self.options.named:
            source, target = int(columns[0]), int(columns[1])
            pairs = ((number, pair_of(row, Header(0, source, target), at(file, number))) for number, row in rows)
            number, first = next(((number, one) for number, one in pairs if one.source and one.target), (0, None))
            if first is not None and is_header(first[:2]):
                self.skip(header_skipped(first.source, first.target, first.place))
                return Header(number, source, target)
            return Header(0, source, target) if any(any(row) for _, row in rows) else None
        for end, (number, row) in enumerate(rows, start=1):
            cells = [str(cell).strip() if cell is not None else "" for cell in row]
            if all(isinstance(column, int) or same_name(column, cells) for column in columns):
                source, target = (find_column(cells, one, at(file, number)) for one in columns)
                return Header(end, source, target)
        return None

    def _not_found(self, file: Path, found: list[str]) -> TmtError:
        sheets = [title for title, _ in open_sheets(file)]
        if self.options.sheet is not None and self.options.sheet not in sheets:
            remedy = f"Sheets in it: {listed(sheets)}"
            return TmtError(f"the workbook has no sheet '{self.options.sheet}'", place=file, remedy=remedy)
        columns: tuple[Any, ...] = self.options.source_column, self.options.target_column
        missing = next((one for one in columns if isinstance(one, str) and not same_name(one, found)), None)
        if missing is not None:
            return missing_column(missing, found, str(file))
        remedy = f"The header is one of the first {HEADER_ROWS} rows of a sheet. Columns found: {listed(found)}"
        return TmtError("no sheet has rows with both columns", place=file, remedy=remedy)
