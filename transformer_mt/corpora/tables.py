"""Tables: a row holds a sentence and its translation. TSV, CSV and JSON lines, plain or compressed.

TSV is what corpora mean by it: a tab ends a column, and quotes are text. CSV has quotes, and line breaks in them.
"""

from __future__ import annotations

import csv
import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from transformer_mt.config.section import Many, NonNegative
from transformer_mt.corpora.base import FilesCorpus, FilesOptions, Pair
from transformer_mt.errors import TmtError, at
from transformer_mt.files.lines import path_of, read_lines

Row = tuple[int, Sequence[str]]  # line on which the row begins, and its cells


def tsv_rows(file: Path) -> Iterator[Row]:
    """The rows of a TSV file; empty lines are left out."""
    for number, line in read_lines(file):
        if line:
            yield number, line.split("\t")


def csv_rows(file: Path, delimiter: str = ",", encoding: str = "utf-8") -> Iterator[Row]:
    """The rows of a CSV file; empty lines are left out. Raises TmtError at the row whose quoting is broken."""
    reader = csv.reader((f"{line}\n" for _, line in read_lines(file, encoding)), delimiter=delimiter, strict=True)
    while True:
        begin = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            remedy = 'A quote inside a quoted cell is written twice: "". For files without quoting use kind: tsv.'
            raise TmtError(f"broken row: {error}", place=at(file, begin), remedy=remedy) from None
        if row is None:
            return
        if row:
            yield begin, row


def of_one_width(rows: Iterable[Row], file: Path) -> Iterator[Row]:
    """The rows; raises TmtError at one with more cells than the first: a sentence cut by a separator in it."""
    width = 0
    for line, row in rows:
        width = width or len(row)
        if len(row) > width:
            raise TmtError(
                f"the row has {len(row)} columns, and the first row {width}",
                place=at(file, line),
                remedy=f"Quote cells that hold the separator, or give all rows as many columns. Found: {listed(row)}",
            )
        yield line, row


def pick_columns(rows: Iterable[Row], source: str | int, target: str | int, file: Path) -> Iterator[Pair]:
    """The pairs in two columns, given by number from 0 or by name; a name says that the first row is a header.

    Raises TmtError where a column is missing, in the header or in a row.
    """
    remaining = iter(rows)
    if isinstance(source, str) or isinstance(target, str):
        line, header = next(remaining, (1, []))
        source, target = (find_column(header, column, at(file, line)) for column in (source, target))
    for line, row in remaining:
        if max(source, target) >= len(row):
            raise _short_row(row, max(source, target), at(file, line))
        yield Pair(row[source], row[target], at(file, line))


def find_column(header: Sequence[str], column: str | int, place: str) -> int:
    """The number of a column. Raises TmtError that names the columns there are."""
    if isinstance(column, int):
        return column
    names = [name.strip() for name in header]
    if column in names:
        return names.index(column)
    raise missing_column(column, names, place)


def missing_column(column: str, found: Sequence[str], place: str) -> TmtError:
    near = difflib.get_close_matches(column, found, n=1)
    return TmtError(
        f"there is no column '{column}'" + (f"; did you mean '{near[0]}'?" if near else ""),
        place=place,
        remedy=f"The columns found are: {listed(found)}",
    )


def _short_row(row: Sequence[str], needed: int, place: str) -> TmtError:
    return TmtError(
        f"the row has {len(row)} column{'s' * (len(row) != 1)}, and column {needed} (counted from 0) is asked for",
        place=place,
        remedy=f"Check the separator and the keys source_column and target_column. Found: {listed(row)}",
    )


def listed(cells: Sequence[str], most: int = 12, width: int = 40) -> str:
    """Cells for a message: the first few, each shortened."""
    short = [cell if len(cell) <= width else cell[: width - 1] + "…" for cell in cells[:most]]
    return " | ".join(short) + (" | …" if len(cells) > most else "") if cells else "none"


Column = str | NonNegative


class TableOptions(FilesOptions):
    """Files whose rows hold a pair: one sentence and its translation in two columns."""

    files: Many[str] | None = Field(None, description="files to be split")
    train: Many[str] | None = Field(None, description="files for training")
    validation: str | None = Field(None, description="file for validation")
    test: dict[str, str] | None = Field(None, description="test files by name")

    @field_validator("files", "train", mode="before", json_schema_input_type=str | tuple[str, ...] | None)
    @classmethod
    def _several(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("test", mode="before", json_schema_input_type=str | dict[str, str] | None)
    @classmethod
    def _named(cls, value: Any) -> Any:
        return {"test": value} if isinstance(value, str) else value


class ColumnsOptions(TableOptions):
    source_column: Column = Field(0, description="column of the source: its number from 0, or its name in the header")
    target_column: Column = Field(1, description="column of the target: its number from 0, or its name in the header")


class _TableCorpus(FilesCorpus):
    def __init__(self, options: Any, source: str, target: str) -> None:
        super().__init__(options, source, target)
        self._options = options

    def _paths(self, part: str) -> tuple[Path, ...]:
        return (path_of(part),)


class TsvCorpus(_TableCorpus):
    class Options(ColumnsOptions):
        kind: Literal["tsv"]

    def _read(self, *files: Path) -> Iterator[Pair]:
        (file,) = files
        return pick_columns(tsv_rows(file), self._options.source_column, self._options.target_column, file)


class CsvCorpus(_TableCorpus):
    class Options(ColumnsOptions):
        kind: Literal["csv"]
        delimiter: str = Field(",", min_length=1, max_length=1, description="the character between columns")

    def _read(self, *files: Path) -> Iterator[Pair]:
        (file,) = files
        rows = of_one_width(csv_rows(file, self._options.delimiter), file)
        return pick_columns(rows, self._options.source_column, self._options.target_column, file)


class JsonlCorpus(_TableCorpus):
    class Options(TableOptions):
        kind: Literal["jsonl"]
        source_column: str = Field("source", description="key of the source sentence; a.b reaches into a nested object")
        target_column: str = Field("target", description="key of the target sentence; a.b reaches into a nested object")

    def _read(self, *files: Path) -> Iterator[Pair]:
        (file,) = files
        columns = self._options.source_column, self._options.target_column
        for number, line in read_lines(file):
            if line.strip():
                place = at(file, number)
                record = parse_json(line, file, number)
                source, target = (reach(record, key, place) for key in columns)
                yield Pair(source, target, place)


def parse_json(text: str, file: Path, first_line: int = 1) -> Any:
    """Raises TmtError where the text is no JSON. first_line: that of the text in its file."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line, what = first_line + error.lineno - 1, f"{error.msg} at character {error.colno}"
    except RecursionError:
        line, what = first_line, "nested too deeply"
    except ValueError as error:  # a number of thousands of digits
        line, what = first_line, str(error)
    remedy = "kind: jsonl reads one JSON object a line; kind: aihub one list of objects in a file."
    raise TmtError(f"this is not JSON: {what}", place=at(file, line), remedy=remedy)


def reach(record: Any, path: str, place: str) -> str:
    """The text under a key; `a.b` is key b of the object under a, unless there is a key named `a.b`."""
    value = record
    for key in [path] if isinstance(record, dict) and path in record else path.split("."):
        if not isinstance(value, dict):
            raise TmtError(f"an object with the key '{key}' is needed, and this is {_kind(value)}", place=place)
        if key not in value:
            raise missing_column(path, list(value), place)
        value = value[key]
    return cell_text(value, path, place)


def cell_text(value: Any, column: str, place: str) -> str:
    """A cell as text: numbers are written out, nothing is the empty text. Raises TmtError for anything else."""
    if value is None:
        return ""
    if isinstance(value, (list, dict)):
        raise TmtError(f"'{column}' holds {_kind(value)} where a sentence is needed", place=place)
    return value if isinstance(value, str) else str(value)


def _kind(value: Any) -> str:
    names = ((dict, "an object"), (list, "a list"), (str, "text"))
    return next((name for kind, name in names if isinstance(value, kind)), "a number, true, false or null")
