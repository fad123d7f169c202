"""Samples follow the given distribution, cut by top-k and top-p, and repeat with their seed."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from transformer_mt.decoding.random_sampling import SamplingOptions, pick, restrict, sample
from transformer_mt.decoding.request import SearchResult
from transformer_mt.decoding.step import Limits

EOS = 3
LOG_P = torch.tensor([-9.0, 1.0, -9.0, 0.5, 2.0, 0.0])  # can be drawn: 1, 3 (the end), 4, 5


class Nothing(NamedTuple):
    """A cache for a language without memory."""

    def select(self, sentences_B: Tensor) -> Nothing:
        return self

    def reorder(self, rows_N: Tensor) -> Nothing:
        return self


def step(previous_N: Tensor, cache: Nothing) -> tuple[Tensor, Nothing]:
    return LOG_P.repeat(len(previous_N), 1), cache


def drawn(seeds: list[int], samples: int, longest: int = 1, **options: float) -> list[list[SearchResult]]:
    limits = Limits.of([0] * len(seeds), [longest] * len(seeds))
    return sample(step, Nothing(), limits, seeds, samples, SamplingOptions(**options))


def test_frequencies_are_the_probabilities() -> None:
    (found,) = drawn([11], 4000, temperature=0.7)
    allowed = LOG_P.clone()
    allowed[[0, 2]] = -math.inf
    expected = (allowed / 0.7).softmax(0)
    for index in range(6):
        share = sum(one.ids == (index,) for one in found) / 4000
        assert share == pytest.approx(float(expected[index]), abs=4 * math.sqrt(0.25 / 4000))


def test_the_reported_probability_is_the_models_own() -> None:
    (found,) = drawn([3], 50, longest=4, temperature=0.5, top_k=2)
    log_p = LOG_P.log_softmax(0)
    for one in found:
        assert one.log_probability == pytest.approx(float(log_p[list(one.ids)].sum()), abs=1e-4)


def test_a_sentences_draws_depend_on_its_seed_alone() -> None:
    together = drawn([5, 6, 7, 5], 6, longest=9)
    assert together[0] == together[3] != together[1]
    assert together[2] == drawn([7], 6, longest=9)[0]
    assert len({one.ids for one in together[1]}) > 1


def test_top_k_keeps_the_k_likeliest() -> None:
    assert {one.ids for one in drawn([1], 500, top_k=2)[0]} == {(4,), (1,)}
    assert {one.ids for one in drawn([1], 50, top_k=1)[0]} == {(4,)}


def test_top_p_keeps_the_fewest_that_reach_p() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05], [0.05, 0.15, 0.3, 0.5]]).log()
    for p, kept in ((0.4, 1), (0.5, 1), (0.51, 2), (0.79, 2), (0.94, 3), (0.97, 4)):
        finite = restrict(logits, top_p=p).isfinite()
        assert finite.sum(1).tolist() == [kept, kept], p
        assert finite[0].tolist() == finite[1].flip(0).tolist()
    assert torch.equal(restrict(logits), logits)


def test_what_is_impossible_is_never_picked() -> None:
    p_NV = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]] * 3)
    assert pick(p_NV, torch.tensor([0.0, 0.5, 1 - 2**-24])).tolist() == [1, 3, 3]
