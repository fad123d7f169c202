"""The first pass: read and clean a corpus, and write the remaining pairs to scratch files.

A stream is one split of one corpus. A second file holds three 8-byte hashes for each pair (`KEYS`), so that duplicates
and leaks are found without reading the text again.
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
_BREAKS = re.compile(r"[\t\n\r]")  # scratch files separate fields by tabs and lines by line breaks
_SURROGATES = re.compile("[\ud800-\udfff]")  # JSON can contain lone surrogates; UTF-8 cannot


class Line(NamedTuple):
    """A pair in a scratch file. In the file, a raw side is empty if cleaning did not change it.

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
    dropped: Counter[str] = field(default_factory=Counter)  # pairs, by the first rule that they violate

    @property
    def keys(self) -> Path:
        return self.file.with_suffix(".keys")

    @property
    def trains(self) -> bool:
        """Whether its pairs can become training pairs; then the rules for training apply."""
        return self.split in ("train", WHOLE)

    def lines(self) -> Iterator[Line]:
        with self.file.open(encoding="utf-8", newline="\n") as file:
            for text in file:
                source, target, place, raw_source, raw_target = text[:-1].split("\t")
                yield Line(source, target, place, raw_source or source, raw_target or target)


class Cleaned(NamedTuple):
    """A chunk of pairs after cleaning: the content for the files of the stream, and counts."""

    lines: str
    keys: bytes
    read: int
    kept: int
    changed: Counter[str]
    dropped: Counter[str]


@dataclass(frozen=True)
class Cleaner:
    """Cleans chunks of pairs in a worker process. source, target: languages."""

    rules: CleaningConfig
    source: str
    target: str
    trains: bool

    def __call__(self, pairs: list[Pair]) -> Cleaned:
        rules, lines, keys = self.rules, list[str](), list[bytes]()
        changed, dropped = Counter[str](), Counter[str]()
        for pair in pairs:
            # These replacements do not depend on the rules: the pair must fit into a line of UTF-8.
            raw_source, raw_target, place = (_SURROGATES.sub("\ufffd", _BREAKS.sub(" ", text)) for text in pair)
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
    """Write the files of a stream and fill its counts."""
    with stream.file.open("w", encoding="utf-8", newline="\n") as lines, stream.keys.open("wb") as keys:
        for part in workers.map(cleaner, chunks(pairs)):
            lines.write(part.lines)
            keys.write(part.keys)
            stream.changed.update(part.changed)
            stream.dropped.update(part.dropped)
            stream.kept += part.kept
            stream.read += part.read
            progress(f"reading {stream.split}", stream.read)
