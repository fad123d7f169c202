"""Greedy search, and the loop that it shares with sampling: each row is extended by one token at a time.

This file knows a step function and its cache, not a model.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from transformer_mt.decoding.request import SearchResult, length_penalty
from transformer_mt.decoding.step import C, Limits, Step, log_probabilities, look_steps, too_many_idle, unfinished
from transformer_mt.kernels.top_candidates import likeliest
from transformer_mt.text.vocabulary import BOS, EOS, PAD

# (logits_NV, indices of the rows in the whole batch, number of the step) -> tokens_N
Choose = Callable[[Tensor, Tensor, int], Tensor]


def greedy_search(
    step: Step[C], cache: C, limits: Limits, alpha: float = 0.0, scored: bool = True
) -> list[SearchResult]:
    """One translation for each sentence: the likeliest next token at each step.

    alpha:  length penalty of the reported score
    scored: False saves the softmax; scores are then 0
    """

    def choose(logits_NV: Tensor, rows_N: Tensor, n_steps: int) -> Tensor:
        return likeliest(logits_NV)

    return [row[0] for row in follow(step, cache, limits, 1, choose, alpha, scored)]


def follow(
    step: Step[C], cache: C, limits: Limits, width: int, choose: Choose, alpha: float, scored: bool = True
) -> list[list[SearchResult]]:
    """Extend `width` rows of each sentence by what `choose` picks, until all ended or reached their longest length.

    Returns `width` results for each sentence.
    """
    device, longest = limits.longest_B.device, limits.max_steps
    rows_N = torch.arange(len(limits.longest_B) * width, device=device)
    written_NT = torch.full((len(rows_N), longest), PAD, device=device)  # of all rows, removed ones too
    total_N = torch.zeros(len(rows_N), device=device)  # log-probabilities of all rows
    ended_N = torch.zeros(len(rows_N), dtype=torch.bool, device=device)  # of the rows still in the batch
    previous_N = torch.full((len(rows_N),), BOS, device=device)
    for n_steps in range(longest):
        logits_NV, cache = step(previous_N, cache)
        log_p_NV = log_probabilities(logits_NV) if scored else None
        limits.forbid(logits_NV, written_NT[rows_N, :n_steps])
        previous_N = choose(logits_NV, rows_N, n_steps).masked_fill(ended_N, PAD)
        written_NT[rows_N, n_steps] = previous_N
        if log_p_NV is not None:
            newest_N = log_p_NV.gather(1, previous_N[:, None])[:, 0]
            total_N[rows_N] += newest_N.masked_fill(ended_N, 0.0)
        ended_N = ended_N | (previous_N == EOS) | (limits.longest_B <= n_steps + 1).repeat_interleave(width)
        if (n_steps + 1) % look_steps(device):
            continue
        finished_B = ended_N.view(-1, width).all(dim=1)
        n_finished = int(finished_B.sum())
        if n_finished == len(finished_B):
            break
        if n_finished and too_many_idle(n_finished, len(finished_B)):
            kept_B = unfinished(finished_B, n_finished)
            cache, limits = cache.select(kept_B), limits.select(kept_B)
            rows_N, previous_N, ended_N = (
                x_N.view(-1, width)[kept_B].flatten() for x_N in (rows_N, previous_N, ended_N)
            )
    return read_rows(written_NT, total_N, width, alpha)


def read_rows(written_NT: Tensor, total_N: Tensor, width: int, alpha: float) -> list[list[SearchResult]]:
    """The `width` results of each sentence, from what all rows wrote. The host waits for the device twice."""
    written_NT, log_p_N = written_NT.cpu(), total_N.cpu().double()  # in this order: an Apple GPU has no float64
    is_written_NT = written_NT != PAD
    length_N = is_written_NT.sum(dim=1)
    score_N = log_p_N / length_penalty(length_N.double(), alpha)
    ids, end_N = written_NT[is_written_NT].tolist(), length_N.cumsum(0)  # concatenated
    rows = zip(*(x_N.tolist() for x_N in (end_N - length_N, end_N, log_p_N, score_N)), strict=True)
    found = [SearchResult(tuple(ids[start:end]), log_p, score) for start, end, log_p, score in rows]
    return [found[first : first + width] for first in range(0, len(found), width)]
