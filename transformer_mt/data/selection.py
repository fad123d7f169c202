"""Which pair goes where: duplicates are dropped, whole corpora divided, leaks kept out of training.

Works on hashes only and reads them in blocks. Besides one block it needs a few bytes of memory for each pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.corpus import SplitConfig
from transformer_mt.corpora.base import WHOLE
from transformer_mt.data.reading import KEYS, Line, Stream
from transformer_mt.errors import TmtError
from transformer_mt.text.cleaning import LOPSIDED, TOO_LONG

BLOCK = 250_000  # pairs whose keys are in memory at once

DUPLICATE, LEAK = "duplicate", "leak"
DROPS = (DUPLICATE, LEAK, TOO_LONG, LOPSIDED)
KINDS = {"pair": "leak", "source": "source"}  # how sentences leak, and the key that is then equal
Fates = NDArray[np.uint8]  # for each pair of a stream: the code of its split, or of the rule that dropped it
Hashes = NDArray[np.uint64]


class Selected(NamedTuple):
    """A pair with the split it belongs to. number: its place among the pairs of all streams."""

    split: str
    line: Line
    number: int


class Selection:
    """The fate of every pair: the name of a split, or why it was dropped from training.

    splits:   train, validation, and the test sets in the order of the corpora
    leaks:    for each split but train, how many training pairs are also in it: as a pair, or by their source
    overlaps: for every two splits for evaluation, how many pairs of the second are also in the first
    """

    def __init__(self, streams: Sequence[Stream], rules: CleaningConfig) -> None:
        """Raises TmtError if a corpus is too small for its division."""
        self.streams, self.rules = streams, rules
        names = ["train", "validation"]
        for stream in streams:
            if stream.split != WHOLE:
                names.append(stream.split)
            elif (stream.division or SplitConfig()).test:
                names.append("test")
        self.splits = list(dict.fromkeys(names))
        self._codes = {split: code for code, split in enumerate(self.splits)}
        self._drops = {rule: code for code, rule in enumerate(DROPS, start=len(self.splits))}
        starts = [self._codes["train" if stream.split == WHOLE else stream.split] for stream in streams]
        self.fates = [np.full(stream.kept, code, np.uint8) for stream, code in zip(streams, starts, strict=True)]
        if rules.duplicates:
            self._drop_duplicates()
        for stream, fates in zip(streams, self.fates, strict=True):
            if stream.split == WHOLE:
                self._divide(fates, stream.division or SplitConfig())
        known = {split: self._hashes(split) for split in self.splits[1:]}
        self.leaks = {split: self._find_leaks(hashes) for split, hashes in known.items()}
        self.overlaps: list[dict[str, Any]] = [
            {"splits": [one, two], **{kind: int(np.isin(known[two][kind], known[one][kind]).sum()) for kind in KINDS}}
            for one, two in combinations(known, 2)
        ]

    def count(self, split: str) -> int:
        return sum(self.counts(split))

    def counts(self, split: str) -> list[int]:
        """Pairs of a split, by stream."""
        return [int(np.count_nonzero(fates == self._codes[split])) for fates in self.fates]

    def dropped(self, stream: Stream) -> dict[str, int]:
        """Pairs of a stream that were dropped here, by rule."""
        fates = self.fates[self.streams.index(stream)]
        counts = {rule: int(np.count_nonzero(fates == code)) for rule, code in self._drops.items()}
        return {rule: count for rule, count in counts.items() if count}

    def selected(self, split: str | None = None) -> Iterator[Selected]:
        """The pairs of one split, or of all splits, in the order of the corpora."""
        wanted = {code: name for name, code in self._codes.items() if split in (None, name)}
        first = 0
        for stream, fates in zip(self.streams, self.fates, strict=True):
            if any((fates == code).any() for code in wanted):
                for number, (fate, line) in enumerate(zip(fates.data, stream.lines(), strict=True), start=first):
                    if fate in wanted:
                        yield Selected(wanted[fate], line, number)
            first += len(fates)

    def discard(self, numbers: Mapping[str, Sequence[int]]) -> None:
        """Drop pairs that break a rule about tokens. numbers: of these pairs, by rule."""
        for rule, found in numbers.items():
            rest = np.asarray(found, dtype=np.int64)
            for fates in self.fates:
                fates[rest[(rest >= 0) & (rest < len(fates))]] = self._drops[rule]
                rest = rest - len(fates)

    def _drop_duplicates(self) -> None:
        """Keep the first of equal pairs for training, or still to be divided.

        Goes through the keys once for each partition of them, so that the keys of one partition fit a block.
        """
        candidates = [number for number, stream in enumerate(self.streams) if stream.trains]
        partitions = max(1, -(-sum(self.streams[number].kept for number in candidates) // BLOCK))
        for partition in range(partitions):
            keys, owners = [np.zeros(0, np.uint64)], []
            for fates, block in self._blocks(candidates):
                rows = np.flatnonzero(block["pair"] % partitions == partition)
                keys.append(block["pair"][rows])
                owners.append((fates, rows))
            repeated = np.ones(sum(map(len, keys)), dtype=bool)
            repeated[np.unique(np.concatenate(keys), return_index=True)[1]] = False
            begin = 0
            for fates, rows in owners:
                fates[rows[repeated[begin : begin + len(rows)]]] = self._drops[DUPLICATE]
                begin += len(rows)

    def _divide(self, fates: Fates, division: SplitConfig) -> None:
        """Split what is left of a whole corpus, shuffled by a seed. Raises TmtError if too little is left."""
        left = fates == self._codes["train"]
        order = np.arange(np.count_nonzero(left), dtype=np.uint32)
        validation, test = (
            max(1, round(share * len(order))) if 0 < share < 1 else int(share)  # a share gives at least one pair
            for share in (division.validation, division.test)
        )
        if 0 < validation + test >= len(order):
            raise TmtError(
                f"a corpus of {len(order):,} pairs cannot give {validation:,} for validation and {test:,} for testing",
                place="data.corpus.split",
                remedy="Lower split.validation and split.test, or give more pairs.",
            )
        np.random.default_rng(division.seed).shuffle(order)
        shares = np.full(len(order), self._codes["train"], dtype=np.uint8)
        shares[order[:validation]] = self._codes["validation"]
        if test:
            shares[order[validation : validation + test]] = self._codes["test"]
        fates[left] = shares

    def _hashes(self, split: str) -> dict[str, Hashes]:
        """The keys of all pairs of a split, by the kind of leak that they show."""
        code = self._codes[split]
        found = {kind: [np.zeros(0, np.uint64)] for kind in KINDS}
        for fates, block in self._blocks(n for n, fates in enumerate(self.fates) if (fates == code).any()):
            for kind, column in KINDS.items():
                found[kind].append(block[column][fates == code])
        return {kind: np.concatenate(parts) for kind, parts in found.items()}

    def _find_leaks(self, known: dict[str, Hashes]) -> dict[str, int]:
        """Count the training pairs that are also in a split, by kind, and drop them if the rule says so."""
        train, leak = self._codes["train"], self._drops[LEAK]
        dropping = {"pair": ("pair",), "source": ("pair", "source"), "off": ()}[self.rules.leaks]
        counts = dict.fromkeys(KINDS, 0)
        for kind, column in KINDS.items():
            hashes = np.unique(known[kind])
            for fates, block in self._blocks(n for n, stream in enumerate(self.streams) if stream.trains):
                hits = np.isin(block[column], hashes) & ((fates == train) | (fates == leak))
                counts[kind] += int(np.count_nonzero(hits))
                if kind in dropping:
                    fates[hits] = leak
        return counts

    def _blocks(self, streams: Iterable[int]) -> Iterator[tuple[Fates, NDArray[np.void]]]:
        """Some streams in blocks: a view of the fates of the pairs, and their keys."""
        for number in streams:
            start = 0
            with self.streams[number].keys.open("rb") as file:
                while len(block := np.fromfile(file, dtype=KEYS, count=BLOCK)):
                    yield self.fates[number][start : start + len(block)], block
                    start += len(block)
