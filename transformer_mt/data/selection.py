"""Which pair goes where: duplicates out, whole corpora divided, leaks out of training.

Works on hashes only, read in blocks; the memory it takes beyond that is a few bytes a pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.corpus import SplitConfig
from transformer_mt.data.reading import WHOLE, Keys, Line, Stream
from transformer_mt.errors import TmtError
from transformer_mt.text.cleaning import LOPSIDED, TOO_LONG

BLOCK = 250_000  # pairs whose keys are in memory at once

DUPLICATE, LEAK = "duplicate", "leak"
DROPS = (DUPLICATE, LEAK, TOO_LONG, LOPSIDED)
KINDS = {"pair": "leak", "source": "source"}  # ways in which sentences leak, and the keys that tell
Fates = NDArray[np.uint8]  # for each pair of a stream the place of its fate in `splits`, or after them in DROPS
Hashes = NDArray[np.uint64]


class Selected(NamedTuple):
    """A pair with the split it belongs to. number: its place among the pairs of all streams."""

    split: str
    line: Line
    number: int


class Selection:
    """The fate of every pair: the name of a split, or why it was dropped from training.

    leaks:    for each split but train, how many training pairs stand in it: as a pair, or by their source
    overlaps: for every two splits for evaluation, how many pairs of the second stand in the first
    """

    def __init__(self, streams: Sequence[Stream], rules: CleaningConfig) -> None:
        self.streams, self.rules = streams, rules
        self.splits = _splits(streams)
        self.fates: list[Fates] = [self._start(stream) for stream in streams]
        if rules.duplicates:
            self._drop_duplicates()
        for stream, fates in zip(streams, self.fates, strict=True):
            if stream.split == WHOLE:
                self._divide(fates, stream.division or SplitConfig())
        known = {split: {kind: self._hashes(split, KINDS[kind]) for kind in KINDS} for split in self.splits[1:]}
        self.leaks = {split: self._find_leaks(hashes) for split, hashes in known.items()}
        self.overlaps = [_overlap(one, two, known) for one, two in combinations(known, 2)]

    def _code(self, split: str) -> int:
        return self.splits.index(split)

    def _drop(self, rule: str) -> int:
        return len(self.splits) + DROPS.index(rule)

    def _start(self, stream: Stream) -> Fates:
        return np.full(stream.kept, self._code("train" if stream.split == WHOLE else stream.split), dtype=np.uint8)

    def count(self, split: str) -> int:
        return sum(self.counts(split))

    def counts(self, split: str) -> list[int]:
        """Pairs of a split, by stream."""
        return [int(np.count_nonzero(fates == self._code(split))) for fates in self.fates]

    def dropped(self, stream: Stream) -> dict[str, int]:
        """Pairs of a stream that were dropped here, by rule."""
        fates = self.fates[self.streams.index(stream)]
        counts = {rule: int(np.count_nonzero(fates == self._drop(rule))) for rule in DROPS}
        return {rule: count for rule, count in counts.items() if count}

    def selected(self, split: str | None = None) -> Iterator[Selected]:
        """All pairs that belong to a split (or to the named one), in the order of the corpora."""
        wanted = {self._code(name): name for name in self.splits if split in (None, name)}
        first = 0
        for stream, fates in zip(self.streams, self.fates, strict=True):
            if any((fates == code).any() for code in wanted):
                for number, (fate, line) in enumerate(zip(fates.data, stream.lines(), strict=True), start=first):
                    if fate in wanted:
                        yield Selected(wanted[fate], line, number)
            first += len(fates)

    def discard(self, numbers: Mapping[str, Sequence[int]]) -> None:
        """Drop pairs for what tokenising found: their numbers, by rule."""
        for rule, found in numbers.items():
            rest = np.asarray(found, dtype=np.int64)
            for fates in self.fates:
                fates[rest[(rest >= 0) & (rest < len(fates))]] = self._drop(rule)
                rest = rest - len(fates)

    def _drop_duplicates(self) -> None:
        """Of equal pairs for training (or still to be divided) the first stays. Partition by partition."""
        candidates = [i for i, stream in enumerate(self.streams) if stream.trains]
        partitions = max(1, -(-sum(self.streams[i].kept for i in candidates) // BLOCK))
        for partition in range(partitions):
            keys, owners = [np.zeros(0, np.uint64)], []
            for i in candidates:
                for start, block in _blocks(self.streams[i].keys):
                    rows = np.flatnonzero(block["pair"] % partitions == partition)
                    keys.append(block["pair"][rows])
                    owners.append((i, start + rows))
            self._mark_repeats(np.concatenate(keys), owners)

    def _mark_repeats(self, keys: Hashes, owners: list[tuple[int, NDArray[np.int64]]]) -> None:
        repeated = np.ones(len(keys), dtype=bool)
        repeated[np.unique(keys, return_index=True)[1]] = False
        begin = 0
        for i, rows in owners:
            self.fates[i][rows[repeated[begin : begin + len(rows)]]] = self._drop(DUPLICATE)
            begin += len(rows)

    def _divide(self, fates: Fates, division: SplitConfig) -> None:
        """A shuffled split of what is left of a whole corpus. Raises TmtError where too little is left."""
        left = fates == self._code("train")
        order = np.arange(np.count_nonzero(left), dtype=np.uint32)
        validation, test = (_size(share, len(order)) for share in (division.validation, division.test))
        if 0 < validation + test >= len(order):
            raise TmtError(
                f"a corpus of {len(order):,} pairs cannot give {validation:,} for validation and {test:,} for testing",
                place="data.corpus.split",
                remedy="Lower split.validation and split.test, or give more pairs.",
            )
        np.random.default_rng(division.seed).shuffle(order)
        shares = np.full(len(order), self._code("train"), dtype=np.uint8)
        shares[order[:validation]] = self._code("validation")
        if test:
            shares[order[validation : validation + test]] = self._code("test")
        fates[left] = shares

    def _hashes(self, split: str, column: str) -> Hashes:
        found = [np.zeros(0, np.uint64)]
        for stream, fates in zip(self.streams, self.fates, strict=True):
            if (fates == self._code(split)).any():
                for start, block in _blocks(stream.keys):
                    found.append(block[column][fates[start : start + len(block)] == self._code(split)])
        return np.concatenate(found)

    def _find_leaks(self, known: dict[str, Hashes]) -> dict[str, int]:
        """Count the training pairs that stand in a split, and drop them where the rule says so."""
        dropping = {"pair": ("pair",), "source": ("pair", "source"), "off": ()}[self.rules.leaks]
        return {kind: self._match(np.unique(known[kind]), KINDS[kind], kind in dropping) for kind in KINDS}

    def _match(self, known: Hashes, column: str, drop: bool) -> int:
        count = 0
        for stream, fates in zip(self.streams, self.fates, strict=True):
            for start, block in _blocks(stream.keys) if stream.trains else ():
                part = fates[start : start + len(block)]
                hits = np.isin(block[column], known) & ((part == self._code("train")) | (part == self._drop(LEAK)))
                count += int(np.count_nonzero(hits))
                if drop:
                    part[hits] = self._drop(LEAK)
        return count


def _splits(streams: Sequence[Stream]) -> list[str]:
    """train, validation, and the test sets in the order of the corpora."""
    names = ["train", "validation"]
    for stream in streams:
        if stream.split != WHOLE:
            names.append(stream.split)
        elif (stream.division or SplitConfig()).test:
            names.append("test")
    return list(dict.fromkeys(names))


def _size(share: float, pairs: int) -> int:
    """Pairs of a split for evaluation; a share gives at least one."""
    return (max(1, round(share * pairs)) if share else 0) if share < 1 else int(share)


def _overlap(one: str, two: str, known: dict[str, dict[str, Hashes]]) -> dict[str, Any]:
    counts = {kind: int(np.count_nonzero(np.isin(known[two][kind], known[one][kind]))) for kind in KINDS}
    return {"splits": [one, two], **counts}


def _blocks(file: Path) -> Iterator[tuple[int, NDArray[np.void]]]:
    """The keys of a stream in blocks, each with the number of its first pair."""
    start = 0
    with file.open("rb") as opened:
        while len(block := np.fromfile(opened, dtype=Keys, count=BLOCK)):
            yield start, block
            start += len(block)
