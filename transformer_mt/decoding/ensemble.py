"""Several models as one step function: the next token is chosen by the mean of their probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_mt.decoding.incremental import DecoderCache, IncrementalDecoder
from transformer_mt.decoding.step import log_probabilities


class EnsembleCache(NamedTuple):
    """The caches of all members; row n is the same hypothesis in each. attention_NS: that of the first member."""

    members: tuple[DecoderCache, ...]
    attention_NS: Tensor | None = None

    def select(self, sentences_B: Tensor) -> EnsembleCache:
        return EnsembleCache(tuple(cache.select(sentences_B) for cache in self.members))

    def reorder(self, rows_N: Tensor) -> EnsembleCache:
        return EnsembleCache(tuple(cache.reorder(rows_N) for cache in self.members))


class Ensemble:
    """Used like an `IncrementalDecoder`. Its logits are the logarithm of the members' mean probability."""

    def __init__(self, members: Sequence[IncrementalDecoder]) -> None:
        self.members = members

    def start(self, source_BS: Tensor) -> EnsembleCache:
        return EnsembleCache(tuple(member.start(source_BS) for member in self.members))

    def release(self) -> None:
        for member in self.members:
            member.release()

    def step(self, previous_N: Tensor, cache: EnsembleCache) -> tuple[Tensor, EnsembleCache]:
        pairs = zip(self.members, cache.members, strict=True)
        answers = [member.step(previous_N, member_cache) for member, member_cache in pairs]
        logits_NV = mean_log_probability([logits_NV for logits_NV, _ in answers])
        return logits_NV, EnsembleCache(tuple(longer for _, longer in answers), answers[0][1].attention_NS)


def mean_log_probability(logits: Sequence[Tensor]) -> Tensor:
    """log(mean over models of softmax(logits)): tensors [..., V] to one tensor [..., V], at least float32."""
    if len(logits) == 1:
        return log_probabilities(logits[0])
    stacked = torch.stack([log_probabilities(one) for one in logits])
    return stacked.logsumexp(dim=0) - math.log(len(logits))
