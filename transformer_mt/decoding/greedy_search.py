"""Following one path a row, one token at a time: greedy search, and the loop that sampling shares with it.

Knows a step function and its cache, never a model.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from transformer_mt.decoding.request import SearchResult, length_penalty
from transformer_mt.decoding.step import C, Limits, Step, too_many_idle
from transformer_mt.kernels.top_candidates import top_candidates
from transformer_mt.text.vocabulary import BOS, EOS, PAD

# (logits_NV, the rows' numbers in the whole batch, step) -> tokens_N
Choose = Callable[[Tensor, Tensor, int], Tensor]


def greedy_search(
    step: Step[C], cache: C, limits: Limits, alpha: float = 0.0, scored: bool = True
) -> list[SearchResult]:
    """The likeliest next token at each step; one translation a sentence.

    alpha: length penalty of the reported score. scored: without it, scores are 0 and a softmax is saved.
    """

    def choose(logits_NV: Tensor, rows_N: Tensor, n_steps: int) -> Tensor:
        return top_candidates(logits_NV, logits_NV.new_zeros(len(logits_NV), 1), 1)[1][:, 0]

    return [row[0] for row in follow(step, cache, limits, 1, choose, alpha, scored)]


def follow(
    step: Step[C], cache: C, limits: Limits, width: int, choose: Choose, alpha: float, scored: bool = True
) -> list[list[SearchResult]]:
    """Extend `width` rows of each sentence by the token that `choose` picks, until all have ended or were stopped."""
    device, longest = limits.longest_B.device, int(limits.longest_B.max())
    rows_N = torch.arange(len(limits.longest_B) * width, device=device)
    written_NT = torch.full((len(rows_N), longest), PAD, device=device)  # of all rows, also those that left
    total_N = torch.zeros(len(rows_N), device=device)  # log-probabilities, likewise
    ended_N = torch.zeros(len(rows_N), dtype=torch.bool, device=device)  # of the rows still here
    previous_N = torch.full((len(rows_N),), BOS, device=device)
    for n_steps in range(longest):
        logits_NV, cache = step(previous_N, cache)
        log_p_NV = logits_NV.log_softmax(dim=-1) if scored else None
        limits.forbid(logits_NV, written_NT[rows_N, :n_steps])
        previous_N = choose(logits_NV, rows_N, n_steps).masked_fill(ended_N, PAD)
        written_NT[rows_N, n_steps] = previous_N
        if log_p_NV is not None:
            newest_N = log_p_NV.gather(1, previous_N[:, None])[:, 0]
            total_N[rows_N] += newest_N.masked_fill(ended_N, 0.0)
        ended_N = ended_N | (previous_N == EOS) | (limits.longest_B <= n_steps + 1).repeat_interleave(width)
        over_B = ended_N.view(-1, width).all(dim=1)
        n_over = int(over_B.sum())
        if n_over == len(over_B):
            break
        if n_over and too_many_idle(n_over, len(over_B)):
            kept_B = (~over_B).nonzero()[:, 0]
            cache, limits = cache.select(kept_B), limits.select(kept_B)
            rows_N, previous_N, ended_N = (
                x_N.view(-1, width)[kept_B].flatten() for x_N in (rows_N, previous_N, ended_N)
            )
    found = []
    for ids, total in zip(written_NT.tolist(), total_N.tolist(), strict=True):
        length = ids.index(PAD) if PAD in ids else len(ids)
        found.append(SearchResult(tuple(ids[:length]), total, total / float(length_penalty(length, alpha))))
    return [found[first : first + width] for first in range(0, len(found), width)]
