"""Random translations, drawn from the model's distribution with a temperature, top-k and top-p.

This file knows a step function and its cache, not a model. Each sentence has its own seed, so its samples do not depend
on the other sentences of the batch.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_mt.decoding.greedy_search import follow
from transformer_mt.decoding.request import SearchResult
from transformer_mt.decoding.step import C, Limits, Step, upload, wide


@dataclass(frozen=True)
class SamplingOptions:
    """How tokens are drawn.

    temperature: the logits are divided by it first
    top_k:       only the k likeliest tokens can be drawn; 0: all
    top_p:       of these, only the likeliest that together have at least this probability; 1: all
    alpha:       length penalty of the reported score
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    alpha: float = 0.0


def sample(
    step: Step[C], cache: C, limits: Limits, seeds: Sequence[int], samples: int, options: SamplingOptions
) -> list[list[SearchResult]]:
    """`samples` independent translations of each sentence, in the order in which they were drawn.

    seeds: one for each sentence. The reported log-probability is the model's, without temperature, top_k and top_p.
    """
    chances = torch.zeros(len(seeds), samples, limits.max_steps)
    for row, (seed, length) in enumerate(zip(seeds, limits.longest_B.tolist(), strict=True)):
        generator = torch.Generator().manual_seed(seed)
        chances[row, :, :length] = torch.rand(length, samples, generator=generator).T
    chance_NT = upload(chances.flatten(0, 1), limits.longest_B.device)

    def choose(logits_NV: Tensor, rows_N: Tensor, n_steps: int) -> Tensor:
        kept_NV = restrict(logits_NV.to(wide(logits_NV.dtype)) / options.temperature, options.top_k, options.top_p)
        return pick(kept_NV.softmax(dim=-1), chance_NT[rows_N, n_steps])

    return follow(step, cache, limits, samples, choose, options.alpha)


def seed_of(source: Sequence[int], seed: int) -> int:
    """The seed of a sentence: a hash of its ids and the seed of the run."""
    digest = hashlib.blake2b(repr((seed, list(source))).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def restrict(logits_NV: Tensor, top_k: int = 0, top_p: float = 1.0) -> Tensor:
    """Logits [N, V] with minus infinity at all tokens but the k likeliest, then at all but the fewest that reach p.

    Tokens as likely as the last of the k stay too.
    """
    if 0 < top_k < logits_NV.shape[-1]:
        least_N1 = logits_NV.topk(top_k, dim=-1).values[:, -1:]
        logits_NV = logits_NV.masked_fill(logits_NV < least_N1, -math.inf)
    if top_p < 1.0:
        sorted_NV, order_NV = logits_NV.sort(dim=-1, descending=True)
        p_NV = sorted_NV.softmax(dim=-1)
        beyond_NV = p_NV.cumsum(dim=-1) - p_NV >= top_p  # likelier tokens already reach p
        logits_NV = logits_NV.masked_fill(beyond_NV.gather(-1, order_NV.argsort(dim=-1)), -math.inf)
    return logits_NV


def pick(p_NV: Tensor, chance_N: Tensor) -> Tensor:
    """Tokens [N] by inverse transform sampling: the first whose cumulative probability exceeds the row's chance.

    chance: uniform in [0, 1)
    """
    device = p_NV.device
    if device.type == "mps":  # it has no float64
        p_NV, chance_N = p_NV.cpu(), chance_N.cpu()
    cumulative_NV = p_NV.double().cumsum(dim=-1)  # float64: a chance below 1 stays below the sum
    bar_N1 = chance_N.double()[:, None] * cumulative_NV[:, -1:]
    return torch.searchsorted(cumulative_NV, bar_N1, right=True)[:, 0].to(device)
