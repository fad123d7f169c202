"""Scratch files of cleaned pairs. A shard is some thousand pairs of a stream; a stream is one split of one corpus.

NAME.text  four sections: sources, targets, places, and the raw text of sentences that cleaning changed
NAME.keys  four 8-byte hashes of each pair, so that duplicates and leaks are found without reading the text again
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_mt.config.corpus import SplitConfig
from transformer_mt.corpora.base import WHOLE, Pair
from transformer_mt.corpora.parts import Texts
from transformer_mt.data.journal import WrittenFile, write
from transformer_mt.data.languages import PLACES, Languages, merge
from transformer_mt.data.passes import Origin
from transformer_mt.data.store import SIDES
from transformer_mt.text.batches import KEYS

EXAMPLES = 3  # pairs kept of each rule
SECTIONS = (*SIDES, "places", "raw")
Raws = Mapping[int, str]  # text before cleaning, by row
Examples = dict[str, list[Pair]]  # the first pairs, by the rule that drops them


class Line(NamedTuple):
    """A pair in a scratch file. place: `file:line`, for reports"""

    source: str
    target: str
    place: str
    raw_source: str
    raw_target: str


@dataclass
class CleaningCounts:
    """What cleaning some pairs has found.

    changed:   pairs, by the rule that changed a side
    dropped:   pairs, by the first rule that they violate; examples: the first of them
    outliers:  pairs, by kind; places: the first of them
    languages: of a sample of the pairs, by file
    """

    read: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    examples: Examples = field(default_factory=dict)
    outliers: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)
    languages: Languages = field(default_factory=dict)

    def add(self, other: CleaningCounts) -> None:
        self.read += other.read
        self.changed.update(other.changed)
        self.dropped.update(other.dropped)
        self.outliers.update(other.outliers)
        for rule, pairs in other.examples.items():
            self.examples[rule] = [*self.examples.get(rule, ()), *pairs][:EXAMPLES]
        for kind, places in other.places.items():
            self.places[kind] = [*self.places.get(kind, ()), *places][:PLACES]
        merge(self.languages, other.languages)

    def drop(self, rule: str, pair: Pair) -> None:
        self.dropped[rule] += 1
        self.examples[rule] = [*self.examples.get(rule, ()), pair][:EXAMPLES]


@dataclass
class Shard:
    """name: of its files; file: see `Texts`; sizes: bytes of the sections"""

    name: str
    pairs: int
    file: str
    sizes: list[int]


@dataclass
class Stream:
    """One split of one corpus for one direction, cleaned, in shards. name: the first part of their names

    corpus: its number in the config, from 1
    """

    split: str
    weight: float
    division: SplitConfig | None
    folder: Path
    name: str
    counts: CleaningCounts = field(default_factory=CleaningCounts)
    shards: list[Shard] = field(default_factory=list)
    origin: Origin = field(default_factory=Origin)
    corpus: int = 1

    @property
    def trains(self) -> bool:
        """Whether its pairs can become training pairs; then the rules for training apply."""
        return self.split in ("train", WHOLE)

    @property
    def labels(self) -> Path:
        """The file with the label of each pair (`selection`)."""
        return self.folder / f"{self.name}.labels"


def write_shard(
    folder: Path, name: str, texts: Texts, raws: tuple[Raws, Raws], keys: NDArray[np.void]
) -> tuple[Shard, list[WrittenFile]]:
    """Write the files of a shard. raws: of sources and targets"""
    changed = (f"{row}\t{side}\t{raw}" for side, some in enumerate(raws) for row, raw in some.items())
    columns = texts.sources, texts.targets, map(str, texts.numbers), changed
    sections = ["".join([f"{line}\n" for line in column]).encode() for column in columns]
    files = [write(folder, f"{name}.text", b"".join(sections)), write(folder, f"{name}.keys", keys.tobytes())]
    return Shard(name, len(texts.sources), texts.file, [len(section) for section in sections]), files


def column(folder: Path, shard: Shard, section: str) -> list[str]:
    """The lines of one section."""
    number = SECTIONS.index(section)
    with (folder / f"{shard.name}.text").open("rb") as file:
        file.seek(sum(shard.sizes[:number]))
        return file.read(shard.sizes[number]).decode("utf-8").split("\n")[:-1]


def texts_of(folder: Path, shard: Shard) -> Texts:
    sources, targets, numbers = (column(folder, shard, section) for section in SECTIONS[:3])
    return Texts(sources, targets, shard.file, numbers)


def lines_of(folder: Path, shard: Shard) -> Iterator[Line]:
    """The pairs of a shard, with their text before cleaning."""
    texts, raws = texts_of(folder, shard), dict[tuple[int, int], str]()
    for line in column(folder, shard, "raw"):
        number, side, raw = line.split("\t", 2)
        raws[int(number), int(side)] = raw
    for row, (source, target) in enumerate(zip(texts.sources, texts.targets, strict=True)):
        yield Line(source, target, texts.place(row), raws.get((row, 0), source), raws.get((row, 1), target))


def keys_of(folder: Path, shard: Shard) -> NDArray[np.void]:
    """The hashes of a shard, as an array of KEYS."""
    with (folder / f"{shard.name}.keys").open("rb") as file:
        return np.frombuffer(file.read(), KEYS)
