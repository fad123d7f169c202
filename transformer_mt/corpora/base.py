"""What a corpus is to the rest of the package: splits that can be read, pair by pair.

A corpus yields what its files hold, neither cleaned nor shuffled nor divided; that is the pipeline's business.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from transformer_mt.config.data import SplitConfig, TableConfig, TextConfig
from transformer_mt.files.lines import check_exists

WHOLE = "all"  # the one split of a corpus that is still to be divided


class Pair(NamedTuple):
    """A sentence and its translation. place: `file:line` (in tables `file:row`), for messages and reports."""

    source: str
    target: str
    place: str


class Passed(NamedTuple):
    """Rows of a file that reading passed over, since they could not be told to be pairs."""

    place: str
    rows: int


class Corpus(ABC):
    """One entry of `data.corpus`."""

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

    def passed(self) -> list[Passed]:
        """What the last reading to the end has passed over, for the report."""
        return []


class FilesCorpus(Corpus):
    """A corpus of the user's own files: `files` to be divided, or files for each split."""

    def __init__(self, config: TextConfig | TableConfig) -> None:
        self._split_config = config.split if config.files is not None else None
        self._parts = _parts(config)

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


def _parts(config: TextConfig | TableConfig) -> dict[str, tuple[Any, ...]]:
    if config.files is not None:
        return {WHOLE: config.files}
    tests = {name: (part,) for name, part in (config.test or {}).items()}
    return {"train": config.train or (), "validation": (config.validation,), **tests}
