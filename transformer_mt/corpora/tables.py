"""Tables: each row has a sentence and its translation. TSV, CSV and JSON lines, plain or compressed.

In TSV, as corpora use it, a tab ends a column, and quotes are text. In CSV, a quoted cell can have line breaks.
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
from transformer_mt.files.lines import read_lines

Row = tuple[int, Sequence[str]]  # the line where the row begins, and the cells


def csv_rows(file: Path, delimiter: str = ",", encoding: str = "utf-8") -> Iterator[Row]:
    """The rows of a CSV file without empty lines. Raises TmtError at a row with broken quoting."""
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
    """The same rows. Raises TmtError at a row with more cells than the first: a separator has cut its sentence."""
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
    """The pairs in two columns, given by number (from 0) or by name; with a name, the first row is a header.

    Raises TmtError if a column is missing, in the header or in a row.
    """
    remaining = iter(rows)
    if isinstance(source, str) or isinstance(target, str):
        line, header = next(remaining, (1, []))
        source, target = (find_column(header, column, at(file, line)) for column in (source, target))
    for line, row in remaining:
        if max(source, target) >= len(row):
            raise TmtError(
                f"the row has {len(row)} column{'s' * (len(row) != 1)}, and column {max(source, target)}"
                " (counted from 0) is asked for",
                place=at(file, line),
                remedy=f"Check the separator and the keys source_column and target_column. Found: {listed(row)}",
            )
        yield Pair(row[source], row[target], at(file, line))


def find_column(header: Sequence[str], column: str | int, place: str) -> int:
    """The number of a column (from 0). Raises TmtError with the names of all columns if there is no such column."""
    if isinstance(column, int):
        return column
    names = [name.strip() for name in header]
    if column in names:
        return names.index(column)
    raise missing_column(column, names, place)


def missing_column(column: str, found: Sequence[str], place: str) -> TmtError:
    """The error for a name that is not among the columns found, with the nearest name if one is near."""
    near = difflib.get_close_matches(column, found, n=1)
    return TmtError(
        f"there is no column '{column}'" + (f"; did you mean '{near[0]}'?" if near else ""),
        place=place,
        remedy=f"The columns found are: {listed(found)}",
    )


def listed(cells: Sequence[str], most: int = 12, width: int = 40) -> str:
    """Cells for an error message: the first `most`, each cut to `width` characters."""
    short = [cell if len(cell) <= width else cell[: width - 1] + "…" for cell in cells[:most]]
    return " | ".join(short) + (" | …" if len(cells) > most else "") if cells else "none"


Column = str | NonNegative


class TableOptions(FilesOptions):
    """Options of the kinds that read tables."""

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


class TsvCorpus(FilesCorpus):
    class Options(ColumnsOptions):
        kind: Literal["tsv"]

    options: Options

    def read_files(self, *files: Path) -> Iterator[Pair]:
        (file,) = files
        rows = ((number, line.split("\t")) for number, line in read_lines(file) if line)
        return pick_columns(rows, self.options.source_column, self.options.target_column, file)


class CsvCorpus(FilesCorpus):
    class Options(ColumnsOptions):
        kind: Literal["csv"]
        delimiter: str = Field(",", min_length=1, max_length=1, description="the character between columns")

    options: Options

    def read_files(self, *files: Path) -> Iterator[Pair]:
        (file,) = files
        rows = of_one_width(csv_rows(file, self.options.delimiter), file)
        return pick_columns(rows, self.options.source_column, self.options.target_column, file)


class JsonlCorpus(FilesCorpus):
    class Options(TableOptions):
        kind: Literal["jsonl"]
        source_column: str = Field("source", description="key of the source sentence; a.b reaches into a nested object")
        target_column: str = Field("target", description="key of the target sentence; a.b reaches into a nested object")

    options: Options

    def read_files(self, *files: Path) -> Iterator[Pair]:
        (file,) = files
        columns = self.options.source_column, self.options.target_column
        for number, line in read_lines(file):
            if line.strip():
                place = at(file, number)
                record = parse_json(line, file, number)
                source, target = (reach(record, key, place) for key in columns)
                yield Pair(source, target, place)


def parse_json(text: str, file: Path, first_line: int = 1) -> Any:
    """The value of the JSON text; raises TmtError if it is no JSON. first_line: the line of `file` where it begins."""
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
    """The text at a key; `a.b` is the key b of the object at a, unless there is a key with the name `a.b`."""
    value = record
    for key in [path] if isinstance(record, dict) and path in record else path.split("."):
        if not isinstance(value, dict):
            names = ((list, "a list"), (str, "text"))
            kind = next((name for of, name in names if isinstance(value, of)), "a number, true, false or null")
            raise TmtError(f"an object with the key '{key}' is needed, and this is {kind}", place=place)
        if key not in value:
            raise missing_column(path, list(value), place)
        value = value[key]
    return cell_text(value, path, place)


def cell_text(value: Any, column: str, place: str) -> str:
    """The text of a cell: a number as it is written, "" for None. Raises TmtError for a list or an object."""
    if value is None:
        return ""
    if isinstance(value, (list, dict)):
        kind = "an object" if isinstance(value, dict) else "a list"
        raise TmtError(f"'{column}' holds {kind} where a sentence is needed", place=place)
    return value if isinstance(value, str) else str(value)
