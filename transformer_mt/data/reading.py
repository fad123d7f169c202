"""The first pass over a corpus: read, clean, and write what is left to a scratch file, with hashes beside it.

A stream is one split of one corpus. Its scratch file has a line for each pair that survived cleaning:
cleaned source, cleaned target, place, and the raw sides where they differ. Beside it lie three 8-byte keys a
pair (`Keys`), from which duplicates and leaks are found without reading the text again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from transformer_mt.config.data import CleaningConfig, SplitConfig
from transformer_mt.data.corpora.base import Pair
from transformer_mt.data.parallel import chunks, ordered_map
from transformer_mt.text.cleaning import clean_text, empty_side, fault_of_training_pair, leak_key, pair_key

WHOLE = "all"  # the split of a corpus that is still to be divided
Keys = np.dtype([("pair", "<u8"), ("leak", "<u8"), ("source", "<u8")])


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

    corpus: int
    split: str
    weight: float
    division: SplitConfig | None
    file: Path
    read: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    @property
    def keys(self) -> Path:
        return self.file.with_suffix(".keys")

    @property
    def trains(self) -> bool:
        """May its pairs be trained on, so that the rules for training pairs apply?"""
        return self.split in ("train", WHOLE)

    def lines(self) -> Iterator[Line]:
        with self.file.open(encoding="utf-8", errors="surrogatepass", newline="\n") as file:
            for text in file:
                source, target, place, raw_source, raw_target = text[:-1].split("\t")
                yield Line(source, target, place, raw_source or source, raw_target or target)


@dataclass(frozen=True)
class Cleaner:
    """Cleans a chunk of pairs; runs in a worker process."""

    rules: CleaningConfig
    source: str
    target: str
    trains: bool

    def __call__(self, pairs: list[Pair]) -> tuple[str, bytes, Counter[str], int]:
        """Scratch lines, their keys, drops by rule, and how many pairs are left."""
        lines, keys, dropped = [], [], Counter[str]()
        for pair in pairs:
            source = clean_text(pair.source, self.rules, self.source)
            target = clean_text(pair.target, self.rules, self.target)
            fault = self._fault(source, target)
            if fault:
                dropped[fault] += 1
                continue
            raw = (_one_cell(pair.source), _one_cell(pair.target))
            extra = ["" if raw[0] == source else raw[0], "" if raw[1] == target else raw[1]]
            lines.append("\t".join([source, target, _one_cell(pair.place), *extra]) + "\n")
            keys.append(self._keys(source, target))
        return "".join(lines), np.array(keys, dtype=Keys).tobytes(), dropped, len(lines)

    def _fault(self, source: str, target: str) -> str | None:
        if empty_side(source, target):
            return "empty side"
        return fault_of_training_pair(source, target, self.rules) if self.trains else None

    def _keys(self, source: str, target: str) -> tuple[int, int, int]:
        digests = (
            pair_key(source, target),
            leak_key(source, target, "pair"),
            leak_key(source, target, "source"),
        )
        first, second, third = (int.from_bytes(digest[:8], "little") for digest in digests)
        return first, second, third


def _one_cell(text: str) -> str:
    return text.replace("\t", " ").replace("\n", " ").replace("\r", " ")


def clean_stream(stream: Stream, pairs: Iterator[Pair], cleaner: Cleaner, workers: int) -> Iterator[int]:
    """Fill a stream's scratch file; yields the number of pairs read so far."""
    with (
        stream.file.open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as text,
        stream.keys.open("wb") as keys,
    ):
        sizes: list[int] = []
        for lines, digests, dropped, kept in ordered_map(cleaner, _counted(chunks(pairs), sizes), workers):
            text.write(lines)
            keys.write(digests)
            stream.dropped.update(dropped)
            stream.kept += kept
            stream.read += sizes.pop(0)
            yield stream.read


def _counted(parts: Iterator[list[Pair]], sizes: list[int]) -> Iterator[list[Pair]]:
    for part in parts:
        sizes.append(len(part))
        yield part
