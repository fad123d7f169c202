"""AI Hub's parallel corpora in their original files: workbooks (.xlsx), JSON or CSV, these two also in archives (.zip).

Headers name the columns.

One side is Korean. AI Hub does not allow redistribution, so nothing is downloaded here; see data/README.md.
"""

from __future__ import annotations

import codecs
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from transformer_mt.config.section import FileName, OneOrMany
from transformer_mt.corpora.base import FilesCorpus, Pair, SkippedRows
from transformer_mt.corpora.json_files import objects_in
from transformer_mt.corpora.quoting import csv_rows
from transformer_mt.corpora.tables import Skip, TableOptions, cell_text, listed, of_one_width
from transformer_mt.corpora.workbook import HEADER_ROWS, Header, Row, pair_of, titles, workbook_pairs
from transformer_mt.errors import TmtError, at
from transformer_mt.files.folder import files_below
from transformer_mt.files.lines import check_exists, check_head, path_of, read_text
from transformer_mt.files.opening import archive_of, read_head, with_archived

SUFFIXES = (".xlsx", ".json", ".csv")
_HEAD = 1 << 17  # bytes, which tell the encoding unless they are all ASCII
_IN_ARCHIVES = (".json", ".csv")
_PACKED = (".zip", ".7z", ".rar", ".tar", ".tgz", ".gz", ".alz", ".egg")
_OTHERS = (*_PACKED, ".xls", ".tsv", ".jsonl")  # that may contain pairs
_TRANSLATION = ("최종번역문", "번역문")  # the final one, and one that may be before its review
_NAMES = {  # that the column of a language can have, most likely name first
    "ko": ("원문", "ko", "한국어", "한국어 원문", "국문", "korean", "kor"),
    "en": (*_TRANSLATION, "en", "영어 검수", "영어", "영어 번역문", "영문", "english", "eng"),
    "ja": (*_TRANSLATION, "ja", "jp", "일본어", "일본어 번역문", "japanese"),
    "zh": (*_TRANSLATION, "zh", "cn", "중국어", "중국어 번역문", "chinese"),
}
_SIGN_UP = """Sign up at https://aihub.or.kr, apply for a Korean-English parallel corpus, and unpack the download.
  Then give the folder in your config:  corpus: {kind: aihub, files: data/aihub}   (see data/README.md)"""

Names = tuple[tuple[str, ...], tuple[str, ...]]  # of the source column and of the target column


class AihubCorpus(FilesCorpus):
    always = "ko"
    no_download = ("AI Hub gives its corpora only to registered users", _SIGN_UP)

    class Options(TableOptions):
        NEWER = (*TableOptions.NEWER, ("train", None), ("validation", None), ("test", None))

        kind: Literal["aihub"]
        files: OneOrMany[FileName] | None = Field(
            None, description="folders, or .xlsx, .json and .csv files from AI Hub, that are split"
        )
        train: OneOrMany[FileName] | None = Field(None, description="folders or files for training")
        validation: FileName | None = Field(None, description="folder or file for validation")
        test: dict[str, FileName] | None = Field(None, description="test folders or files by name, as in other kinds")

    def __init__(self, options: Options, source: str, target: str) -> None:
        """Raises TmtError unless one of the languages is Korean."""
        super().__init__(options, source, target)
        if "ko" not in (source, target):
            raise TmtError(
                f"one language of an AI Hub corpus is Korean, but this config has {source}-{target}",
                remedy="Set data.source or data.target to ko, or read the files with kind: csv and named columns.",
            )

    def entries_of(self, part: str) -> Iterator[tuple[Path, ...]]:
        """Each given file, or those in a folder, by name. Raises TmtError if there is none that can be read."""
        folder = path_of(part)
        archive = folder if folder.suffix.lower() == ".zip" and folder.is_file() else archive_of(folder)
        if folder.is_dir() or (archive is not None and folder.suffix.lower() not in SUFFIXES):
            yield from ((file,) for file in self._files_in(folder, archive))
            return
        for (file,) in super().entries_of(part):
            check_exists(file)
            if file.suffix.lower() not in SUFFIXES:
                remedy = "Save an .xls workbook as .xlsx; other files can be read with kind: json, csv, tsv or text."
                raise TmtError(
                    f"not a file from AI Hub: it must end in {', '.join(SUFFIXES)}", place=file, remedy=remedy
                )
            yield (file,)

    def _files_in(self, folder: Path, archive: Path | None) -> list[Path]:
        """archive: the one that the folder is inside, or that it is"""
        inside = with_archived(files_below(folder) if archive is None else [archive], _IN_ARCHIVES)
        inside = [file for file in inside if file.is_relative_to(folder)]
        inside = [file for file in inside if not file.name.startswith("~$")]  # those of an open Excel
        if archive is not None and folder != archive and not inside:
            check_exists(folder)
        if not (found := [file for file in inside if file.suffix.lower() in SUFFIXES]):
            packed = any(file.suffix.lower() in _PACKED for file in inside)
            remedy = (
                "Unpack the archives there." if packed else "Put AI Hub's files there, as data/README.md describes."
            )
            raise TmtError(f"the folder contains no {', '.join(SUFFIXES)} files", place=folder, remedy=remedy)
        if others := [file for file in inside if file.suffix.lower() in _OTHERS]:
            reason = f"kind: aihub does not read {listed([file.name for file in others])}"
            remedy = "Unpack archives if their files are not here yet; save tables as .xlsx or .csv."
            self.skip(SkippedRows(str(folder), len(others), reason, remedy, what="file"))
        return sorted(found, key=lambda file: unicodedata.normalize("NFC", str(file)))

    def read_files(self, *files: Path) -> Iterator[Pair]:
        (file,) = files
        source, target = (_NAMES.get(code, (*_TRANSLATION, code)) for code in (self.source, self.target))
        names = source, target
        check_head(file)
        if file.suffix.lower() == ".xlsx":
            yield from _workbook_pairs(file, names, self.skip)
        elif file.suffix.lower() == ".csv":
            yield from _csv_pairs(file, names, self.skip, self.errors)
        else:
            yield from _json_pairs(file, names, self.errors)


def _workbook_pairs(file: Path, names: Names, skip: Skip) -> Iterator[Pair]:
    """The rows of every sheet with both columns in its header."""
    found: list[str] = []

    def find(rows: Sequence[Row]) -> Header | None:
        header = _find_header(rows, names)
        found.extend(titles(rows) if header is None else ())
        return header

    if not (yield from workbook_pairs(file, find, skip)):
        raise _no_columns(file, names, found)


def _csv_pairs(file: Path, names: Names, skip: Skip, errors: str) -> Iterator[Pair]:
    rows = csv_rows(file, encoding=_encoding(file), errors=errors)
    first = list(islice(rows, HEADER_ROWS))
    header = _find_header(first, names)
    if header is None:
        raise _no_columns(file, names, titles(first))
    table = of_one_width(chain(first[header.end - 1 :], rows), file, skip, named=True)
    for line, row in islice(table, 1, None):
        yield pair_of(row, header, at(file, line))


def _encoding(file: Path) -> str:
    """UTF-8 or CP949, in which Korean Excel saves a CSV."""
    head = read_head(file, _HEAD)
    for encoding in ("utf-8", "cp949"):
        with suppress(TmtError, UnicodeDecodeError):  # an error with another cause is raised again by the caller
            if head.isascii():
                deque(read_text(file, encoding), maxlen=0)
            else:
                codecs.getincrementaldecoder(encoding)().decode(head)
            return encoding
    return "utf-8"


def _json_pairs(file: Path, names: Names, errors: str) -> Iterator[Pair]:
    """The objects of a list, at the top level or under the key `data`; places count them from 1."""
    known, header = list[str](), None
    items = objects_in(file, _encoding(file), "data", in_corpus=False, errors=errors)
    for number, item in enumerate(items, start=1):
        place = at(file, number)
        if not isinstance(item, dict):
            remedy = 'Each pair is an object, such as  {"ko": "...", "en": "..."}'
            raise TmtError("this item of the list is no object", place=place, remedy=remedy)
        if (keys := list(item)) != known:
            known, header = keys, _find_header([(number, keys)], names)
        if header is None:
            raise _no_columns(place, names, keys)
        source, target = (cell_text(item[keys[n]], keys[n], place) for n in (header.source, header.target))
        yield Pair(source, target, place)


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
