"""The first pass over a corpus: read, clean, and write the pairs that stay to a scratch file, with hashes beside it.

A stream is one split of one corpus. Beside its scratch file lie three 8-byte keys for each pair (`KEYS`), so that
duplicates and leaks are found without reading the text again.
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
from transformer_mt.data.parallel import Progress, Workers, chunks
from transformer_mt.text.cleaning import clean_text, fault_of_pair, keys_of_pair

KEYS = np.dtype([("pair", "<u8"), ("leak", "<u8"), ("source", "<u8")])
_BREAKS = re.compile(r"[\t\n\r]")  # they separate the fields and lines of scratch files
_HALVES = re.compile("[\ud800-\udfff]")  # halves of characters, alone: JSON can spell them, UTF-8 cannot hold them


class Line(NamedTuple):
    """A pair in a scratch file: these fields, with tabs between them. Raw sides that equal cleaned ones are left empty.

    place: `file:line`, for reports
    """

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
    dropped: Counter[str] = field(default_factory=Counter)  # pairs, by the first rule that they break

    @property
    def keys(self) -> Path:
        return self.file.with_suffix(".keys")

    @property
    def trains(self) -> bool:
        """Whether its pairs may become training pairs, so that the rules for those apply."""
        return self.split in ("train", WHOLE)

    def lines(self) -> Iterator[Line]:
        with self.file.open(encoding="utf-8", newline="\n") as file:
            for text in file:
                source, target, place, raw_source, raw_target = text[:-1].split("\t")
                yield Line(source, target, place, raw_source or source, raw_target or target)


class Cleaned(NamedTuple):
    """A chunk of pairs after cleaning: what the files of its stream receive, and counts."""

    lines: str
    keys: bytes
    read: int
    kept: int
    changed: Counter[str]
    dropped: Counter[str]


@dataclass(frozen=True)
class Cleaner:
    """Cleans a chunk of pairs; runs in a worker process. source, target: the languages."""

    rules: CleaningConfig
    source: str
    target: str
    trains: bool

    def __call__(self, pairs: list[Pair]) -> Cleaned:
        rules, lines, keys = self.rules, list[str](), list[bytes]()
        changed, dropped = Counter[str](), Counter[str]()
        for pair in pairs:
            # Whatever the rules: a line of UTF-8 must be able to hold the pair.
            raw_source, raw_target, place = (_HALVES.sub("\ufffd", _BREAKS.sub(" ", text)) for text in pair)
            by_rules: set[str] = set()
            source = clean_text(raw_source, rules, self.source, by_rules.add)
            target = clean_text(raw_target, rules, self.target, by_rules.add)
            changed.update(by_rules)
            fault = fault_of_pair(source, target, rules, self.trains)
            if fault is not None:
                dropped[fault] += 1
                continue
            raws = "" if raw_source == source else raw_source, "" if raw_target == target else raw_target
            lines.append("\t".join((source, target, place, *raws)) + "\n")
            keys += keys_of_pair(source, target)
        return Cleaned("".join(lines), b"".join(keys), len(pairs), len(lines), changed, dropped)


def clean_stream(stream: Stream, pairs: Iterator[Pair], cleaner: Cleaner, workers: Workers, progress: Progress) -> None:
    """Fill the scratch file of a stream, and count."""
    with stream.file.open("w", encoding="utf-8", newline="\n") as lines, stream.keys.open("wb") as keys:
        for part in workers.map(cleaner, chunks(pairs)):
            lines.write(part.lines)
            keys.write(part.keys)
            stream.changed.update(part.changed)
            stream.dropped.update(part.dropped)
            stream.kept += part.kept
            stream.read += part.read
            progress(f"reading {stream.split}", stream.read)
