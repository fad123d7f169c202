"""The interface of all corpora: splits that are read pair by pair.

A corpus yields the pairs as they are in its files. The room `data` cleans, shuffles and divides them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pydantic import Field, model_validator

from transformer_mt.config.corpus import CorpusConfig, SplitConfig
from transformer_mt.files.lines import check_exists, path_of

WHOLE = "all"  # the only split of a corpus that prepare divides
# A test set cannot have these names, because the folder of prepared data uses them.
RESERVED_SPLITS = ("train", "validation", WHOLE, "source", "target", "scratch", "plots", "manifest.json")


class Pair(NamedTuple):
    """A sentence and its translation. place: `file:line` (in tables `file:row`), for messages and reports."""

    source: str
    target: str
    place: str


class SkippedRows(NamedTuple):
    """Rows that are not pairs and were skipped.

    place:  the file, or the sheet of a workbook
    reason: why they were skipped
    remedy: what to do if they are pairs
    first:  the places of the first ones
    """

    place: str
    rows: int
    reason: str = ""
    remedy: str = ""
    first: tuple[str, ...] = ()


class Corpus(ABC):
    """One entry of `data.corpus`; `Options` are its keys in the config.

    languages:    the languages it has; None: any
    is_public:    whether `download` can fetch its files
    no_download:  why its files cannot be downloaded, and what to do
    split_config: how to divide the corpus; None if it comes in splits
    """

    Options: ClassVar[type[CorpusConfig]]
    languages: ClassVar[tuple[str, ...] | None] = None
    is_public: ClassVar[bool] = False
    no_download: ClassVar[tuple[str, str] | None] = None
    options: CorpusConfig
    split_config: SplitConfig | None = None

    def __init__(self, options: CorpusConfig, source: str, target: str) -> None:
        """source, target: ISO codes of the languages to read."""
        self.options, self.source, self.target = options, source, target
        self._skipped: dict[tuple[str, str], SkippedRows] = {}

    @classmethod
    def download(cls, folder: Path, mirror: str | None = None, progress: bool = True) -> Iterator[tuple[str, str]]:
        """Download every file of a public corpus; yields the name of each file and what was done."""
        raise NotImplementedError

    def fetch(self, progress: bool = True) -> None:
        """Make sure that the files exist; raises TmtError if that fails. progress: show progress on stderr."""
        for file in self.files():
            check_exists(file)

    def files(self) -> list[Path]:
        """The files that are read, after `fetch`; a fingerprint of the corpus covers them."""
        return []

    @abstractmethod
    def splits(self) -> tuple[str, ...]:
        """("all",) if the corpus will be divided, else ("train", "validation", *names of the test sets)."""

    @abstractmethod
    def read(self, split: str) -> Iterator[Pair]:
        """The pairs of a split, one by one, in the order of the files. Raises TmtError with file and line."""

    def skipped(self) -> list[SkippedRows]:
        """The rows that the last complete reading of each file skipped, for the report."""
        return list(self._skipped.values())

    def skip(self, rows: SkippedRows) -> None:
        """Record skipped rows, for `skipped`."""
        self._skipped[rows.place, rows.reason] = rows


class FilesOptions(CorpusConfig):
    """Options of all kinds that read files: either `files` to be split, or files for each split."""

    split: SplitConfig = Field(SplitConfig(), description="how `files` are divided")

    @model_validator(mode="after")
    def _one_way_of_splitting(self) -> FilesOptions:
        whole = getattr(self, "files", None)
        parts = getattr(self, "train", None)
        if (whole is None) == (parts is None):
            raise ValueError("give either `files`, which are split, or `train`, `validation` and `test`")
        if parts is not None and getattr(self, "validation", None) is None:
            raise ValueError("`train` needs `validation` too; or give `files`, which are split")
        if parts is None and (getattr(self, "validation", None), getattr(self, "test", None)) != (None, None):
            raise ValueError("`files` are split; remove `validation` and `test`, or rename `files` to `train`")
        for name in getattr(self, "test", None) or {}:
            if name in RESERVED_SPLITS or not re.fullmatch(r"\w[\w.-]*", name):
                raise ValueError(
                    f"'{name}' cannot be the name of a test set; use another name of letters, digits, '.', '-' and '_'"
                )
        return self


class FilesCorpus(Corpus):
    """A corpus of the user's own files: either `files` to be divided, or files for each split."""

    def __init__(self, options: Any, source: str, target: str) -> None:
        """options: `FilesOptions` with the keys files, train, validation and test."""
        super().__init__(options, source, target)
        if options.files is not None:
            self.split_config, self._parts = options.split, {WHOLE: options.files}
        else:
            tests = {name: (part,) for name, part in (options.test or {}).items()}
            self._parts = {"train": options.train or (), "validation": (options.validation,), **tests}

    def splits(self) -> tuple[str, ...]:
        return tuple(self._parts)

    def files(self) -> list[Path]:
        return [file for parts in self._parts.values() for part in parts for file in self.paths_of(part)]

    def read(self, split: str) -> Iterator[Pair]:
        for part in self._parts[split]:
            yield from self.read_files(*self.paths_of(part))

    def paths_of(self, part: Any) -> tuple[Path, ...]:
        """The file or files of one entry in the config. Here, the entry is a file name."""
        return (path_of(part),)

    @abstractmethod
    def read_files(self, *files: Path) -> Iterator[Pair]:
        """The pairs of one entry: of a file, or of several that belong together."""
