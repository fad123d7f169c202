"""The first pass over a corpus: read, clean, and write what is left to a scratch file, with hashes beside it.

A stream is one split of one corpus. Its scratch file has a line for each pair that survived cleaning:
cleaned source, cleaned target, place, and the raw sides where they differ. Beside it lie three 8-byte keys a
pair (`Keys`), from which duplicates and leaks are found without reading the text again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.corpus import SplitConfig
from transformer_mt.corpora.base import WHOLE, Pair
from transformer_mt.data.parallel import Workers, chunks
from transformer_mt.text.cleaning import changes, clean_text, empty_side, fault_of_training_pair, leak_key, pair_key

Keys = np.dtype([("pair", "<u8"), ("leak", "<u8"), ("source", "<u8")])
_BREAKS = re.compile(r"[\t\n\r]")  # what the scratch files are cut by
_HALVES = re.compile("[\ud800-\udfff]")  # of characters, alone: JSON can spell them, UTF-8 cannot


class Line(NamedTuple):
    """A pair in a scratch file."""

    source: str
    target: str
    place: str
    raw_source: str
    raw_target: str


@dataclass
class Stream:
    """One split of one corpus, cleaned, in a scratch file."""

    split: str
    weight: float
    division: SplitConfig | None
    file: Path
    read: int = 0
    kept: int = 0
    changed: Counter[str] = field(default_factory=Counter)  # pairs, by the rule that changed a side
    dropped: Counter[str] = field(default_factory=Counter)  # pairs, by the first rule that speaks against them

    @property
    def keys(self) -> Path:
        return self.file.with_suffix(".keys")

    @property
    def trains(self) -> bool:
        """May its pairs be trained on, so that the rules for training pairs apply?"""
        return self.split in ("train", WHOLE)

    def lines(self) -> Iterator[Line]:
        with self.file.open(encoding="utf-8", newline="\n") as file:
            for text in file:
                source, target, place, raw_source, raw_target = text[:-1].split("\t")
                yield Line(source, target, place, raw_source or source, raw_target or target)


class Cleaned(NamedTuple):
    """A chunk of pairs after cleaning: scratch lines and their keys, and what was counted."""

    lines: str
    keys: bytes
    read: int
    kept: int
    changed: Counter[str]
    dropped: Counter[str]


@dataclass(frozen=True)
class Cleaner:
    """Cleans a chunk of pairs; runs in a worker process."""

    rules: CleaningConfig
    source: str
    target: str
    trains: bool

    def __call__(self, pairs: list[Pair]) -> Cleaned:
        lines, keys = [], []
        changed, dropped = Counter[str](), Counter[str]()
        for raw in map(_storable, pairs):
            source = clean_text(raw.source, self.rules, self.source)
            target = clean_text(raw.target, self.rules, self.target)
            extra = ["" if source == raw.source else raw.source, "" if target == raw.target else raw.target]
            if any(extra):
                changed.update(self._changes(raw))
            fault = self._fault(source, target)
            if fault:
                dropped[fault] += 1
                continue
            lines.append("\t".join([source, target, raw.place, *extra]) + "\n")
            keys.append(_keys(source, target))
        return Cleaned("".join(lines), np.array(keys, Keys).tobytes(), len(pairs), len(lines), changed, dropped)

    def _changes(self, raw: Pair) -> set[str]:
        return {*changes(raw.source, self.rules, self.source), *changes(raw.target, self.rules, self.target)}

    def _fault(self, source: str, target: str) -> str | None:
        if empty_side(source, target):
            return "empty side"
        return fault_of_training_pair(source, target, self.rules) if self.trains else None


def _keys(source: str, target: str) -> tuple[int, ...]:
    digests = pair_key(source, target), leak_key(source, target, "pair"), leak_key(source, target, "source")
    return tuple(int.from_bytes(digest[:8], "little") for digest in digests)


def _storable(pair: Pair) -> Pair:
    """The pair without what a line of UTF-8 cannot hold, whatever the rules of cleaning."""
    return Pair(*(_HALVES.sub("\ufffd", _BREAKS.sub(" ", text)) for text in pair))


def clean_stream(stream: Stream, pairs: Iterator[Pair], cleaner: Cleaner, workers: Workers) -> Iterator[int]:
    """Fill a stream's scratch file; yields the number of pairs read so far."""
    with stream.file.open("w", encoding="utf-8", newline="\n") as text, stream.keys.open("wb") as keys:
        for part in workers.map(cleaner, chunks(pairs)):
            text.write(part.lines)
            keys.write(part.keys)
            stream.changed.update(part.changed)
            stream.dropped.update(part.dropped)
            stream.kept += part.kept
            stream.read += part.read
            yield stream.read
