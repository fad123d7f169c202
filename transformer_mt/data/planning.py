"""Which pairs form a batch, and the order of the batches: the plan of an epoch.

The plan depends only on the seed and the epoch, so the position of the next batch (`Cursor`) is enough to continue in
the middle of an epoch, with any number of processes. A large corpus is planned in windows (`windows`); a small one has
a single window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import NamedTuple

import numpy as np

from transformer_mt.data.packing import StreamSize, balanced
from transformer_mt.data.store import Counts, Store, members
from transformer_mt.data.windows import WINDOW_PAIRS, Windows, epoch_size, repetitions, windows_of

KEPT_PLANS = 4  # of windows: the current one, the next one, and others that are asked for
KEPT_IDS = 2  # windows whose ids are in memory
TINY_EPOCH = 1024  # pairs; it has not enough blocks for windows, whatever the size of the corpus

WIDTH_FACTOR = 24.0  # in `best_width`; found with log-normal lengths and batches of 4,096 to 51,200 tokens


class Cursor(NamedTuple):
    """The next batch of the plan. Epochs count from 1, windows of an epoch and batches of a window from 0."""

    epoch: int = 1
    window: int = 0
    batch: int = 0


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
        if size > widest:  # max() takes three times as long
            widest = size
        if widest * (end + 1 - begin) > limit.tokens and end > begin:
            slices.append(slice(begin, end))
            begin, widest = end, size
    if begin < len(sizes):
        slices.append(slice(begin, len(sizes)))
    return slices


def by_length(source_lengths: Counts, target_lengths: Counts, width: int = 1) -> Counts:
    """An order in which neighbours have nearly equal lengths on both sides.

    Sentences are sorted by target length. Those with the same target length are sorted by source length, in turn
    ascending and descending, so that the source length does not jump when the target length changes. The sort is
    stable. width: so many target lengths count as the same
    """
    group = target_lengths // width if width > 1 else target_lengths
    serpentine = np.where(group % 2 == 0, source_lengths, -source_lengths)
    return np.lexsort((serpentine, group))


def best_width(source_lengths: Counts, target_lengths: Counts, batches: float) -> int:
    """The width for `by_length` with the least padding in so many batches.

    A larger width puts more pairs in a group: sources in a batch then differ less in length, and targets more. Both
    are balanced where the square of the width is proportional to both spreads, and to 1 / batches.
    """
    if not len(source_lengths):
        return 1
    ratio = source_lengths.mean() / target_lengths.mean()
    spreads = float(np.std(source_lengths - ratio * target_lengths) * np.std(target_lengths))
    return max(1, round(math.sqrt(WIDTH_FACTOR * spreads / batches)))


def epoch_pairs(parts: Sequence[tuple[int, float]], random: np.random.Generator) -> Counts:
    """Pair numbers of an epoch, shuffled: each corpus part (size, weight) repeats its pairs `weight` times.

    For the fraction of a weight, random pairs are drawn in each epoch. Each part gives at least one pair.
    """
    chosen, start = [], 0
    for size, weight in parts:
        copies, extra = repetitions(size, weight)
        chosen += [np.arange(start, start + size)] * copies
        if extra:
            chosen.append(start + random.choice(size, extra, replace=False))
        start += size
    pairs = np.concatenate(chosen) if chosen else np.zeros(0, np.int64)
    random.shuffle(pairs)
    return pairs


class Plan(NamedTuple):
    """The batches of a window, in order, of all processes.

    batches: the pair numbers of each
    rows:    the same pairs as numbers in `store`
    store:   the pairs of the window; of the whole corpus if it has no windows
    shapes:  int64 [len(batches), 3]: pairs, and tokens of the longest source and target, as far as they are known
    tokens:  of the targets of each batch, as stored
    real:    tokens of both sides of all batches, without padding
    """

    batches: list[Counts]
    rows: list[Counts]
    store: Store
    shapes: Counts
    tokens: Counts
    real: int


class Planner:
    """Plans the batches of a training.

    parts:   size and weight of each corpus in the store
    growth:  mean growth of the lengths of both sides by sampling; None: there is no sampling
    longest: longest segmentation that is sampled, in tokens
    packing: see `Batches`
    most:    pairs of a window
    """

    def __init__(
        self,
        store: Store,
        size: BatchSize,
        seed: int,
        parts: Sequence[tuple[int, float]],
        *,
        growth: tuple[float, float] | None = None,
        longest: int = 1 << 30,
        bucket_by_length: bool = True,
        packing: bool = False,
        most: int = WINDOW_PAIRS,
    ) -> None:
        self.store, self.size, self.seed, self.parts = store, size, seed, parts
        self.growth, self.longest, self.bucket_by_length, self.packing = growth, longest, bucket_by_length, packing
        self.pairs = epoch_size(parts)
        is_small = self.pairs <= most and (len(store) <= most or self.pairs < TINY_EPOCH)
        self.windows = 1 if is_small else windows_of(self.pairs, most)
        self.streams = self._stream_size() if packing and len(store) else None
        self._plans: dict[tuple[int, int], Plan] = {}
        self._planning = Lock()  # so that no two threads make the same plan

    def _stream_size(self) -> StreamSize:
        """The shape of all streams."""
        assert self.size.tokens is not None, "the config needs batch_tokens for packing"
        drawn = self.longest if self.growth is not None else 0
        longest, means = [], []
        for number, side in enumerate((self.store.source, self.store.target)):
            if self.windows == 1:
                tokens = self._lengths(number, side.lengths)
                weights = np.repeat([weight for _, weight in self.parts], [size for size, _ in self.parts])
                longest.append(max(drawn, int(tokens.max())))
                means.append(float(np.average(tokens, weights=weights)))
            else:
                growth = self.growth[number] if self.growth is not None else 1.0
                longest.append(max(drawn, side.longest()))
                means.append(max(1.0, growth) * self._mean(side.offsets))
        return StreamSize.of(self.size.tokens, means[0], means[1], (longest[0], longest[1]))

    def _lengths(self, side: int, stored: Counts) -> Counts:
        """Tokens of sentences as the plan counts them: estimated if sampled; in streams never fewer."""
        if self.growth is None:
            return stored
        expected: Counts = np.minimum(np.ceil(stored * self.growth[side]), self.longest).astype(np.int64)
        return np.maximum(expected, stored) if self.packing else expected

    def _mean(self, offsets: Counts) -> float:
        """The mean number of stored tokens of a pair in an epoch."""
        tokens, pairs, first = 0.0, 0.0, 0
        for size, weight in self.parts:
            tokens += weight * float(offsets[first + size] - offsets[first])
            pairs, first = pairs + weight * size, first + size
        return tokens / pairs

    def plan(self, epoch: int, window: int = 0) -> Plan:
        """The plan of a window; the last few are kept."""
        plan = self._plans.get((epoch, window))  # without waiting for another plan that is being made
        if plan is None:
            with self._planning:
                plan = self._plans.get((epoch, window)) or self._make_plan(epoch, window)
                self._plans[epoch, window] = plan
                for old in list(self._plans)[:-KEPT_PLANS]:
                    del self._plans[old]
                for old in list(self._plans)[:-KEPT_IDS]:
                    self._plans[old].store.forget()
        return plan

    def read_ahead(self, epoch: int, window: int) -> None:
        """Plan a window and read its ids."""
        self.plan(epoch, window).store.read_ahead()

    def _make_plan(self, epoch: int, window: int) -> Plan:
        generator, store, pairs, rows = self._shuffled(epoch, window)
        tokens = store.target.lengths[rows]
        source, target = self._lengths(0, store.source.lengths[rows]), self._lengths(1, tokens)
        order = None
        if self.streams is not None:
            order = balanced(source, target)
        elif self.bucket_by_length:
            order = by_length(source, target, self._width(source, target))
        if order is not None:
            pairs, rows, tokens, source, target = (one[order] for one in (pairs, rows, tokens, source, target))
        if self.streams is None:
            slices = cut(np.maximum(source, target), self.size)
        else:
            slices = self.streams.fill(source, target)
        places = list(range(len(slices)))
        generator.shuffle(places)
        begins = np.array([part.start for part in slices], dtype=np.int64)
        counts = np.diff(begins, append=len(pairs))
        sides = [np.maximum.reduceat(side, begins) if len(begins) else side for side in (source, target)]
        of_targets = np.add.reduceat(tokens, begins) if len(begins) else tokens
        return Plan(
            [pairs[slices[place]] for place in places],
            [rows[slices[place]] for place in places],
            store,
            np.stack([counts, *sides], axis=1)[places],
            of_targets[places],
            int(source.sum() + target.sum()),
        )

    def _width(self, source: Counts, target: Counts) -> int:
        """Of target lengths that count as the same; for a small corpus always 1, as in older versions."""
        if self.windows == 1:
            return 1
        whole = self.size.sentences or self.size.tokens
        assert whole is not None
        used = len(source) if self.size.sentences else int(np.maximum(source, target).sum())
        return best_width(source, target, max(1.0, used / whole))

    def _shuffled(self, epoch: int, window: int) -> tuple[np.random.Generator, Store, Counts, Counts]:
        """The generator of a window; its pairs as a store; in random order, their numbers, and those in that store."""
        if self.windows == 1:
            generator = np.random.default_rng([self.seed, epoch])
            pairs = epoch_pairs(self.parts, generator)
            return generator, self.store, pairs, pairs
        generator = np.random.default_rng([self.seed, epoch, window + 1])  # a final 0 would change nothing
        runs = Windows(self.parts, self.windows, self.seed, epoch).runs(window)
        store = self.store.excerpt(*runs)
        rows = generator.permutation(len(store))
        return generator, store, members(*runs)[rows], rows

    def take(self, cursor: Cursor, number: int) -> tuple[list[tuple[int, int]], Cursor]:
        """So many batches from here on, as window and batch, fewer at the end of the epoch; and what comes after."""
        epoch, window, first = cursor
        taken = list[tuple[int, int]]()
        while len(taken) < number and window < self.windows:
            batches = len(self.plan(epoch, window).batches)
            end = min(batches, first + number - len(taken))
            taken += [(window, batch) for batch in range(first, end)]
            window, first = (window, end) if end < batches else (window + 1, 0)
        return taken, Cursor(epoch, window, first) if window < self.windows else Cursor(epoch + 1)

    @cached_property
    def _batches_of_epoch(self) -> float:
        """Of several windows: estimated from the first, so that every start of a training finds the same number."""
        plan = self.plan(1)
        return len(plan.batches) * self.pairs / int(plan.shapes[:, 0].sum())

    def batches(self, epoch: int) -> float:
        """How many batches an epoch has; estimated if it has several windows."""
        return len(self.plan(epoch).batches) if self.windows == 1 else self._batches_of_epoch

    def batches_before(self, cursor: Cursor) -> float:
        """How many batches of the epoch come before; estimated if it has several windows."""
        if self.windows == 1:
            return cursor.batch
        window = cursor.batch / len(self.plan(cursor.epoch, cursor.window).batches) if cursor.batch else 0
        return self._batches_of_epoch * (cursor.window + window) / self.windows

    def restored(self, cursor: Cursor, windows: int, planned: int) -> tuple[Cursor, bool]:
        """The cursor at which an interrupted training continues, and whether the epoch stays complete.

        windows, planned: of the epoch, and batches of the window, at that time; planned 0: not known
        If the plan has changed, it continues after the same share of the epoch.
        """
        if cursor == Cursor(cursor.epoch):
            return cursor, True
        if windows == self.windows:
            batches = len(self.plan(cursor.epoch, cursor.window).batches)
            if cursor.batch < batches and (planned in (0, batches) or not cursor.batch):
                return cursor, True
        whole = planned or self.batches(cursor.epoch) / windows
        return self.at_share(cursor.epoch, (cursor.window + cursor.batch / max(1, whole)) / windows), False

    def at_share(self, epoch: int, share: float) -> Cursor:
        """The place in an epoch before which about this share of its batches comes."""
        window, rest = divmod(share * self.windows, 1)
        if window >= self.windows:
            return Cursor(epoch + 1)
        return Cursor(epoch, int(window), int(rest * len(self.plan(epoch, int(window)).batches)))
