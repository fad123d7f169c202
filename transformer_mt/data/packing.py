"""Streams: the sentences of a batch are concatenated, and padding is only at the end.

    ids         a a a </s> b b </s> c c c c </s> . . .        . is padding, the tail
    positions   0 1 2  3   0 1  2   0 1 2 3  4   0 1 2        each sentence counts from 0
    starts      0          4        7            12    15     the first position of each span, then the end

A batch has a stream for each side. All streams of a run have the same length, so a GPU sees the same shapes in each
update. A span is a sentence, a piece of the tail, or empty; span x of the source belongs to span x of the target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer_mt.data.store import Counts

SPARE_PAIRS = 1.25  # room for this many times the mean number of pairs in a batch
ROUND = 8  # the length of the shorter stream, and the number of pairs, are multiples of this


class FlatSentences(NamedTuple):
    """Some sentences of one side: their ids concatenated, with end tokens, and the length of each."""

    ids: NDArray[np.int64]
    lengths: Counts


class Layout(NamedTuple):
    """Where the sentences of a batch stand in its two streams. S, T: tokens of a stream; X: spans.

    source_positions_S, target_positions_T: the position of each token in its span
    source_starts_X, target_starts_X:       int32 [X + 1]: the first token of each span, then the end of the stream
    longest: no span has more tokens
    pairs:   the first spans are these pairs of sentences
    """

    source_positions_S: Tensor
    target_positions_T: Tensor
    source_starts_X: Tensor
    target_starts_X: Tensor
    longest: int
    pairs: int

    def map(self, function: Callable[[Tensor], Tensor]) -> Layout:
        """The layout with the results of a function for its tensors."""
        source_positions_S, target_positions_T, source_X, target_X = map(function, self[:4])
        return Layout(source_positions_S, target_positions_T, source_X, target_X, self.longest, self.pairs)


@dataclass(frozen=True)
class StreamSize:
    """The shape of all batches of a run.

    source, target: tokens of the streams
    pairs:          most pairs of sentences in a batch
    longest:        tokens of the longest sentence
    """

    source: int
    target: int
    pairs: int
    longest: int

    @classmethod
    def of(cls, tokens: int, mean_source: float, mean_target: float, longest: tuple[int, int]) -> StreamSize:
        """The longer stream has `tokens` tokens, the other fewer, as the mean lengths of the two sides demand.

        longest: tokens of the longest sentence of each side. A stream has room for it, also if `tokens` is less.
        """
        widest = max(mean_source, mean_target)
        source, target = (
            max(most, min(tokens, rounded_up(tokens * mean / widest)))
            for mean, most in zip((mean_source, mean_target), longest, strict=True)
        )
        return cls(source, target, rounded_up(SPARE_PAIRS * tokens / widest), max(longest))

    @property
    def spans(self) -> int:
        """The number of spans: enough for all pairs and for a tail as long as a stream."""
        return self.pairs + -(-max(self.source, self.target) // self.longest)

    def fill(self, source_lengths: Counts, target_lengths: Counts) -> list[slice]:
        """Cut a sequence of pairs into consecutive batches, each as full as possible."""
        source_ends, target_ends = source_lengths.cumsum(), target_lengths.cumsum()
        slices, begin = list[slice](), 0
        while begin < len(source_ends):
            source_room = self.source + (source_ends[begin - 1] if begin else 0)
            target_room = self.target + (target_ends[begin - 1] if begin else 0)
            end = min(
                int(source_ends.searchsorted(source_room, "right")),
                int(target_ends.searchsorted(target_room, "right")),
                begin + self.pairs,
            )
            assert end > begin, "a stream has room for the longest sentence"
            slices.append(slice(begin, end))
            begin = end
        return slices

    def lay_out(self, source_lengths: Counts, target_lengths: Counts) -> Layout:
        """The layout of these pairs. Both tails are cut into the same number of pieces."""
        tails = self.source - int(source_lengths.sum()), self.target - int(target_lengths.sum())
        pieces = -(-max(tails) // self.longest)
        source_starts, target_starts = (
            _starts(lengths, tail, pieces, self.spans)
            for lengths, tail in zip((source_lengths, target_lengths), tails, strict=True)
        )
        return Layout(
            torch.from_numpy(_positions(source_starts)),
            torch.from_numpy(_positions(target_starts)),
            torch.from_numpy(source_starts.astype(np.int32)),
            torch.from_numpy(target_starts.astype(np.int32)),
            self.longest,
            len(source_lengths),
        )


def balanced(source_lengths: Counts, target_lengths: Counts) -> Counts:
    """An order in which both streams of a batch become full at about the same time; else as random as before.

    Pairs with more than the usual share of source tokens, and those with less, alternate so that neither gets ahead.
    """
    if not len(source_lengths):
        return np.arange(0)
    surplus = source_lengths / source_lengths.sum() - target_lengths / target_lengths.sum()
    place = np.empty(len(surplus))
    for part in (surplus >= 0, surplus < 0):
        place[part] = np.abs(surplus[part]).cumsum()
    return place.argsort(kind="stable")


def halved(source_starts: Counts, target_starts: Counts, longest: int) -> tuple[int, StreamSize]:
    """Splits a batch: the number of pairs in its first half, and a size in which either half has room.

    source_starts, target_starts: the start of each sentence, then the end of the last
    """
    pairs = len(source_starts) - 1
    middle = pairs // 2
    source, target = (
        rounded_up(min(_coarsely(int(max(starts[middle], starts[-1] - starts[middle]))), int(starts[-1])))
        for starts in (source_starts, target_starts)
    )
    return middle, StreamSize(source, target, _coarsely(pairs - middle), longest)


def _coarsely(number: int) -> int:
    """Rounded up by less than a quarter, so that many sizes become few: a GPU compiles for each of them."""
    step = 1 << max(0, number.bit_length() - 3)
    return -(-number // step) * step


def joined(sentences: Sequence[Sequence[int]]) -> FlatSentences:
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    return FlatSentences(np.concatenate([np.asarray(sentence, dtype=np.int64) for sentence in sentences]), lengths)


def moved_to(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on the device; a CUDA GPU copies it while the program goes on. Pinning it again costs nothing."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def rounded_up(number: float) -> int:
    return -int(-number // ROUND) * ROUND


def _starts(lengths: Counts, tail: int, pieces: int, spans: int) -> Counts:
    """The start of each span and the end of the last one: sentences, then the pieces of the tail, then empty spans."""
    end = int(lengths.sum())
    starts = np.full(spans + 1, end + tail)
    starts[0] = 0
    starts[1 : len(lengths) + 1] = lengths.cumsum()
    if pieces:
        starts[len(lengths) : len(lengths) + pieces] = end + tail * np.arange(pieces) // pieces
    return starts


def _positions(starts: Counts) -> Counts:
    """The position of each token in its span."""
    return np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts))
