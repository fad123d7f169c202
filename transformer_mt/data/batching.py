"""From a plan to batches of tensors: the pairs of a batch, padded or as streams, and the share of each process."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer_mt.data.packing import FlatSentences, Layout, StreamSize, halved, joined, moved_to
from transformer_mt.data.planning import BatchSize, Cursor, Planner
from transformer_mt.data.store import Counts, Store
from transformer_mt.data.windows import WINDOW_PAIRS
from transformer_mt.text.vocabulary import BOS, EOS, PAD

if TYPE_CHECKING:  # batches need only torch and NumPy
    from transformer_mt.data.sampling import SampledPair, SegmentationSampler

GROWTH_PAIRS = 1000  # pairs that are segmented at random to estimate the lengths for the plans


class Batch(NamedTuple):
    """Padded ids. The decoder reads target_in and predicts target_out, which is one position ahead.

    source_BS:     source ids, with the end token
    target_in_BT:  start token, then the target without its end token, which is written and never read
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
    def packed(cls, source: FlatSentences, target: FlatSentences, size: StreamSize) -> Batch:
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
        return self._map(lambda tensor: moved_to(tensor, device))

    def pinned(self) -> Batch:
        """The batch in memory that a CUDA GPU reads directly."""
        return self._map(Tensor.pin_memory)

    def _map(self, function: Callable[[Tensor], Tensor]) -> Batch:
        source_BS, target_in_BT, target_out_BT, real_N = map(function, self[:4])
        return Batch(source_BS, target_in_BT, target_out_BT, real_N, self.layout and self.layout.map(function))

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
                FlatSentences(ids_1L[0, starts[begin] : starts[end]].numpy(), np.diff(starts[begin : end + 1]))
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


class Update(NamedTuple):
    """The micro-batches of one process for an update, its size over all processes, and the place of the next one."""

    batches: list[Batch]
    size: UpdateSize
    next: Cursor

    def pinned(self) -> Update:
        """See `Batch.pinned`."""
        return self._replace(batches=[batch.pinned() for batch in self.batches])


class Batches:
    """The training batches of process `rank` of `world` processes: a list of micro-batches for each update.

    An update takes world * accumulate batches of the plan; each process takes every world-th of them, and assembles
    only these. At the end of an epoch a process may get an emptied batch, so that all processes take the same number of
    steps and no pair is left out.

    parts:      size and weight of each corpus in the store; default: one part of weight 1
    packing:    batches are streams of `size.tokens` tokens, of pairs in random order; else rows with padding
    sampler:    draws segmentations of pairs; None: the stored ids are used
    max_length: longest segmentation that the sampler may give, in tokens
    window:     most pairs that are planned together
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
        sampler: SegmentationSampler | None = None,
        max_length: int = 1 << 30,
        window: int = WINDOW_PAIRS,
    ) -> None:
        self.store, self.seed, self.sampler, self.max_length = store, seed, sampler, max_length
        self.rank, self.world, self.of_update = rank, world, world * accumulate
        self._drawn: dict[tuple[int, int, int], list[SampledPair]] = {}  # by epoch, window and number of the batch
        self.planner = Planner(
            store,
            size,
            seed,
            parts or [(len(store), 1.0)],
            growth=self._growth(),
            longest=max_length,
            bucket_by_length=bucket_by_length,
            packing=packing,
            most=window,
        )
        self.streams, self.windows, self.plan = self.planner.streams, self.planner.windows, self.planner.plan

    def _growth(self) -> tuple[float, float] | None:
        """How many times as long as the stored ones sampled segmentations are, on average; None without a sampler."""
        if self.sampler is None or not len(self.store):
            return None
        measured = np.arange(0, len(self.store), -(-len(self.store) // GROWTH_PAIRS))
        drawn = self._sampled((pair, f"first-{pair}") for pair in measured.tolist())
        lengths = np.array([[*map(len, pair)] for pair in drawn])
        source, target = (
            float(lengths[:, number].sum() / side.lengths_of(measured).sum())
            for number, side in enumerate((self.store.source, self.store.target))
        )
        return source, target

    def close(self) -> None:
        """End the processes of the sampler. It starts new ones if it is asked again."""
        if self.sampler is not None:
            self.sampler.close()

    def updates(self, epoch: int) -> int:
        """Optimizer steps in an epoch; estimated if it has several windows."""
        return math.ceil(self.planner.batches(epoch) / self.of_update)

    def updates_before(self, cursor: Cursor) -> int:
        """Optimizer steps in the epoch before this place; estimated if it has several windows."""
        return int(self.planner.batches_before(cursor) / self.of_update)

    def batches_in(self, cursor: Cursor) -> int:
        """Batches of the window of this place; 0 if the place is its beginning, which needs no plan."""
        return len(self.plan(cursor.epoch, cursor.window).batches) if cursor.batch else 0

    def padding(self, epoch: int, window: int = 0) -> float:
        """The share of padding in the source and target tokens of a window."""
        places = sum(rows * (source + target) for rows, source, target in self.shapes(epoch, window))
        return 1 - self.plan(epoch, window).real / places if places else 0.0

    def shapes(self, epoch: int, window: int = 0) -> list[tuple[int, int, int]]:
        """Rows, source length and target length of each batch of a window."""
        shapes = self.plan(epoch, window).shapes
        if self.streams is not None:
            return [(1, self.streams.source, self.streams.target)] * len(shapes)
        return [(rows, source, target) for rows, source, target in shapes.tolist()]

    def update(self, epoch: int, number: int) -> list[Batch]:
        """The micro-batches of this process for one update; numbers count from 0. Plans all windows before it."""
        _, cursor = self.planner.take(Cursor(epoch), number * self.of_update)
        return self.at(cursor).batches

    def at(self, cursor: Cursor) -> Update:
        """The update that begins with this batch of the plan."""
        taken, following = self.planner.take(cursor, self.of_update)
        assert taken, "the place is in the epoch"
        self._draw_ahead(cursor)
        batches = [self._batch(cursor.epoch, *one) for one in taken[self.rank :: self.world]]
        if not batches:  # each process needs at least one batch in an update
            window, last = taken[-1]
            number = last + 1 - len(taken) + self.rank
            pair = self._batch(cursor.epoch, window, last, slice(1), number)
            batches.append(pair.emptied())
        return Update(batches, self._size(cursor.epoch, taken), following)

    def _batch(self, epoch: int, window: int, number: int, part: slice = slice(None), seed: int | None = None) -> Batch:
        """A batch of the plan, or a part of it. seed: of its segmentations, instead of its number"""
        plan = self.plan(epoch, window)
        store, pairs, rows = plan.store, plan.batches[number][part], plan.rows[number][part]
        if self.sampler is not None:
            sampled = self._drawn.pop((epoch, window, number), None) if seed is None else None
            if sampled is None:
                sampled = self._sampled(self._asked(epoch, window, number if seed is None else seed, pairs))
            if self.streams is None:
                return batch_of(*zip(*sampled, strict=True))
            source, target = map(joined, zip(*self._fitting(pairs, sampled, self.streams), strict=True))
        elif self.streams is None:
            return assemble(store, rows)
        else:
            source, target = (
                FlatSentences(one.joined(rows), one.lengths_of(rows)) for one in (store.source, store.target)
            )
        return Batch.packed(source, target, self.streams)

    def _draw_ahead(self, cursor: Cursor) -> None:
        """Draw the segmentations of this update, unless that is done, and of the next ones of its epoch.

        Together they keep all processes of the sampler busy; those of one small batch do not.
        """
        if self.sampler is None or self.sampler.together == 1:
            return
        epoch, asked, sizes = cursor.epoch, list[tuple[int, str]](), dict[tuple[int, int, int], int]()
        while cursor.epoch == epoch and len(asked) < self.sampler.together:
            taken, cursor = self.planner.take(cursor, self.of_update)
            for window, number in taken[self.rank :: self.world]:
                if not sizes and (epoch, window, number) in self._drawn:
                    return
                pairs = self.plan(epoch, window).batches[number]
                asked += self._asked(epoch, window, number, pairs)
                sizes[epoch, window, number] = len(pairs)
        drawn = iter(self._sampled(asked))
        self._drawn = {key: list(islice(drawn, size)) for key, size in sizes.items()}

    def _asked(self, epoch: int, window: int, seed: int, pairs: Counts) -> list[tuple[int, str]]:
        """Pairs of a batch, each with what seeds its draw."""
        place = f"{epoch}-{seed}" if self.windows == 1 else f"{epoch}-{window}-{seed}"
        return [(pair, f"{place}-{row}") for row, pair in enumerate(pairs.tolist())]

    def _size(self, epoch: int, taken: Sequence[tuple[int, int]]) -> UpdateSize:
        """The size of an update of these batches."""
        plans = [(self.plan(epoch, window), batch) for window, batch in taken]
        tokens = sum(int(plan.tokens[batch]) for plan, batch in plans) if self.sampler is None else None
        if self.streams is not None:
            return UpdateSize(tokens, self.streams.source, self.streams.target)
        shapes = np.array([plan.shapes[batch] for plan, batch in plans])
        source, target = (shapes[:, 0] * shapes[:, 1:].T).max(axis=1).tolist()
        return UpdateSize(tokens, source, target)

    def _fitting(self, pairs: Counts, sampled: list[SampledPair], size: StreamSize) -> list[SampledPair]:
        """Segmentations that fit into a stream: if all together are too long, the last ones are the stored ones."""
        totals = np.array([[len(source), len(target)] for source, target in sampled]).sum(axis=0)
        for row in reversed(range(len(pairs))):
            if (totals <= (size.source, size.target)).all():
                break
            stored = self.store.source[pairs[row]], self.store.target[pairs[row]]
            totals += [len(new) - len(old) for new, old in zip(stored, sampled[row], strict=True)]
            sampled[row] = stored
        return sampled

    def _sampled(self, pairs: Iterable[tuple[int, str]]) -> list[SampledPair]:
        """Random segmentations of these pairs; the stored one of a pair whose drawn one is too long.

        pairs: numbers, each with what seeds its draw; a pair can be in several batches of an epoch, and in several rows
        """
        assert self.sampler is not None
        asked = [(pair, f"{self.seed}-{place}") for pair, place in pairs]
        return [
            new if max(map(len, new)) <= self.max_length else (self.store.source[pair], self.store.target[pair])
            for (pair, _), new in zip(asked, self.sampler(asked), strict=True)
        ]


def assemble(store: Store, pairs: Counts) -> Batch:
    """Some pairs of a store as one padded batch."""
    source_BS, target_BT = (
        torch.from_numpy(side.gather(pairs, int(side.lengths_of(pairs).max()), PAD))
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
