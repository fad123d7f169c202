"""Random segmentations of the training pairs."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from random import Random

from transformer_mt.data.batching import Sampler
from transformer_mt.data.prepared import Prepared


def sampler_of(prepared: Prepared) -> Sampler:
    """Draws a new segmentation of a training pair for each batch it is in; the tags stay."""
    sources, targets = prepared.training_text()
    source, target = prepared.codecs()
    runs = prepared.runs("train")
    ends = list(accumulate(run.pairs for run in runs))

    def sample(pair: int, random: Random) -> tuple[list[int], list[int]]:
        tags = runs[bisect_right(ends, pair)].tags
        return source.sample(sources[pair], random, tags), target.sample(targets[pair], random)

    return sample
