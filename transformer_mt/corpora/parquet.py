"""Parquet files, as Hugging Face stores data sets: two columns of text, also inside a struct (`translation.de`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

from transformer_mt.corpora.base import FilesCorpus, Pair
from transformer_mt.corpora.tables import NamedColumnsOptions, TableOptions, missing_column, reach
from transformer_mt.errors import TmtError, at, from_os_error, reason
from transformer_mt.files.address import Address
from transformer_mt.files.lines import check_head
from transformer_mt.files.remote import open_address

BATCH = 2_000  # rows


class ParquetCorpus(FilesCorpus):
    class Options(NamedColumnsOptions, TableOptions):
        kind: Literal["parquet"]

    options: Options

    def read_files(self, *files: Path) -> Iterator[Pair]:
        (file,) = files
        columns = [self.options.source_column, self.options.target_column]
        with open_parquet(file) as opened:
            types = text_columns(opened)
            for column in columns:
                if column not in types:
                    raise missing_column(column, list(types), str(file))
                if not types[column]:
                    kind = opened.schema_arrow.field(column.split(".")[0]).type
                    remedy = "Name a column of text."
                    raise TmtError(f"the column '{column}' has the type {kind}, not text", place=file, remedy=remedy)
            row = 0
            for batch in batches(opened, columns, file):
                for record in batch:
                    row += 1
                    place = at(file, row)
                    source, target = (_cell(record, column, place) for column in columns)
                    yield Pair(source, target, place)


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
        found[name] = types.is_string(plain) or types.is_large_string(plain) or types.is_null(plain)

    for field in opened.schema_arrow:
        add(field.name, field.type)
    return found


def batches(opened: Any, columns: list[str], file: Path) -> Iterator[list[dict[str, Any]]]:
    """The records of these columns, some thousand at a time. Raises TmtError if the file is damaged."""
    import pyarrow

    try:
        for batch in opened.iter_batches(BATCH, columns=columns):
            yield batch.to_pylist()
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _broken(error, file) from None


def _cell(record: dict[str, Any], column: str, place: str) -> str:
    """The text of a cell; a null, also of the struct around it, is an empty side."""
    outer = record.get(column.split(".")[0])
    return "" if outer is None and column not in record else reach(record, column, place)


def _broken(error: Exception, file: Path) -> TmtError:
    if isinstance(error, OSError) and error.errno is not None:
        return from_os_error(error, "reading a Parquet file", file)
    return TmtError(
        f"not a Parquet file, or damaged ({reason(error)})", place=file, remedy="Download or copy it again."
    )
