"""The label of each pair, one byte on disk: the code of its split, or of the rule that dropped it.

Pairs are counted over all streams, in order. A piece is one shard with the place of its pairs in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_mt.data.partitions import Numbers, Partitions, partitions_for
from transformer_mt.data.shards import Shard, Stream

Codes = NDArray[np.uint8]


class PlacedShard(NamedTuple):
    """stream: number of the stream; start: first pair in its stream; first: the same, in all streams"""

    stream: int
    shard: Shard
    start: int
    first: int

    @property
    def numbers(self) -> Numbers:
        return np.arange(self.first, self.first + self.shard.pairs, dtype=np.uint64)


class Labels:
    """Labels of all pairs, read and written piece by piece."""

    def __init__(self, streams: Sequence[Stream], codes: Sequence[int]) -> None:
        """codes: the first label of all pairs of each stream"""
        self._streams, self.pieces, first = streams, list[PlacedShard](), 0
        for number, (stream, code) in enumerate(zip(streams, codes, strict=True)):
            start = 0
            with stream.labels.open("wb") as file:
                for shard in stream.shards:
                    self.pieces.append(PlacedShard(number, shard, start, first + start))
                    file.write(bytes([code]) * shard.pairs)
                    start += shard.pairs
            first += start
        self.pairs = first
        self._firsts = np.array([piece.first for piece in self.pieces], np.uint64)

    @property
    def folder(self) -> Path:
        return self._streams[0].folder

    def of(self, piece: PlacedShard) -> Codes:
        with self._streams[piece.stream].labels.open("rb") as file:
            file.seek(piece.start)
            labels: Codes = np.frombuffer(file.read(piece.shard.pairs), np.uint8).copy()
        return labels

    def write(self, piece: PlacedShard, labels: Codes) -> None:
        self.__dict__.pop("counts", None)
        with self._streams[piece.stream].labels.open("r+b") as file:
            file.seek(piece.start)
            file.write(labels.tobytes())

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The number of pairs by stream and label: [streams, 256]."""
        found = np.zeros((len(self._streams), 256), np.int64)
        for piece in self.pieces:
            found[piece.stream] += np.bincount(self.of(piece), minlength=256)
        return found

    def having(self, codes: Iterable[int]) -> Iterator[tuple[PlacedShard, Codes]]:
        """The pieces of the streams that have these labels."""
        streams = np.flatnonzero(self.counts[:, list(codes)].sum(axis=1)).tolist()
        return ((piece, self.of(piece)) for piece in self.pieces if piece.stream in streams)

    def mark(self, numbers: Numbers, code: int) -> None:
        """Label some pairs. numbers: their places among all pairs, in any order"""
        if not len(numbers):
            return
        numbers = np.sort(numbers)
        begin, end = (int(np.searchsorted(self._firsts, number, side="right")) for number in (numbers[0], numbers[-1]))
        touched = self.pieces[begin - 1 : end]
        bounds = np.searchsorted(numbers, [*self._firsts[begin:end], np.uint64(self.pairs)])
        for piece, some in zip(touched, np.split(numbers, bounds)[: len(touched)], strict=True):
            if len(some):
                labels = self.of(piece)
                labels[(some - np.uint64(piece.first)).astype(np.int64)] = code
                self.write(piece, labels)

    def mark_all(self, numbers: Iterable[Numbers], code: int) -> None:
        """The same for any number of pairs: first sorts them into partitions by their place."""
        count = partitions_for(self.pairs)
        span = np.uint64(-(-self.pairs // count) or 1)
        with Partitions(self.folder, "marked", count) as parts:
            for some in numbers:
                parts.add(some, some, some // span)
        for number in range(count):
            self.mark(parts.read(number)["at"], code)
