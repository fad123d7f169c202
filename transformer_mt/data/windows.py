"""Windows: an epoch of a large corpus as parts of some hundred thousand pairs, each planned when training reaches it.

    corpus   | 0 1 2 3 | 4 5 6 7 | 8 9 ...      blocks of neighbouring pairs; where they begin differs in each epoch
    epoch    | 8 9 | 60 61 62 63 | 4 5 6 7 | ...      all blocks in random order
    windows  |      0       |       1       | ...      consecutive blocks; `planning` shuffles the pairs of a window

So a window has blocks from the whole corpus, even if that is sorted, or is several corpora concatenated. A
pair's place is computed from seed, epoch and window, without an array of all pairs, and a block is read at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from transformer_mt.data.store import Counts

WINDOW_PAIRS = 1 << 18  # at most, up to a block; a corpus that is not larger has no windows
BLOCK_PAIRS = 16  # fewer mix better, and more are faster to read
ROUNDS = 8  # of the Feistel network


class Permutation:
    """A random order of the numbers 0 to size - 1, computed for single numbers.

    A generalised Feistel network on Z_rows x Z_columns, which has at least `size` elements. A number that ends outside
    goes through it again (Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains").
    """

    def __init__(self, size: int, generator: np.random.Generator) -> None:
        self.size = size
        self.rows = isqrt(max(0, size - 1)) + 1
        self.columns = max(1, -(-size // self.rows))
        self._keys = generator.integers(0, 1 << 64, (ROUNDS, 1), dtype=np.uint64)

    def __call__(self, numbers: Counts) -> Counts:
        """The numbers at these places of the order."""
        found = self._once(numbers)
        while len(outside := np.flatnonzero(found >= self.size)):
            found[outside] = self._once(found[outside])
        return found

    def _once(self, numbers: Counts) -> Counts:
        left, right = np.divmod(numbers.astype(np.uint64), np.uint64(self.columns))
        for number, key in enumerate(self._keys):
            if number % 2:
                right = (right + _mixed(left ^ key) % self.columns) % self.columns
            else:
                left = (left + _mixed(right ^ key) % self.rows) % self.rows
        return (left * self.columns + right).astype(np.int64)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): each bit depends on all bits."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))  # type: ignore[no-any-return]


def repetitions(size: int, weight: float) -> tuple[int, int]:
    """How often an epoch has all pairs of a corpus, and how many random ones more; together at least one pair."""
    return int(weight), round((weight - int(weight)) * size) or int(weight < 1 <= size)


def epoch_size(parts: Sequence[tuple[int, float]]) -> int:
    """The pairs of an epoch."""
    return sum(copies * size + extra for size, (copies, extra) in ((size, repetitions(size, w)) for size, w in parts))


class _Part:
    """A corpus in an epoch: a ring of pairs, cut into blocks from a random place on; only the last may be smaller.

    blocks: all of them `copies` times, then random ones with `extra` pairs together
    """

    def __init__(self, first: int, size: int, weight: float, generator: np.random.Generator) -> None:
        """first, size: its pairs in the store."""
        self._first, self._size = first, size
        copies, self._extra = repetitions(size, weight)
        self._whole = copies * -(-size // BLOCK_PAIRS)
        self._full = size // BLOCK_PAIRS
        self._order = Permutation(self._full, generator)
        self._phase = int(generator.integers(size)) if size else 0
        self.blocks = self._whole + -(-self._extra // BLOCK_PAIRS)

    def runs(self, numbers: Counts) -> tuple[Counts, Counts]:
        """The first pair and the number of pairs of these of its blocks. A block around the end of the ring is two."""
        more = numbers - self._whole
        is_more = more >= 0
        block = numbers % max(1, -(-self._size // BLOCK_PAIRS))
        shuffled = is_more & (more < self._full)
        block[is_more] = self._full  # the one that may be smaller comes last
        block[shuffled] = self._order(more[shuffled])
        sizes = np.minimum(BLOCK_PAIRS, self._size - block * BLOCK_PAIRS)
        sizes[is_more] = np.minimum(sizes, self._extra - more * BLOCK_PAIRS)[is_more]
        starts = (block * BLOCK_PAIRS + self._phase) % max(1, self._size)
        over = np.maximum(starts + sizes - self._size, 0)
        rest = over[over > 0]
        return self._first + np.append(starts, 0 * rest), np.append(sizes - over, rest)


class Windows:
    """The windows of an epoch.

    parts: size and weight of each corpus in the store. Each repeats its pairs `weight` times; for the fraction, blocks
    are drawn in each epoch
    """

    def __init__(self, parts: Sequence[tuple[int, float]], number: int, seed: int, epoch: int) -> None:
        """number: how many windows there are."""
        generator = np.random.default_rng([seed, epoch])
        self._parts, first = list[_Part](), 0
        for size, weight in parts:
            self._parts.append(_Part(first, size, weight, generator))
            first += size
        self._ends = np.cumsum([part.blocks for part in self._parts])
        self._order, self._number = Permutation(int(self._ends[-1]), generator), number

    def runs(self, window: int) -> tuple[Counts, Counts]:
        """The pairs of a window, in ascending runs of neighbours: their first pairs, and how many they are."""
        begin, end = (place * self._order.size // self._number for place in (window, window + 1))
        blocks = self._order(np.arange(begin, end))
        owner = self._ends.searchsorted(blocks, "right")
        found = [
            part.runs(blocks[owner == number] - (self._ends[number] - part.blocks))
            for number, part in enumerate(self._parts)
        ]
        starts, sizes = (np.concatenate(side) for side in zip(*found, strict=True))
        order = starts.argsort(kind="stable")
        return starts[order], sizes[order]


def windows_of(pairs: int, most: int) -> int:
    """How many windows an epoch of so many pairs has. most: pairs of a window"""
    return max(2, -(-pairs // most))
