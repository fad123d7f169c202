"""Which files in a folder or an archive are tables of pairs, and which are about them."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from transformer_mt.corpora.aihub import SUFFIXES
from transformer_mt.corpora.base import Corpus
from transformer_mt.corpora.looking import Contents, contents_of
from transformer_mt.corpora.splits import role_of
from transformer_mt.corpora.tables import is_header, listed
from transformer_mt.errors import TmtError
from transformer_mt.files.folder import files_below
from transformer_mt.files.opening import plain_path, read_head, with_archived
from transformer_mt.reporting.notes import note
from transformer_mt.workflows.proposal.columns import is_table

TABLES = (".tsv", ".csv", ".txt", ".jsonl", ".tmx", ".parquet", *SUFFIXES)
_IN_ARCHIVES = tuple(suffix for suffix in TABLES if suffix not in (".xlsx", ".parquet", ".txt"))
SIDES = (".src", ".trg", ".tgt", ".ref")  # endings of parallel files that do not name their languages
_NOTES = (".txt", ".json")  # these may be about the tables, such as README.txt
_LONGEST_NOTE = 1 << 20  # bytes
_FEW = 20  # objects of a JSON file: so few may describe the corpus, unless their keys are those of sentences
_NO_TABLE = "it is no table of sentence pairs"


class Tables:
    """Looks at files, at each of them once."""

    def __init__(self) -> None:
        self._looked: dict[Path, Contents | TmtError] = {}

    def contents(self, file: Path) -> Contents:
        """What is in a file or a folder of parallel files. Raises TmtError as `contents_of`."""
        if file not in self._looked:
            try:
                self._looked[file] = contents_of(file)
            except TmtError as error:
                self._looked[file] = error
        found = self._looked[file]
        if isinstance(found, TmtError):
            raise found
        return found

    def at(self, place: Path) -> list[Path]:
        """The tables in a folder or an archive; the place itself if it has parallel files, or is a file."""
        if place.is_dir():
            return self._in_folder(place) or [place]
        if place.suffix.lower() == ".zip" and place.is_file() and not self._is_parallel(place):
            inside = with_archived([place], _IN_ARCHIVES)
            if len(inside) > 1 and place in inside:
                note(f"{place}: only its tables of text are read; unpack it for the others")
            inside = [one for one in inside if one != place]
            if inside:
                return self._chosen(place, inside, inside, ())
            texts = [one for one in with_archived([place], (".txt",)) if one != place]
            are_tables = any(not self._why_no_table(one, is_any=True) for one in texts)
            return self._chosen(place, texts, texts, texts) if are_tables else [place]
        return [place]

    def _in_folder(self, folder: Path) -> list[Path]:
        """The tables in a folder; none if it has parallel files instead.

        Those in folders below it, and in archives, are read if here are none; otherwise those in folders that are named
        as splits.
        """
        inside = sorted(one for one in folder.iterdir() if not one.name.startswith(("~$", ".")))
        top = [one for one in inside if _suffix(one) in TABLES and one.is_file()]
        is_parallel = self._is_parallel(folder)
        below: list[Path] = []
        if not is_parallel and not any(not self._why_no_table(one) for one in top):
            inside = with_archived(files_below(folder), _IN_ARCHIVES)
            top = [one for one in inside if _suffix(one) in TABLES]
            below = [one for one in top if not one.exists()]  # those in archives
            if all(self._why_no_table(one, is_any=True) for one in top) and (others := self._without_tables(inside)):
                return others
        elif not is_parallel:
            splits = [one for one in inside if one.is_dir() and role_of(f"{one.name}/file")]
            below = [file for one in splits for file in with_archived(files_below(one), _IN_ARCHIVES)]
            inside = [*(one for one in inside if one not in splits), *below]
            below = [one for one in below if _suffix(one) in TABLES]
        named = [one for one in dict.fromkeys((*top, *below)) if not one.name.startswith("~$")]
        return self._chosen(folder, inside, named, below, is_parallel)

    def _without_tables(self, inside: Sequence[Path]) -> list[Path]:
        """Of files without tables, the archives with parallel files or tables of text, or else the sides of pairs."""
        packed = [one for one in inside if zipfile.is_zipfile(one)]
        found = [table for one in packed for table in self.at(one) if table != one or self._is_parallel(one)]
        return found or [one for one in inside if _suffix(one) in SIDES]

    def _chosen(
        self, place: Path, inside: Sequence[Path], named: Sequence[Path], below: Sequence[Path], parallel: bool = False
    ) -> list[Path]:
        """Those of the named files that are tables, with notes about all others.

        inside: all files; below: those of which any may be something else
        """
        notes = {one: why for one in named if (why := self._why_no_table(one, one in below))}
        tables = [one for one in named if one not in notes]
        if not tables and notes and parallel:
            note(f"{place}: only the parallel files in it are read, not {listed([one.name for one in notes])}")
            return []
        if not tables:
            tables, notes = list(named), {}
        for one, why in notes.items():
            note(f"{one}: not read, because other files of this folder can be: {why}")
        if tables and (others := [one.relative_to(place).as_posix() for one in inside if one not in named]):
            note(f"{place}: only the tables in it are read, not {listed(others)}")
        return tables

    def _why_no_table(self, file: Path, is_any: bool = False) -> str:
        """Why a file is no table of pairs, but about others; "" if it may be one.

        is_any: whether it may be something else, whatever its suffix is
        """
        if _suffix(file) not in _NOTES and not is_any:
            return ""
        try:
            found = self.contents(file)
        except TmtError as error:
            if is_any or _is_about_others(file):
                return error.message
            raise
        if not is_table(found):
            return _NO_TABLE
        is_small = found.kind == "json" and all(len(cells) < _FEW for cells in found.columns.values())
        return _NO_TABLE if is_small and not _has_known_names(found.columns) else ""

    def _is_parallel(self, folder: Path) -> bool:
        try:
            return bool(self.contents(folder).columns)
        except TmtError:
            return False


def _suffix(file: Path) -> str:
    """The ending of its name, without that of a compression."""
    return plain_path(file).suffix.lower()


def _has_known_names(columns: Iterable[str | int]) -> bool:
    return sum(is_header([str(name).rpartition(".")[2]]) for name in columns) > 1


def _is_about_others(file: Path) -> bool:
    """Whether a file that is no table is by its name or form about other files, so that no pair is lost without it."""
    if file.suffix.lower() != ".json":
        return re.match("readme|licen[cs]e|copying|notice|citation|about|info", file.name, re.IGNORECASE) is not None
    try:
        content = read_head(file, _LONGEST_NOTE + 1)
        return len(content) <= _LONGEST_NOTE and isinstance(json.loads(content), dict)
    except (TmtError, ValueError, RecursionError):
        return False


def note_not_read(folder: Path, readers: Sequence[Corpus]) -> None:
    """Name the files of a folder of parallel files that no corpus reads: a test set may be among them."""
    if folder.is_dir():
        read = {file.resolve() for one in readers for file in one.files()}
        others = [one for one in files_below(folder) if one.resolve() not in read and not _is_about_others(one)]
        if others:
            note(f"{folder}: not read: {listed([one.relative_to(folder).as_posix() for one in others])}")
