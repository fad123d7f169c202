"""Tables with a sentence and its translation in each row: TSV and CSV, plain, compressed or in a .zip.

In TSV a tab separates columns, and quotes are text. In CSV a quoted cell can contain line breaks.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal
from unicodedata import normalize

from pydantic import Field, field_validator, model_validator

from transformer_mt.config.direction import Direction
from transformer_mt.config.languages import COLUMN_NAMES, code_of
from transformer_mt.config.section import FileName, NonNegative, OneOrMany, Section
from transformer_mt.corpora.base import EncodedOptions, FilesCorpus, FilesOptions, Pair, SkippedRows
from transformer_mt.corpora.parts import Part, Texts, cut_lines, numbered_lines
from transformer_mt.corpora.quoting import csv_rows
from transformer_mt.errors import TmtError, at, number_of
from transformer_mt.files.encodings import BROKEN
from transformer_mt.files.lines import read_lines

Row = tuple[int, Sequence[str]]  # the first line of the row, and the cells
Skip = Callable[[SkippedRows], object]
WRONG_SHARE = 0.05  # of the rows of a file may have another number of columns; with more, the file is refused
FIRST_PLACES = 5  # of skipped rows
_CORRECT_ROWS = "A separator or a line break stands inside a sentence, or a cell is missing. Correct these rows."
_NAME_PARTS = re.compile(r"[^\W_]+")
_SEPARATORS = (("\t", "kind: tsv"), (";", 'kind: csv and delimiter: ";"'), (",", "kind: csv"))


def of_one_width(rows: Iterable[Row], file: Path, skip: Skip, named: bool) -> Iterator[Row]:
    """The rows with the number of columns of the first row; empty cells at the end of a row do not count.

    Other rows are skipped, because a separator or a line break may stand inside a sentence; `skip` gets their number so
    far. Raises TmtError at the first of them if they are more than WRONG_SHARE of all rows.
    named: whether the first row has names; then its empty cells at the end do not count either
    """
    widths = Widths(named=named)
    yield from widths.passing(rows, file, skip)
    widths.require_few_wrong(file)


@dataclass
class Widths:
    """Counts the rows of a file, or of a range of it, that have another number of columns than its first row.

    width: of the first row, 0 before it is read; least: the same, in a header without empty cells at its end
    first: the first wrong rows; named: whether the first row is a header
    """

    width: int = 0
    total: int = 0
    wrong: int = 0
    first: list[tuple[int, list[str]]] = field(default_factory=list)
    least: int = 0
    named: bool = False

    def begin(self, row: Sequence[str]) -> None:
        """Take the width of the first row."""
        self.width = self.least = len(row)
        while self.named and self.least > 1 and not row[self.least - 1].strip():
            self.least -= 1

    def passing(self, rows: Iterable[Row], file: Path, skip: Skip) -> Iterator[Row]:
        """The rows with the right number of columns."""
        for line, row in rows:
            self.total += 1
            if not self.width:
                self.begin(row)
            fits = len(row) == self.width
            if fits or (len(row) >= self.least and not any(row[self.width :])):
                yield line, row if fits else [*row[: self.width], *[""] * (self.width - len(row))]
            else:
                self.wrong += 1
                self.first += [(line, list(row))] if len(self.first) < FIRST_PLACES else []
                skip(self.skipped(file))

    def add(self, other: Widths) -> None:
        """Add those of the next range of the same file."""
        self.width, self.least = other.width, other.least
        self.total += other.total
        self.wrong += other.wrong
        self.first = [*self.first, *other.first][:FIRST_PLACES]

    def skipped(self, file: Path) -> SkippedRows:
        such = f"{number_of(len(self.first[0][1]), 'column')}, for example, where the first row has {self.width}"
        places = tuple(at(file, line) for line, _ in self.first)
        return SkippedRows(str(file), self.wrong, such, _CORRECT_ROWS, places)

    def require_few_wrong(self, file: Path) -> None:
        """Raises TmtError at the first wrong row if they are more than WRONG_SHARE of all rows."""
        if self.wrong > WRONG_SHARE * self.total:
            line, row = self.first[0]
            others = f"; {self.wrong:,} of {self.total:,} rows have another number of columns" if self.wrong > 1 else ""
            how = "Quote cells that contain the separator (kind: csv), and give every row the same number of columns."
            if len(row) < self.width:
                how = f"If only empty cells at its end are missing, write their separators too. Otherwise: {how}"
            raise TmtError(
                f"the row has {number_of(len(row), 'column')}, but the first row has {self.width}{others}",
                place=at(file, line),
                remedy=f"{how} Cells found: {listed(row)}",
            )


def pick_columns(
    rows: Iterable[Row],
    source: str | int,
    target: str | int,
    file: Path,
    skip: Skip = lambda rows: None,
    begins: bool = True,
) -> Iterator[Pair]:
    """The pairs in two columns, given by number (from 0) or by name. If one is a name, the first row is a header.

    If both are numbers, a first row that looks like a header is skipped.
    begins: whether the rows begin with the first row of the file; if not, both columns are numbers
    Raises TmtError if a column is missing, in the header or in a row.
    """
    remaining = iter(rows)
    if isinstance(source, str) or isinstance(target, str):
        line, header = next(remaining, (1, []))
        source, target = (find_column(header, column, at(file, line)) for column in (source, target))
        if source == target:
            remedy = f"Name another column. Columns found: {listed(header)}"
            raise TmtError(f"source_column and target_column are both column {source}", place=file, remedy=remedy)
    for number, (line, row) in enumerate(remaining):
        if max(source, target) >= len(row):
            _require_separator(row, at(file, line))
            raise TmtError(
                f"the row has {number_of(len(row), 'column')}, so none is {max(source, target)}, counted from 0",
                place=at(file, line),
                remedy=f"Check the separator and the keys source_column and target_column. Cells found: {listed(row)}",
            )
        if begins and number == 0 and is_header((row[source], row[target])):
            skip(header_skipped(row[source], row[target], at(file, line)))
            continue
        yield Pair(row[source], row[target], at(file, line))


def is_header(cells: Sequence[str]) -> bool:
    """Whether each of these cells is the name of a column, such as `de`, `German text` or `원문`."""
    parts = [_NAME_PARTS.findall(normalize("NFC", cell).casefold()) for cell in cells]
    return all(words and COLUMN_NAMES.issuperset(words) for words in parts)


def header_skipped(source: str, target: str, place: str) -> SkippedRows:
    """The report of a header that is skipped because the columns have only numbers. source, target: its cells."""
    names = f"source_column: {source.strip()}, target_column: {target.strip()}"
    remedy = f"To name the columns: {names}" if source.strip() != target.strip() else ""
    return SkippedRows(place, 1, f"it looks like a header: {listed([source, target])}", remedy)


def _require_separator(row: Sequence[str], place: str) -> None:
    """Raises TmtError if a row of one cell would have several with another separator."""
    keys = next((keys for mark, keys in _SEPARATORS if len(row) == 1 and mark in row[0]), None)
    if keys:
        remedy = f"Set  {keys}  in data.corpus. The row: {listed(row)}"
        raise TmtError("the columns of this row have another separator", place=place, remedy=remedy)


def find_column(header: Sequence[str], column: str | int, place: str) -> int:
    """The number of a column (from 0). Raises TmtError if no column has this name, or several have it."""
    if isinstance(column, int):
        return column
    names, column = [normalize("NFC", name.strip()) for name in header], normalize("NFC", column)
    if column not in names:
        _require_separator(header, place)
        raise missing_column(column, names, place)
    if names.count(column) > 1:
        numbers = ", ".join(str(number) for number, name in enumerate(names) if name == column)
        remedy = f"Give both columns by number, counted from 0. Those with this name: {numbers}"
        raise TmtError(f"{names.count(column)} columns have the name '{column}'", place=place, remedy=remedy)
    return names.index(column)


def missing_column(column: str, found: Sequence[str], place: str) -> TmtError:
    """The error for an unknown column, with the most similar name if there is one."""
    near = difflib.get_close_matches(column, list(map(_shown, found)), n=1)
    return TmtError(
        f"there is no column '{column}'" + (f"; did you mean '{near[0][:80]}'?" if near else ""),
        place=place,
        remedy=f"Columns found: {listed(found)}",
    )


def _shown(cell: str) -> str:
    return cell.replace(BROKEN, "\N{REPLACEMENT CHARACTER}")


def listed(cells: Sequence[str], limit: int = 12, width: int = 40) -> str:
    """Cells for an error message: the first `limit` cells, each cut to `width` characters."""
    short = [_shown(cell if len(cell) <= width else cell[: width - 1] + "…") for cell in cells[:limit]]
    return " | ".join(short) + (" | …" if len(cells) > limit else "") if cells else "none"


Column = str | NonNegative


class TableOptions(FilesOptions):
    """Options of the kinds that read tables."""

    files: OneOrMany[FileName] | None = Field(
        None, description="files that are split; `*`, `?` and `**` stand for parts of a name"
    )
    train: OneOrMany[FileName] | None = Field(None, description="files for training")
    validation: FileName | None = Field(None, description="file for validation")
    test: dict[str, FileName] | None = Field(None, description="test files by name; with `train`, or beside `files`")

    @field_validator("test", mode="before", json_schema_input_type=str | dict[str, str] | None)
    @classmethod
    def _named(cls, value: Any) -> Any:
        return {"test": value} if isinstance(value, str) else value


class EncodedTableOptions(TableOptions, EncodedOptions):
    """Options of the kinds that read tables of plain text."""


class _TwoColumns(Section):
    """A pair needs two columns: with one for both sides, every pair would be dropped as a copy."""

    @model_validator(mode="after")
    def _differ(self) -> _TwoColumns:
        columns: dict[str, Any] = {name: getattr(self, name) for name in ("source_column", "target_column")}
        if columns["source_column"] == columns["target_column"]:
            raise ValueError(f"source_column and target_column are both {columns['source_column']!r}; name two columns")
        return self

    @property
    def named_languages(self) -> Direction | None:
        """The languages of the two columns, if their names say them."""
        names = (getattr(self, name) for name in ("source_column", "target_column"))
        source, target = (code_of(name) if isinstance(name, str) else None for name in names)
        return Direction(source, target) if source and target and source != target else None


class ColumnsOptions(_TwoColumns):
    source_column: Column = Field(0, description="column of the source: its number from 0, or its name in the header")
    target_column: Column = Field(1, description="column of the target: its number from 0, or its name in the header")

    @property
    def named(self) -> bool:
        """Whether a column has a name, so that the first row is a header."""
        return isinstance(self.source_column, str) or isinstance(self.target_column, str)


class NamedColumnsOptions(_TwoColumns):
    source_column: str = Field("source", description="column or key of the source; a.b is the field b inside a")
    target_column: str = Field("target", description="column or key of the target; a.b is the field b inside a")


class TsvCorpus(FilesCorpus):
    class Options(ColumnsOptions, EncodedTableOptions):
        kind: Literal["tsv"]

    options: Options

    def __init__(self, options: Options, source: str, target: str) -> None:
        super().__init__(options, source, target)
        self._widths: dict[str, Widths] = {}  # by file, of the ranges read so far

    def read_files(self, *files: Path) -> Iterator[Pair]:
        (file,) = files
        lines = read_lines(file, self.options.encoding, errors=self.errors)
        rows = of_one_width(_cells(lines), file, self.skip, self.options.named)
        return pick_columns(rows, self.options.source_column, self.options.target_column, file, self.skip)

    def cut(self, *files: Path) -> list[Part] | None:
        return cut_lines(files, self.options.encoding, self.errors)

    def read_range(self, part: Part) -> Texts:
        (file,), columns = part.files, (self.options.source_column, self.options.target_column)
        begins = part.first == 1
        line, head = next(_cells(read_lines(file, self.options.encoding, errors=self.errors)), (1, []))
        widths = self._widths[str(file)] = Widths(named=self.options.named)
        widths.begin(head)
        lines = numbered_lines(part, self.options.encoding, self.errors)
        rows = widths.passing(_cells(lines), file, lambda skipped: None)
        if not begins:
            source, target = (find_column(head, column, at(file, line)) for column in columns)
            return Texts.of(pick_columns(rows, source, target, file, begins=False))
        return Texts.of(pick_columns(rows, *columns, file, self.skip))

    def finish(self, files: tuple[Path, ...]) -> None:
        for file in files:
            widths = self._widths.pop(str(file), Widths())
            if widths.wrong:
                self.skip(widths.skipped(file))
            widths.require_few_wrong(file)

    def counted(self) -> dict[str, Any]:
        widths = {file: asdict(widths) for file, widths in self._widths.items()}
        self._widths.clear()
        return {**super().counted(), "widths": widths}

    def add_counted(self, counted: dict[str, Any]) -> None:
        super().add_counted(counted)
        for file, widths in counted["widths"].items():
            self._widths.setdefault(file, Widths()).add(Widths(**widths))


def _cells(lines: Iterable[tuple[int, str]]) -> Iterator[Row]:
    return ((number, line.split("\t")) for number, line in lines if line)


class CsvCorpus(FilesCorpus):
    class Options(ColumnsOptions, EncodedTableOptions):
        kind: Literal["csv"]
        delimiter: str = Field(",", min_length=1, max_length=1, description="the character between columns")

    options: Options

    def read_files(self, *files: Path) -> Iterator[Pair]:
        (file,) = files
        read = csv_rows(file, self.options.delimiter, self.options.encoding, self.errors)
        rows = of_one_width(read, file, self.skip, self.options.named)
        return pick_columns(rows, self.options.source_column, self.options.target_column, file, self.skip)


def cell_text(value: Any, column: str, place: str) -> str:
    """The text of a cell: a number as text, "" for None and NaN. Raises TmtError for a list or an object."""
    if value is None or value != value:  # pandas writes NaN for an empty cell
        return ""
    if isinstance(value, (list, dict)):
        kind = "an object" if isinstance(value, dict) else "a list"
        remedy = "Name a column with sentences."
        raise TmtError(f"'{column}' contains {kind}, not a sentence", place=place, remedy=remedy)
    return value if isinstance(value, str) else str(value)
