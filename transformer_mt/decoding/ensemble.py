"""Several models as one step: the mean of their probabilities decides.

Knows step functions and caches, never a model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_mt.decoding.step import Step


class EnsembleCache(NamedTuple):
    """The caches of all members; rows mean the same hypotheses in each."""

    members: tuple[Any, ...]

    def select(self, sentences_B: Tensor) -> EnsembleCache:
        return EnsembleCache(tuple(cache.select(sentences_B) for cache in self.members))

    def reorder(self, rows_N: Tensor) -> EnsembleCache:
        return EnsembleCache(tuple(cache.reorder(rows_N) for cache in self.members))


def ensemble_step(steps: Sequence[Step[Any]]) -> Step[EnsembleCache]:
    """A step whose logits are the logarithm of the members' mean probability."""

    def step(previous_N: Tensor, cache: EnsembleCache) -> tuple[Tensor, EnsembleCache]:
        answers = [one(previous_N, member) for one, member in zip(steps, cache.members, strict=True)]
        logits_NV = mean_log_probability([logits_NV for logits_NV, _ in answers])
        return logits_NV, EnsembleCache(tuple(member for _, member in answers))

    return step


def mean_log_probability(logits: Sequence[Tensor]) -> Tensor:
    """log(mean of softmax) over models; each tensor [..., V], so is the result."""
    if len(logits) == 1:
        return logits[0].log_softmax(dim=-1)
    stacked = torch.stack([one.log_softmax(dim=-1) for one in logits])
    return stacked.logsumexp(dim=0) - math.log(len(logits))
