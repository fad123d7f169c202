"""AI Hub's parallel corpora in their original files: workbooks (.xlsx), JSON or CSV. Headers name the columns.

One side is Korean. AI Hub does not allow redistribution, so nothing is downloaded here; see data/README.md.
"""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from transformer_mt.config.corpus import CorpusConfig, SplitConfig
from transformer_mt.config.section import FileName, OneOrMany
from transformer_mt.corpora.base import WHOLE, Corpus, Pair, SkippedRows
from transformer_mt.corpora.quoting import csv_rows
from transformer_mt.corpora.tables import Skip, listed, of_one_width, parse_json
from transformer_mt.corpora.workbook import HEADER_ROWS, Header, Row, pair_of, titles, workbook_pairs
from transformer_mt.errors import TmtError, at
from transformer_mt.files.folder import files_below
from transformer_mt.files.lines import check_exists, check_head, path_of, read_lines

SUFFIXES = (".xlsx", ".json", ".csv")
_PACKED = (".zip", ".7z", ".rar", ".tar", ".tgz", ".gz", ".alz", ".egg")
_OTHERS = (*_PACKED, ".xls", ".tsv", ".jsonl")  # that may contain pairs
_LONGEST = 1 << 28  # bytes; a JSON file may be a single line
_TRANSLATION = ("번역문", "최종번역문")
_NAMES = {  # that the column of a language can have, most likely name first
    "ko": ("원문", "ko", "한국어", "한국어 원문", "국문", "korean", "kor"),
    "en": (*_TRANSLATION, "en", "영어", "영어 번역문", "영어 검수", "영문", "english", "eng"),
    "ja": (*_TRANSLATION, "ja", "jp", "일본어", "일본어 번역문", "japanese"),
    "zh": (*_TRANSLATION, "zh", "cn", "중국어", "중국어 번역문", "chinese"),
}
_SIGN_UP = """Sign up at https://aihub.or.kr, apply for a Korean-English parallel corpus, and unpack the download.
  Then give the folder in your config:  corpus: {kind: aihub, files: data/aihub}   (see data/README.md)"""

Names = tuple[tuple[str, ...], tuple[str, ...]]  # of the source column and of the target column


class AihubCorpus(Corpus):
    always = "ko"
    no_download = ("AI Hub gives its corpora only to registered users", _SIGN_UP)

    class Options(CorpusConfig):
        kind: Literal["aihub"]
        files: OneOrMany[FileName] = Field(
            min_length=1, description="folder, or list of .xlsx, .json and .csv files from AI Hub"
        )
        split: SplitConfig = Field(SplitConfig(), description="how the pairs are divided")

    options: Options

    def __init__(self, options: Options, source: str, target: str) -> None:
        """Raises TmtError unless one of the languages is Korean."""
        super().__init__(options, source, target)
        if "ko" not in (source, target):
            raise TmtError(
                f"one language of an AI Hub corpus is Korean, but this config has {source}-{target}",
                remedy="Set data.source or data.target to ko, or read the files with kind: csv and named columns.",
            )
        self.split_config = options.split

    def splits(self) -> tuple[str, ...]:
        return (WHOLE,)

    def sources(self) -> list[Path]:
        """The given files and those in the given folders, sorted by name. Raises TmtError if there are none."""
        return [file for given in self.options.files for file in _files_at(path_of(given))]

    def read(self, split: str) -> Iterator[Pair]:
        source, target = (_NAMES.get(code, (*_TRANSLATION, code)) for code in (self.source, self.target))
        names = source, target
        for folder in filter(Path.is_dir, map(path_of, self.options.files)):
            if others := [file for file in _inside(folder) if file.suffix.lower() in _OTHERS]:
                reason = f"kind: aihub does not read {listed([file.name for file in others])}"
                remedy = "Unpack archives if their files are not here yet; save tables as .xlsx or .csv."
                self.skip(SkippedRows(str(folder), len(others), reason, remedy, what="file"))
        for file in self.sources():
            check_head(file)
            if file.suffix.lower() == ".xlsx":
                yield from _workbook_pairs(file, names, self.skip)
            elif file.suffix.lower() == ".csv":
                yield from _csv_pairs(file, names, self.skip)
            else:
                yield from _json_pairs(file, names)


def _files_at(given: Path) -> list[Path]:
    """The file, or all files in the folder, by name. Raises TmtError if there is none that can be read."""
    if not given.is_dir():
        check_exists(given)
        if given.suffix.lower() not in SUFFIXES:
            remedy = "Save an .xls workbook as .xlsx; unpack a .zip; for other formats use kind: tsv or text."
            raise TmtError(f"not a file from AI Hub: it must end in {', '.join(SUFFIXES)}", place=given, remedy=remedy)
        return [given]
    inside = _inside(given)
    found = [file for file in inside if file.suffix.lower() in SUFFIXES]
    if not found:
        packed = any(file.suffix.lower() in _PACKED for file in inside)
        remedy = "Unpack the archives there." if packed else "Put AI Hub's files there, as data/README.md describes."
        raise TmtError(f"the folder contains no {', '.join(SUFFIXES)} files", place=given, remedy=remedy)
    return sorted(found, key=lambda file: unicodedata.normalize("NFC", str(file)))


def _inside(folder: Path) -> list[Path]:
    """The files in a folder, without those of an open Excel."""
    return [file for file in files_below(folder) if not file.name.startswith("~$")]


def _workbook_pairs(file: Path, names: Names, skip: Skip) -> Iterator[Pair]:
    """The rows of every sheet with both columns in its header."""
    found: list[str] = []

    def find(rows: Sequence[Row]) -> Header | None:
        header = _find_header(rows, names)
        found.extend(titles(rows) if header is None else ())
        return header

    if not (yield from workbook_pairs(file, find, skip)):
        raise _no_columns(file, names, found)


def _csv_pairs(file: Path, names: Names, skip: Skip) -> Iterator[Pair]:
    rows = csv_rows(file, encoding=_encoding(file))
    first = list(islice(rows, HEADER_ROWS))
    header = _find_header(first, names)
    if header is None:
        raise _no_columns(file, names, titles(first))
    table = of_one_width(chain(first[header.end - 1 :], rows), file, skip, named=True)
    for line, row in islice(table, 1, None):
        yield pair_of(row, header, at(file, line))


def _encoding(file: Path) -> str:
    """UTF-8 or CP949, in which Korean Excel saves a CSV."""
    for encoding in ("utf-8", "cp949"):
        with suppress(TmtError):  # an error with another cause is raised again by the caller
            deque(read_lines(file, encoding, longest=_LONGEST), maxlen=0)
            return encoding
    return "utf-8"


def _json_pairs(file: Path, names: Names) -> Iterator[Pair]:
    """The objects of a list, at the top level or under the key `data`; places count them from 1."""
    lines = read_lines(file, _encoding(file), longest=_LONGEST, in_corpus=False)
    loaded = parse_json("\n".join(line for _, line in lines), file)
    items = loaded.get("data") if isinstance(loaded, dict) else loaded
    if not isinstance(items, list):
        remedy = (
            "The list must be at the top level or under the key data. For other formats use another kind of corpus."
        )
        raise TmtError("this JSON file has no list of pairs", place=file, remedy=remedy)
    for number, item in enumerate(items, start=1):
        keys = list(item) if isinstance(item, dict) else []
        header = _find_header([(number, keys)], names)
        if header is None:
            raise _no_columns(at(file, number), names, keys)
        yield pair_of(list(item.values()), header, at(file, number))


def _find_header(rows: Iterable[tuple[int, Sequence[Any]]], names: Names) -> Header | None:
    """The first of the numbered rows with both columns, or None; case, spaces and Unicode normal form are ignored."""
    for end, (_, row) in enumerate(rows, start=1):
        cells = [" ".join(unicodedata.normalize("NFC", str(cell or "")).casefold().split()) for cell in row]
        source, target = (next((cells.index(name) for name in side if name in cells), None) for side in names)
        if source is not None and target is not None:
            return Header(end, source, target)
    return None


def _no_columns(place: str | Path, names: Names, found: Sequence[str]) -> TmtError:
    source, target = names
    return TmtError(
        f"no header with a source column ({', '.join(source)}) and a target column ({', '.join(target)})",
        place=place,
        remedy=f"Columns found: {listed(found)}\n  Rename them, or read the file with kind: csv and named columns.",
    )
