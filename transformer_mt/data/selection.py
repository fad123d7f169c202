"""Which pair goes where: duplicates out, whole corpora divided, leaks out of training.

Works on hashes only, read in blocks; the memory it takes beyond that is a byte a pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transformer_mt.config.data import CleaningConfig, SplitConfig
from transformer_mt.data.reading import WHOLE, Keys, Stream
from transformer_mt.errors import TmtError

BLOCK = 250_000  # pairs whose keys are in memory at once

DUPLICATE, LEAK, LENGTHS = "duplicate", "leak", "lengths"
Fates = NDArray[np.uint8]  # for each pair of a stream the place of its fate in `Selection.names`


class Selection:
    """The fate of every pair: the name of a split, or why it was dropped from training."""

    def __init__(self, streams: Sequence[Stream], rules: CleaningConfig) -> None:
        self.streams, self.rules = streams, rules
        tests = dict.fromkeys(stream.split for stream in streams if stream.split not in ("train", "validation", WHOLE))
        if any(stream.split == WHOLE for stream in streams):
            tests["test"] = None
        self.splits = ["train", "validation", *tests]
        self.names = [*self.splits, DUPLICATE, LEAK, LENGTHS]
        self.fates: list[Fates] = [self._start(stream) for stream in streams]
        if rules.duplicates:
            self._drop_duplicates()
        for stream, fates in zip(streams, self.fates, strict=True):
            if stream.split == WHOLE:
                self._divide(fates, stream.division or SplitConfig())
        self.leaks = self._find_leaks()

    def _code(self, name: str) -> int:
        return self.names.index(name)

    def _start(self, stream: Stream) -> Fates:
        return np.full(stream.kept, self._code("train" if stream.split == WHOLE else stream.split), dtype=np.uint8)

    def count(self, name: str) -> int:
        return sum(int((fates == self._code(name)).sum()) for fates in self.fates)

    def dropped(self, stream: Stream) -> dict[str, int]:
        """Pairs of a stream that this selection dropped, by rule."""
        fates = self.fates[self.streams.index(stream)]
        counts = {name: int((fates == self._code(name)).sum()) for name in (DUPLICATE, LEAK)}
        return {name: count for name, count in counts.items() if count}

    def discard(self, flags: NDArray[np.bool_]) -> None:
        """Drop pairs that tokenising found too long or lopsided; a flag for each pair of a split, in order."""
        begin = 0
        for fates in self.fates:
            rows = np.flatnonzero(fates < len(self.splits))
            fates[rows[flags[begin : begin + len(rows)]]] = self._code(LENGTHS)
            begin += len(rows)

    def _drop_duplicates(self) -> None:
        """Of equal pairs for training (or still to be divided) the first stays. Partition by partition."""
        candidates = [i for i, stream in enumerate(self.streams) if stream.trains]
        total = sum(self.streams[i].kept for i in candidates)
        partitions = max(1, -(-total // BLOCK))
        for partition in range(partitions):
            keys, owners = [], []
            for i in candidates:
                for start, block in _blocks(self.streams[i].keys):
                    rows = np.flatnonzero(block["pair"] % partitions == partition)
                    keys.append(block["pair"][rows])
                    owners.append((i, start + rows))
            if keys:
                self._mark_repeats(np.concatenate(keys), owners)

    def _mark_repeats(self, keys: NDArray[np.uint64], owners: list[tuple[int, NDArray[np.int64]]]) -> None:
        repeated = np.ones(len(keys), dtype=bool)
        repeated[np.unique(keys, return_index=True)[1]] = False
        begin = 0
        for i, rows in owners:
            self.fates[i][rows[repeated[begin : begin + len(rows)]]] = self._code(DUPLICATE)
            begin += len(rows)

    def _divide(self, fates: Fates, division: SplitConfig) -> None:
        """A shuffled split of what is left of a whole corpus. Raises TmtError where too little is left."""
        left = np.flatnonzero(fates == self._code("train"))
        sizes = [
            round(share * len(left)) if share < 1 else int(share) for share in (division.validation, division.test)
        ]
        if sum(sizes) >= len(left):
            raise TmtError(
                f"a corpus of {len(left)} pairs cannot give {sizes[0]} for validation and {sizes[1]} for testing",
                place="data.corpus.split",
                remedy="Lower split.validation and split.test, or give more pairs.",
            )
        shuffled = np.random.default_rng(division.seed).permutation(left)
        fates[shuffled[: sizes[0]]] = self._code("validation")
        fates[shuffled[sizes[0] : sum(sizes)]] = self._code("test")

    def _find_leaks(self) -> dict[str, dict[str, int]]:
        """Drop training pairs that stand in validation or test; for each split, how many were found."""
        found: dict[str, dict[str, int]] = {}
        for split in self.splits[1:]:
            found[split] = {}
            for kind, column in (("pair", "leak"), ("source", "source")):
                known = np.unique(np.concatenate([*self._keys_of(split, column), np.zeros(0, np.uint64)]))
                drop = self.rules.leaks != "off" and (kind == "pair" or self.rules.leaks == "source")
                found[split][kind] = self._match(known, column, drop)
        return found

    def _keys_of(self, split: str, column: str) -> Iterator[NDArray[np.uint64]]:
        for stream, fates in zip(self.streams, self.fates, strict=True):
            if (fates == self._code(split)).any():
                for start, block in _blocks(stream.keys):
                    yield block[column][fates[start : start + len(block)] == self._code(split)]

    def _match(self, known: NDArray[np.uint64], column: str, drop: bool) -> int:
        """Count, and perhaps drop, the training pairs whose key is known."""
        count = 0
        for stream, fates in zip(self.streams, self.fates, strict=True):
            if not stream.trains:
                continue
            for start, block in _blocks(stream.keys):
                part = fates[start : start + len(block)]
                hits = np.isin(block[column], known) & ((part == self._code("train")) | (part == self._code(LEAK)))
                count += int(hits.sum())
                if drop:
                    part[hits] = self._code(LEAK)
        return count


def _blocks(file: Path) -> Iterator[tuple[int, NDArray[np.void]]]:
    """The keys of a stream in blocks, each with the number of its first pair."""
    start = 0
    with file.open("rb") as opened:
        while len(block := np.fromfile(opened, dtype=Keys, count=BLOCK)):
            yield start, block
            start += len(block)
