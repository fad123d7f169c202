"""AI Hub's parallel corpora as they are handed out: workbooks (.xlsx), JSON or CSV, columns found by their headers.

One side is Korean, the other the language it was translated into or from. AI Hub forbids passing the files on,
so there is nothing to download here; see data/README.md.
"""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, field_validator

from transformer_mt.config.corpus import CorpusConfig, SplitConfig
from transformer_mt.config.section import Many
from transformer_mt.corpora.base import WHOLE, Corpus, Pair, SkippedRows
from transformer_mt.corpora.tables import cell_text, csv_rows, listed, of_one_width, parse_json
from transformer_mt.corpora.workbook import open_sheets
from transformer_mt.errors import TmtError, at
from transformer_mt.files.lines import check_exists, check_head, path_of, read_lines

SUFFIXES = (".xlsx", ".json", ".csv")
HEADER_ROWS = 10  # a header stands within the first rows of a sheet, below a title perhaps
_KOREAN = ("원문", "ko", "한국어", "한국어 원문", "국문", "korean", "kor")
_OTHERS = {
    "en": ("번역문", "최종번역문", "en", "영어", "영어 번역문", "영어 검수", "영문", "english", "eng"),
    "ja": ("번역문", "최종번역문", "ja", "jp", "일본어", "일본어 번역문", "japanese"),
    "zh": ("번역문", "최종번역문", "zh", "cn", "중국어", "중국어 번역문", "chinese"),
}


_SIGN_UP = """Sign up at https://aihub.or.kr, apply for a Korean-English parallel corpus, and unpack what you get.
  Then name the folder in your config:  corpus: {kind: aihub, files: data/aihub}   (see data/README.md)"""


class AihubCorpus(Corpus):
    no_download = ("AI Hub hands its corpora out to registered users only", _SIGN_UP)

    class Options(CorpusConfig):
        kind: Literal["aihub"]
        files: Many[str] = Field(
            min_length=1, description="folder or list of the .xlsx, .json and .csv files handed out"
        )
        split: SplitConfig = Field(SplitConfig(), description="how the pairs are divided")

        @field_validator("files", mode="before", json_schema_input_type=str | tuple[str, ...])
        @classmethod
        def _several(cls, value: Any) -> Any:
            return [value] if isinstance(value, str) else value

    def __init__(self, options: Options, source: str, target: str) -> None:
        """Raises TmtError unless one of the languages is Korean."""
        if "ko" not in (source, target):
            raise TmtError(
                f"the corpora of AI Hub pair Korean with another language, and this config asks for {source}-{target}",
                remedy="Set data.source or data.target to ko, or read the files with kind: csv and named columns.",
            )
        self._config = options
        self._headers = _headers(source), _headers(target)
        self._passed: list[SkippedRows] = []

    @property
    def split_config(self) -> SplitConfig:
        return self._config.split

    def splits(self) -> tuple[str, ...]:
        return (WHOLE,)

    def files(self) -> list[Path]:
        """The files named, and those of the folders named, by name. Raises TmtError where there are none."""
        return [file for given in self._config.files for file in _files_at(path_of(given))]

    def read(self, split: str) -> Iterator[Pair]:
        self._passed.clear()
        for file in self.files():
            check_head(file)
            if file.suffix.lower() == ".xlsx":
                yield from _workbook_pairs(file, *self._headers, self._passed)
            else:
                yield from _READERS[file.suffix.lower()](file, *self._headers)

    def passed(self) -> list[SkippedRows]:
        return self._passed


Names = tuple[str, ...]  # names that a column may have, the likeliest first


class Header(NamedTuple):
    """Where a table's header ends (rows from its top) and in which columns the two sides stand."""

    end: int
    source: int
    target: int


def _headers(language: str) -> Names:
    return _KOREAN if language == "ko" else _OTHERS.get(language, ("번역문", "최종번역문", language))


def _files_at(given: Path) -> list[Path]:
    if not given.is_dir():
        check_exists(given)
        if given.suffix.lower() not in SUFFIXES:
            remedy = "Save an old .xls workbook as .xlsx; unpack a .zip; read other layouts with kind: tsv or text."
            raise TmtError(
                f"AI Hub's corpora are {', '.join(SUFFIXES)} files; this is none", place=given, remedy=remedy
            )
        return [given]
    inside = [file for file in given.rglob("*") if file.is_file() and not file.name.startswith(("~$", "."))]
    found = [file for file in inside if file.suffix.lower() in SUFFIXES]
    if not found:
        packed = any(file.suffix.lower() == ".zip" for file in inside)
        remedy = "Unpack the .zip files there." if packed else "Put AI Hub's files there; data/README.md tells how."
        raise TmtError(f"the folder holds no {', '.join(SUFFIXES)} files", place=given, remedy=remedy)
    return sorted(found, key=lambda file: unicodedata.normalize("NFC", str(file)))


def _workbook_pairs(file: Path, source: Names, target: Names, passed: list[SkippedRows]) -> Iterator[Pair]:
    """Rows of every sheet that has a header with both columns; other sheets (of notes, perhaps) are added to `passed`.

    Places count the rows of a sheet.
    """
    seen: list[str] = []
    n_read = 0
    for title, sheet_rows in open_sheets(file):
        rows = enumerate(sheet_rows, start=1)
        first = list(islice(rows, HEADER_ROWS))
        header = _find_header([row for _, row in first], source, target)
        if header is None:
            seen += _titles(first)
            if filled := sum(any(row) for _, row in chain(first, rows)):
                passed.append(SkippedRows(f"{file}[{title}]", filled))
            continue
        n_read += 1
        name = str(file) if n_read == 1 else f"{file}[{title}]"
        for number, row in chain(first[header.end :], rows):
            yield _pair(row, header, at(name, number))
    if not n_read:
        raise _no_columns(file, source, target, seen)


def _csv_pairs(file: Path, source: Names, target: Names) -> Iterator[Pair]:
    rows = csv_rows(file, encoding=_encoding(file))
    first = list(islice(rows, HEADER_ROWS))
    header = _find_header([row for _, row in first], source, target)
    if header is None:
        raise _no_columns(file, source, target, _titles(first))
    table = of_one_width(chain(first[header.end - 1 :], rows), file)
    for line, row in islice(table, 1, None):
        yield _pair(row, header, at(file, line))


def _encoding(file: Path) -> str:
    """UTF-8, or CP949, in which Korean Excel saves a CSV."""
    for encoding in ("utf-8", "cp949"):
        with suppress(TmtError):  # it comes again while reading, if it was of another kind
            deque(read_lines(file, encoding), maxlen=0)
            return encoding
    return "utf-8"


def _json_pairs(file: Path, source: Names, target: Names) -> Iterator[Pair]:
    """Objects of a list, at the top or under `data`; places count them from 1."""
    loaded = parse_json("\n".join(line for _, line in read_lines(file)), file)
    items = loaded.get("data") if isinstance(loaded, dict) else loaded
    if not isinstance(items, list):
        remedy = "AI Hub's JSON files hold a list of pairs, at the top or under the key data."
        raise TmtError("there is no list of pairs in this JSON file", place=file, remedy=remedy)
    for number, item in enumerate(items, start=1):
        keys = list(item) if isinstance(item, dict) else []
        header = _find_header([keys], source, target)
        if header is None:
            raise _no_columns(at(file, number), source, target, keys)
        yield _pair(list(item.values()), header, at(file, number))


_READERS = {".csv": _csv_pairs, ".json": _json_pairs}


def _find_header(rows: Iterable[Sequence[Any]], source: Names, target: Names) -> Header | None:
    for number, row in enumerate(rows, start=1):
        cells = [_plain(cell) for cell in row]
        left, right = _match(cells, source), _match(cells, target)
        if left is not None and right is not None:
            return Header(number, left, right)
    return None


def _match(cells: Sequence[str], names: Names) -> int | None:
    return next((cells.index(name) for name in names if name in cells), None)


def _plain(cell: Any) -> str:
    """A header for comparison: letter case, spaces and the way Hangul is composed make no difference."""
    return " ".join(unicodedata.normalize("NFC", str(cell or "")).casefold().split())


def _pair(row: Sequence[Any], header: Header, place: str) -> Pair:
    """A row that ends early, or a cell without content, gives an empty side, which cleaning counts and drops."""
    columns = (header.source, header.target)
    source, target = (cell_text(row[column], "cell", place) if column < len(row) else "" for column in columns)
    return Pair(source, target, place)


def _titles(first: Sequence[tuple[int, Sequence[Any]]]) -> list[str]:
    """What the first row with content says, for an error that shows the columns found."""
    return [str(cell) for cell in next((row for _, row in first if any(row)), ()) if cell is not None]


def _no_columns(place: str | Path, source: Names, target: Names, found: Sequence[str]) -> TmtError:
    return TmtError(
        f"no column of the source ({', '.join(source)}) beside one of the target ({', '.join(target)})",
        place=place,
        remedy=f"The columns found are: {listed(found)}\n  Rename them, or read the file as a csv with named columns.",
    )
