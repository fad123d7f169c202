"""From a store to batches of tensors: which sentences form a batch, and the order of the batches.

The order depends only on the seed and the epoch. So the position (epoch, update) is enough to continue in the middle of
an epoch, and each process computes the whole plan and takes a share of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer_mt.data.packing import Layout, Sentences, StreamSize, balanced, halved, joined, moved_to
from transformer_mt.data.store import Counts, Store
from transformer_mt.text.vocabulary import BOS, EOS, PAD

GROWTH_PAIRS = 1000  # pairs that are segmented at random to estimate the lengths for the plans
SampledPair = tuple[Sequence[int], Sequence[int]]  # ids of both sides, with end tokens
Sampler = Callable[[int, random.Random], SampledPair]  # of a pair's number


class Batch(NamedTuple):
    """Padded ids. The decoder reads target_in and predicts target_out, which is one position ahead.

    source_BS:     source ids, with the end token
    target_in_BT:  start token, then the target
    target_out_BT: the target, then the end token
    real_N:        positions of the N real tokens in the flattened target_out, computed here so that no GPU waits for it
    layout:        None: a sentence in each row. Else there is one row, a stream of all sentences
    """

    source_BS: Tensor
    target_in_BT: Tensor
    target_out_BT: Tensor
    real_N: Tensor
    layout: Layout | None = None

    @classmethod
    def of(cls, source_BS: Tensor, target_out_BT: Tensor) -> Batch:
        """The batch of padded sources and targets, both with end tokens."""
        target_in_BT = torch.empty_like(target_out_BT)
        target_in_BT[:, 0] = BOS
        target_in_BT[:, 1:] = target_out_BT[:, :-1].masked_fill(target_out_BT[:, :-1] == EOS, PAD)
        return cls(source_BS, target_in_BT, target_out_BT, (target_out_BT.flatten() != PAD).nonzero()[:, 0])

    @classmethod
    def packed(cls, source: Sentences, target: Sentences, size: StreamSize) -> Batch:
        """The batch of these sentences as two streams, each with end tokens."""
        layout = size.lay_out(source.lengths, target.lengths)
        n_source, n_target = len(source.ids), len(target.ids)
        source_S, target_in_T, target_out_T = (
            np.full(length, PAD, dtype=np.int64) for length in (size.source, size.target, size.target)
        )
        source_S[:n_source], target_out_T[:n_target] = source.ids, target.ids
        target_in_T[1:n_target] = target.ids[:-1]
        target_in_T[layout.target_starts_X[: layout.pairs].numpy()] = BOS
        source_1S, in_1T, out_1T = (torch.from_numpy(ids_L)[None] for ids_L in (source_S, target_in_T, target_out_T))
        return cls(source_1S, in_1T, out_1T, torch.arange(n_target), layout)

    @property
    def tokens(self) -> int:
        """The number of target tokens to predict, with end tokens."""
        return len(self.real_N)

    @property
    def pairs(self) -> int:
        """The number of pairs of sentences."""
        return len(self.source_BS) if self.layout is None else self.layout.pairs

    def to(self, device: torch.device) -> Batch:
        source_BS, target_in_BT, target_out_BT, real_N = (moved_to(tensor, device) for tensor in self[:4])
        layout = None if self.layout is None else self.layout.to(device)
        return Batch(source_BS, target_in_BT, target_out_BT, real_N, layout)

    def halves(self) -> tuple[Batch, Batch]:
        """The first and the second half of the sentences. There must be at least two."""
        if self.layout is not None:
            return self._stream_halves(self.layout)
        middle = len(self.source_BS) // 2
        first = Batch.of(self.source_BS[:middle], self.target_out_BT[:middle])
        return first, Batch.of(self.source_BS[middle:], self.target_out_BT[middle:])

    def _stream_halves(self, layout: Layout) -> tuple[Batch, Batch]:
        """Two batches with streams of about half the length. Only they are shorter than other streams of a run."""
        source_starts, target_starts = layout.source_starts_X.long().numpy(), layout.target_starts_X.long().numpy()
        first, size = halved(source_starts[: layout.pairs + 1], target_starts[: layout.pairs + 1], layout.longest)

        def half(begin: int, end: int) -> Batch:
            source, target = (
                Sentences(ids_1L[0, starts[begin] : starts[end]].numpy(), np.diff(starts[begin : end + 1]))
                for ids_1L, starts in ((self.source_BS, source_starts), (self.target_out_BT, target_starts))
            )
            batch = Batch.packed(source, target, size)
            return batch if self.tokens else batch.emptied()

        return half(0, first), half(first, layout.pairs)

    def emptied(self) -> Batch:
        """A batch of the same shape without real tokens, for processes that have no batch left."""
        return self._replace(target_out_BT=torch.full_like(self.target_out_BT, PAD), real_N=self.real_N[:0])


class UpdateSize(NamedTuple):
    """The size of an update of all processes together; each of them computes the same numbers from the plan.

    tokens:         target tokens to predict; None if segmentations are sampled: only their process knows them
    source, target: positions of the largest batch on each side, with padding
    """

    tokens: int | None
    source: int
    target: int


@dataclass(frozen=True)
class BatchSize:
    """tokens: the longest side of a batch times its sentences is at most this; or the number of sentences."""

    tokens: int | None = None
    sentences: int | None = None


def cut(sizes: Counts, limit: BatchSize) -> list[slice]:
    """Cut a sequence of sentences into consecutive batches. A batch has at least one sentence, of any length.

    sizes: tokens of the longer side of each sentence, in the order of the sequence
    """
    if limit.sentences is not None:
        return [slice(i, min(i + limit.sentences, len(sizes))) for i in range(0, len(sizes), limit.sentences)]
    assert limit.tokens is not None
    slices, begin, widest = [], 0, 0
    for end, size in enumerate(sizes.tolist()):
        widest = max(widest, size)
        if end > begin and widest * (end + 1 - begin) > limit.tokens:
            slices.append(slice(begin, end))
            begin, widest = end, size
    if begin < len(sizes):
        slices.append(slice(begin, len(sizes)))
    return slices


def by_length(source_lengths: Counts, target_lengths: Counts) -> Counts:
    """An order in which neighbours have nearly equal lengths on both sides.

    Sentences are sorted by target length. Those with the same target length are sorted by source length, in turn
    ascending and descending, so that the source length does not jump when the target length changes. The sort is
    stable.
    """
    serpentine = np.where(target_lengths % 2 == 0, source_lengths, -source_lengths)
    return np.lexsort((serpentine, target_lengths))


def epoch_pairs(parts: Sequence[tuple[int, float]], random: np.random.Generator) -> Counts:
    """Pair numbers of an epoch, shuffled: each corpus part (size, weight) repeats its pairs `weight` times.

    For the fraction of a weight, random pairs are drawn in each epoch. Each part gives at least one pair.
    """
    chosen, start = [], 0
    for size, weight in parts:
        whole = np.arange(start, start + size)
        chosen += [whole] * int(weight)
        extra = round((weight - int(weight)) * size) or int(weight < 1 <= size)
        if extra:
            chosen.append(start + random.choice(size, extra, replace=False))
        start += size
    pairs = np.concatenate(chosen) if chosen else np.zeros(0, np.int64)
    random.shuffle(pairs)
    return pairs


class Batches:
    """The training batches of process `rank` of `world` processes: a list of micro-batches for each update.

    An update takes world * accumulate batches of the plan; each process takes every world-th of them. At the end of the
    plan a process may get an emptied batch, so that all processes take the same number of steps and no pair is left
    out.

    parts:      size and weight of each corpus in the store; default: one part of weight 1
    packing:    batches are streams of `size.tokens` tokens, of pairs in random order; else rows with padding
    sampler:    draws a segmentation for a pair; None: the stored ids are used
    max_length: longest segmentation that the sampler may give, in tokens
    """

    def __init__(
        self,
        store: Store,
        size: BatchSize,
        seed: int,
        *,
        parts: Sequence[tuple[int, float]] | None = None,
        bucket_by_length: bool = True,
        packing: bool = False,
        accumulate: int = 1,
        rank: int = 0,
        world: int = 1,
        sampler: Sampler | None = None,
        max_length: int = 1 << 30,
    ) -> None:
        self.store, self.size, self.seed, self.sampler, self.max_length = store, size, seed, sampler, max_length
        self.parts = parts or [(len(store), 1.0)]
        self.bucket_by_length = bucket_by_length
        self.accumulate, self.rank, self.world = accumulate, rank, world
        self._lengths = self._expected_lengths()
        self.streams = self._stream_size() if packing and len(store) else None
        self._plan: tuple[int, list[Counts]] = (-1, [])

    def _expected_lengths(self) -> tuple[Counts, Counts]:
        """Tokens of both sides of each pair, for the plan. With a sampler: stored lengths times a mean growth."""
        source, target = self.store.source.lengths, self.store.target.lengths
        if self.sampler is None or not len(self.store):
            return source, target
        measured = np.arange(0, len(self.store), -(-len(self.store) // GROWTH_PAIRS))
        drawn = np.array([[*map(len, self._sample(int(pair), f"first-{pair}"))] for pair in measured])
        expected: list[Counts] = []
        for side, lengths in enumerate((source, target)):
            growth = drawn[:, side].sum() / lengths[measured].sum()
            expected.append(np.minimum(np.ceil(lengths * growth), self.max_length).astype(np.int64))
        return expected[0], expected[1]

    def _stream_size(self) -> StreamSize:
        """The shape of all streams. From here on the plan counts at least the stored lengths, which always fit."""
        stored = self.store.source.lengths, self.store.target.lengths
        source, target = (np.maximum(*both) for both in zip(self._lengths, stored, strict=True))
        self._lengths = source, target
        weights = np.repeat([weight for _, weight in self.parts], [size for size, _ in self.parts])
        assert self.size.tokens is not None, "the config needs batch_tokens for packing"
        drawn = self.max_length if self.sampler is not None else 0
        longest = max(drawn, int(source.max())), max(drawn, int(target.max()))
        mean_source, mean_target = (float(np.average(lengths, weights=weights)) for lengths in self._lengths)
        return StreamSize.of(self.size.tokens, mean_source, mean_target, longest)

    def plan(self, epoch: int) -> list[Counts]:
        """All batches of an epoch, of all processes, as arrays of pair numbers."""
        if self._plan[0] != epoch:
            self._plan = (epoch, self._make_plan(epoch))
        return self._plan[1]

    def _make_plan(self, epoch: int) -> list[Counts]:
        generator = np.random.default_rng([self.seed, epoch])
        pairs = epoch_pairs(self.parts, generator)
        source, target = self._lengths[0][pairs], self._lengths[1][pairs]
        order = None
        if self.streams is not None:
            order = balanced(source, target)
        elif self.bucket_by_length:
            order = by_length(source, target)
        if order is not None:
            pairs, source, target = pairs[order], source[order], target[order]
        slices = (
            cut(np.maximum(source, target), self.size) if self.streams is None else self.streams.fill(source, target)
        )
        batches = [pairs[part] for part in slices]
        generator.shuffle(batches)
        return batches

    def updates(self, epoch: int) -> int:
        """Optimizer steps in an epoch."""
        return -(-len(self.plan(epoch)) // (self.world * self.accumulate))

    def padding(self, epoch: int) -> float:
        """The share of padding in the source and target tokens of an epoch."""
        places = sum(rows * (source + target) for rows, source, target in self.shapes(epoch))
        real = sum(int(lengths[pairs].sum()) for pairs in self.plan(epoch) for lengths in self._lengths)
        return 1 - real / places if places else 0.0

    def shapes(self, epoch: int) -> list[tuple[int, int, int]]:
        """Rows, source length and target length of each batch of the plan."""
        if self.streams is not None:
            return [(1, self.streams.source, self.streams.target)] * len(self.plan(epoch))
        source, target = self._lengths
        return [(len(pairs), int(source[pairs].max()), int(target[pairs].max())) for pairs in self.plan(epoch)]

    def update(self, epoch: int, number: int) -> list[Batch]:
        """The micro-batches of this process for one update; numbers count from 0."""
        plan = self.plan(epoch)
        first = number * self.world * self.accumulate + self.rank
        batches = []
        for index in range(first, first + self.world * self.accumulate, self.world):
            if index >= len(plan) and index > first:
                break
            # each process needs at least one batch in an update
            pairs = plan[index] if index < len(plan) else plan[-1][:1]
            batch = self._assemble(pairs, f"{epoch}-{index}")
            batches.append(batch if index < len(plan) else batch.emptied())
        return batches

    def _assemble(self, pairs: Counts, place: str) -> Batch:
        """These pairs as a batch. place: see `_sample`."""
        if self.sampler is not None:
            sampled = [self._sample(int(pair), f"{place}-{row}") for row, pair in enumerate(pairs)]
            if self.streams is None:
                return batch_of(*zip(*sampled, strict=True))
            source, target = map(joined, zip(*self._fitting(pairs, sampled, self.streams), strict=True))
        elif self.streams is None:
            return assemble(self.store, pairs)
        else:
            sides = self.store.source, self.store.target
            source, target = (Sentences(side.joined(pairs), side.lengths[pairs]) for side in sides)
        return Batch.packed(source, target, self.streams)

    def _fitting(self, pairs: Counts, sampled: list[SampledPair], size: StreamSize) -> list[SampledPair]:
        """Segmentations that fit into a stream: if all together are too long, the last ones are the stored ones."""
        totals = np.array([[len(source), len(target)] for source, target in sampled]).sum(axis=0)
        for row in reversed(range(len(pairs))):
            if size.has_room(*totals):
                break
            stored = self.store.source[pairs[row]], self.store.target[pairs[row]]
            totals += [len(new) - len(old) for new, old in zip(stored, sampled[row], strict=True)]
            sampled[row] = stored
        return sampled

    def update_size(self, epoch: int, number: int) -> UpdateSize:
        """The size of an update over all processes."""
        each = self.world * self.accumulate
        plan = self.plan(epoch)[number * each : (number + 1) * each]
        lengths = self.store.target.lengths
        tokens = sum(int(lengths[pairs].sum()) for pairs in plan) if self.sampler is None else None
        if self.streams is not None:
            return UpdateSize(tokens, self.streams.source, self.streams.target)
        source, target = (max(len(pairs) * int(side[pairs].max()) for pairs in plan) for side in self._lengths)
        return UpdateSize(tokens, source, target)

    def _sample(self, pair: int, place: str) -> SampledPair:
        """A random segmentation of this pair; the stored one if that is too long.

        place: seeds the draw; a pair can be in several batches of an epoch, and in several rows of a batch
        """
        assert self.sampler is not None
        source, target = self.sampler(pair, random.Random(f"{self.seed}-{place}"))
        if max(len(source), len(target)) > self.max_length:
            return self.store.source[pair], self.store.target[pair]
        return source, target


def assemble(store: Store, pairs: Counts) -> Batch:
    """Some pairs of a store as one padded batch."""
    source_BS, target_BT = (
        torch.from_numpy(side.gather(pairs, int(side.lengths[pairs].max()), PAD))
        for side in (store.source, store.target)
    )
    return Batch.of(source_BS, target_BT)


def batch_of(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Batch:
    """Lists of ids with end tokens as one padded batch."""
    return Batch.of(torch.from_numpy(padded(sources)), torch.from_numpy(padded(targets)))


def padded(sentences: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Lists of ids, padded to the longest: [B, longest]."""
    ids = np.full((len(sentences), max(map(len, sentences))), PAD, dtype=np.int64)
    for row, sentence in enumerate(sentences):
        ids[row, : len(sentence)] = sentence
    return ids
