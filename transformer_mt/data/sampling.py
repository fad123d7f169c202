"""Random segmentations of the training pairs. Without torch, so that other processes which draw them start at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from random import Random

from transformer_mt.data.prepared import Prepared

SampledPair = tuple[Sequence[int], Sequence[int]]  # ids of both sides, with end tokens
Sampler = Callable[[int, Random], SampledPair]  # of a pair's number


class Segmentations:
    """A `Sampler`: draws a new segmentation of a training pair for each batch it is in; the tags stay."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.codecs = prepared.codecs()
        self.sources, self.targets = prepared.training_text()
        self.runs = prepared.runs("train")
        self.ends = list(accumulate(run.pairs for run in self.runs))

    def __reduce__(self) -> tuple[Callable[[Path], Segmentations], tuple[Path]]:
        """For other processes, which open the prepared data themselves: it would be sent with every batch."""
        return _opened, (self.prepared.folder,)

    def __call__(self, pair: int, random: Random) -> SampledPair:
        source, target = self.codecs
        tags = self.runs[bisect_right(self.ends, pair)].tags
        return source.sample(self.sources[pair], random, tags), target.sample(self.targets[pair], random)


def _opened(folder: Path) -> Segmentations:
    return Segmentations(Prepared.open(folder))


def draw(sampler: Sampler, pairs: Sequence[tuple[int, str]]) -> list[SampledPair]:
    """A segmentation of each of these pairs: numbers, each with what seeds its draw. No draw depends on another."""
    return [sampler(pair, Random(seed)) for pair, seed in pairs]
