"""What a corpus is to the rest of the package: splits that can be read, pair by pair.

A corpus yields what its files hold, neither cleaned nor shuffled nor divided; that is the pipeline's business.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pydantic import Field, model_validator

from transformer_mt.config.corpus import CorpusConfig, SplitConfig
from transformer_mt.files.lines import check_exists

WHOLE = "all"  # the one split of a corpus that is still to be divided
RESERVED_SPLITS = ("train", "validation", WHOLE, "source", "target", "scratch", "plots", "manifest.json")  # in use


class Pair(NamedTuple):
    """A sentence and its translation. place: `file:line` (in tables `file:row`), for messages and reports."""

    source: str
    target: str
    place: str


class SkippedRows(NamedTuple):
    """Rows of a file that reading passed over, since they could not be told to be pairs."""

    place: str
    rows: int


class Corpus(ABC):
    """One entry of `data.corpus`, of some kind; `Options` are its keys in the config.

    languages:   those it has; None: any
    is_public:   whether its files can be downloaded
    no_download: why they cannot, and what to do
    """

    Options: ClassVar[type[CorpusConfig]]
    languages: ClassVar[tuple[str, ...] | None] = None
    is_public: ClassVar[bool] = False
    no_download: ClassVar[tuple[str, str] | None] = None

    def __init__(self, options: CorpusConfig, source: str, target: str) -> None:  # noqa: B027
        """source, target: ISO codes of the languages to read."""

    @classmethod
    def download(cls, folder: Path, mirror: str | None = None, progress: bool = True) -> Iterator[tuple[str, str]]:
        """Fetch every file of a public corpus; yields each name and what became of it."""
        raise NotImplementedError

    def fetch(self, progress: bool = True) -> None:
        """Make the corpus' files exist, or raise TmtError. progress: tell of it on stderr."""
        for file in self.files():
            check_exists(file)

    def files(self) -> list[Path]:
        """The files that are read, after `fetch`: what a fingerprint of the corpus must cover."""
        return []

    @property
    def split_config(self) -> SplitConfig | None:
        """How to divide the corpus; None where it comes in splits."""
        return None

    @abstractmethod
    def splits(self) -> tuple[str, ...]:
        """("all",) for a corpus that is to be divided, else ("train", "validation", *names of the test sets)."""

    @abstractmethod
    def read(self, split: str) -> Iterator[Pair]:
        """The pairs of a split in the order of the files, streamed. Raises TmtError with file and line."""

    def passed(self) -> list[SkippedRows]:
        """What the last reading to the end has passed over, for the report."""
        return []


class FilesOptions(CorpusConfig):
    """What the kinds made of files share: either `files` to be split, or files per split."""

    split: SplitConfig = Field(SplitConfig(), description="how `files` are divided")

    @model_validator(mode="after")
    def _one_way_of_splitting(self) -> FilesOptions:
        whole = getattr(self, "files", None)
        parts = getattr(self, "train", None)
        if (whole is None) == (parts is None):
            raise ValueError("give either `files` (to be split) or `train`, `validation` and `test`")
        if parts is not None and getattr(self, "validation", None) is None:
            raise ValueError("`train` needs a `validation` beside it; or give `files` and let them be split")
        if parts is None and (getattr(self, "validation", None), getattr(self, "test", None)) != (None, None):
            raise ValueError("`files` are split; leave `validation` and `test` out, or name the training files `train`")
        for name in getattr(self, "test", None) or {}:
            if name in RESERVED_SPLITS or not re.fullmatch(r"\w[\w.-]*", name):
                raise ValueError(f"'{name}' cannot name a test set; take another of letters, digits, '.', '-' and '_'")
        return self


class FilesCorpus(Corpus):
    """A corpus of the user's own files: `files` to be divided, or files for each split."""

    def __init__(self, options: Any, source: str, target: str) -> None:
        """options: `FilesOptions`, with files, train, validation and test as the kind names them."""
        self._split_config: SplitConfig | None = None
        if options.files is not None:
            self._split_config, self._parts = options.split, {WHOLE: options.files}
        else:
            tests = {name: (part,) for name, part in (options.test or {}).items()}
            self._parts = {"train": options.train or (), "validation": (options.validation,), **tests}

    @property
    def split_config(self) -> SplitConfig | None:
        return self._split_config

    def splits(self) -> tuple[str, ...]:
        return tuple(self._parts)

    def files(self) -> list[Path]:
        return [file for parts in self._parts.values() for part in parts for file in self._paths(part)]

    def read(self, split: str) -> Iterator[Pair]:
        for part in self._parts[split]:
            yield from self._read(*self._paths(part))

    @abstractmethod
    def _paths(self, part: Any) -> tuple[Path, ...]:
        """The file or files that one entry of the config names."""

    @abstractmethod
    def _read(self, *files: Path) -> Iterator[Pair]:
        """The pairs of one entry."""
