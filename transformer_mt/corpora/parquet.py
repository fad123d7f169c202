"""Parquet files, as Hugging Face stores data sets: two columns of text, also inside a struct (`translation.de`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

from transformer_mt.corpora.base import FilesCorpus, Pair, same_name
from transformer_mt.corpora.json_files import pair_of_record
from transformer_mt.corpora.parts import Part, Texts, size_of
from transformer_mt.corpora.tables import NamedColumnsOptions, TableOptions, missing_column
from transformer_mt.errors import TmtError, at, from_os_error, reason
from transformer_mt.files.address import Address
from transformer_mt.files.lines import check_head
from transformer_mt.files.opening import require_unpacked
from transformer_mt.files.remote import open_address

BATCH = 2_000  # rows
RANGE_ROWS = 20_000  # row groups with so many rows together are read at once


class ParquetCorpus(FilesCorpus):
    class Options(NamedColumnsOptions, TableOptions):
        kind: Literal["parquet"]

    options: Options

    def read_files(self, *files: Path) -> Iterator[Pair]:
        (file,) = files
        with open_parquet(file) as opened:
            columns = self._columns(opened, file)
            yield from self._pairs(batches(opened, columns, file), columns, file, 1)

    def cut(self, *files: Path) -> list[Part] | None:
        (file,) = files
        if isinstance(file, Address) or not file.is_file():
            return None
        with open_parquet(file) as opened:
            sizes = [opened.metadata.row_group(number).num_rows for number in range(opened.num_row_groups)]
        parts, begin, first, rows, size_of_row = list[Part](), 0, 1, 0, size_of(file) / max(1, sum(sizes))
        for end, size in enumerate(sizes, start=1):
            rows += size
            if rows >= RANGE_ROWS or end == len(sizes):
                parts.append(Part((file,), first, ((begin, end),), round(rows * size_of_row)))
                begin, first, rows = end, first + rows, 0
        return parts if len(parts) > 1 else None

    def read_range(self, part: Part) -> Texts:
        assert part.spans is not None
        (file,), (span,) = part.files, part.spans
        with open_parquet(file) as opened:
            columns = self._columns(opened, file)
            read = batches(opened, columns, file, range(*span))
            return Texts.of(self._pairs(read, columns, file, part.first))

    def _columns(self, opened: Any, file: Path) -> list[str]:
        """The names of both columns as the file has them. Raises TmtError if one is missing, not clear, or no text."""
        types, found = text_columns(opened), []
        for wanted in (self.options.source_column, self.options.target_column):
            column = same_name(wanted, types)
            if column is None:
                raise missing_column(wanted, list(types), str(file))
            outer = column.split(".")[0]
            if (number := opened.schema_arrow.names.count(outer)) > 1:
                remedy = "Rename one of them."
                raise TmtError(f"{number} columns have the name '{outer}'", place=file, remedy=remedy)
            if not types[column]:
                kind = opened.schema_arrow.field(outer).type
                remedy = "Name a column of text."
                raise TmtError(f"the column '{column}' has the type {kind}, not text", place=file, remedy=remedy)
            found.append(column)
        return found

    def _pairs(
        self, read: Iterator[list[dict[str, Any]]], columns: Sequence[str], file: Path, first: int
    ) -> Iterator[Pair]:
        """The pairs of these records. first: the number of their first row."""
        for row, record in enumerate((record for batch in read for record in batch), start=first):
            yield pair_of_record(record, columns, at(file, row))


@contextmanager
def open_parquet(file: Path) -> Iterator[Any]:
    """A pyarrow.parquet.ParquetFile. Raises TmtError if the file is not Parquet or damaged, or without pyarrow."""
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError:
        remedy = "Run  pip install pyarrow"
        raise TmtError("reading Parquet files needs the package pyarrow", place=file, remedy=remedy) from None
    check_head(file)
    require_unpacked(file)
    with ExitStack() as stack:
        try:
            source = stack.enter_context(open_address(file)) if isinstance(file, Address) else file
            opened = stack.enter_context(ParquetFile(source))
        except (pyarrow.ArrowException, OSError) as error:
            raise _broken(error, file) from None
        yield opened


def text_columns(opened: Any) -> dict[str, bool]:
    """Whether each column contains text (or only nulls); the columns inside a struct are `struct.field`."""
    from pyarrow import types

    found: dict[str, bool] = {}

    def add(name: str, kind: Any) -> None:
        if types.is_struct(kind):
            for field in kind:
                add(f"{name}.{field.name}", field.type)
            return
        plain = kind.value_type if types.is_dictionary(kind) else kind
        kinds = types.is_string, types.is_large_string, types.is_string_view, types.is_null
        found[name] = any(is_kind(plain) for is_kind in kinds)

    for field in opened.schema_arrow:
        add(field.name, field.type)
    return found


def batches(
    opened: Any, columns: list[str], file: Path, groups: Sequence[int] | None = None
) -> Iterator[list[dict[str, Any]]]:
    """The records of these columns, some thousand at a time. Raises TmtError if the file is damaged.

    groups: the row groups to read; None: all
    """
    import pyarrow

    try:
        for batch in opened.iter_batches(BATCH, row_groups=groups, columns=columns):
            yield batch.to_pylist()
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _broken(error, file) from None


def _broken(error: Exception, file: Path) -> TmtError:
    if isinstance(error, OSError) and error.errno is not None:
        return from_os_error(error, "reading a Parquet file", file)
    return TmtError(
        f"not a Parquet file, or damaged ({reason(error)})", place=file, remedy="Download or copy it again."
    )
