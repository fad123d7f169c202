"""Beam search: keeps the W likeliest prefixes of each sentence and extends them together.

Each step takes the 2W likeliest extensions. Those among the first W that end, or reach the longest length, are done;
the W likeliest others stay live. A sentence is finished when W of its hypotheses are done, or when no live one can
still become one of its n best, which saves time and does not change the result. The penalties are those of Wu et al.
2016, arXiv:1609.08144.

With constraints, other hypotheses stay live (`Constraints.extensions`), and only those that meet all of them are done.

This file knows a step function and its cache, not a model. The whole state of a search is one frozen `BeamState`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_mt.decoding.constraints import PATIENCE, Constraints, Extensions
from transformer_mt.decoding.hypotheses import BeamStep, Ended, read
from transformer_mt.decoding.request import SearchResult, length_penalty
from transformer_mt.decoding.step import (
    C,
    Limits,
    Step,
    coverage_penalty,
    log_probabilities,
    look_steps,
    summands,
    too_many_idle,
    unfinished,
)
from transformer_mt.kernels.top_candidates import top_candidates
from transformer_mt.text.vocabulary import BOS, EOS, PAD


@dataclass(frozen=True)
class Coverage:
    """What a coverage penalty is computed from.

    start_BS:  attention that each source position has received before the first step: 0, or 1 at padding
    attention: takes the cache after a step and returns the attention of each row's newest token to the source, [N, S]
    """

    start_BS: Tensor
    attention: Callable[[Any], Tensor]


@dataclass(frozen=True)
class BeamOptions:
    """Settings of a beam search.

    beam:   width W
    n_best: how many of the results must be the best that the search can find
    alpha:  length penalty (`request.length_penalty`)
    beta:   coverage penalty (`step.coverage_penalty`)
    early:  whether to finish a sentence when no better result is possible
    most:   how many results to return for each sentence; None: all
    """

    beam: int
    n_best: int = 1
    alpha: float = 0.0
    beta: float = 0.0
    early: bool = True
    most: int | None = None


@dataclass(frozen=True)
class BeamState(Generic[C]):
    """Everything that a beam search knows between two steps. W is 1 before the first step."""

    sentence_B: Tensor  # [B]        indices of the sentences in the batch
    tokens_BWT: Tensor  # [B, W, T]  ids of the live hypotheses, without the start token
    scores_BW: Tensor  # [B, W]      their log-probabilities; -inf: an empty place. All -inf: the sentence is finished
    coverage_BWS: Tensor | None  # [B, W, S]  attention that each source position has received; None without a penalty
    best_BR: Tensor  # [B, n_best]   scores of the best hypotheses that are done, best first; -inf if fewer are done
    n_done_B: Tensor  # [B]          number of hypotheses that are done
    written: tuple[BeamStep, ...]  # what each step wrote, also for sentences that have left the batch
    ended: tuple[Ended, ...]  # the hypotheses that are done, also of sentences that have left the batch
    limits: Limits  # of the B sentences
    cache: C  # of B * W rows
    constraints: Constraints | None = None  # of the B sentences, and what the live hypotheses have met of them

    def select(self, kept_B: Tensor) -> BeamState[C]:
        """The state of the sentences at the places kept_B."""
        return replace(
            self,
            sentence_B=self.sentence_B[kept_B],
            tokens_BWT=self.tokens_BWT[kept_B],
            scores_BW=self.scores_BW[kept_B],
            coverage_BWS=None if self.coverage_BWS is None else self.coverage_BWS[kept_B],
            best_BR=self.best_BR[kept_B],
            n_done_B=self.n_done_B[kept_B],
            limits=self.limits.select(kept_B),
            cache=self.cache.select(kept_B),
            constraints=None if self.constraints is None else self.constraints.select(kept_B),
        )


def beam_search(
    step: Step[C],
    cache: C,
    limits: Limits,
    options: BeamOptions,
    coverage: Coverage | None = None,
    constraints: Constraints | None = None,
) -> list[list[SearchResult]]:
    """The hypotheses that are done for each sentence, best first: at least one, usually W (or `most`), all different.

    coverage:    required with a coverage penalty (beta > 0), and only then
    constraints: what each translation must contain; only if the lengths leave no room for it, the one result lacks it
    """
    assert (coverage is not None) == (options.beta > 0), "a coverage penalty needs `coverage`"
    n_sentences, device = len(limits.longest_B), limits.longest_B.device
    state = BeamState(
        sentence_B=torch.arange(n_sentences, device=device),
        tokens_BWT=torch.empty(n_sentences, 1, 0, dtype=torch.long, device=device),
        scores_BW=torch.zeros(n_sentences, 1, device=device),
        coverage_BWS=None if coverage is None else coverage.start_BS[:, None, :],
        best_BR=torch.full((n_sentences, options.n_best), -math.inf, device=device),
        n_done_B=torch.zeros(n_sentences, dtype=torch.long, device=device),
        written=(),
        ended=(),
        limits=limits,
        cache=cache,
        constraints=constraints,
    )
    previous_N = torch.full_like(state.sentence_B, BOS)
    for n_steps in range(1, limits.max_steps + 1):
        logits_NV, cache = step(previous_N, state.cache)
        if coverage is not None and state.coverage_BWS is not None:
            attention_BWS = coverage.attention(cache).unflatten(0, state.scores_BW.shape)
            state = replace(state, coverage_BWS=state.coverage_BWS + attention_BWS)
        state = _advance(replace(state, cache=cache), logits_NV, options)
        state = _without_finished(state, options, look=n_steps % look_steps(device) == 0)
        if not len(state.sentence_B):
            break
        previous_N = state.tokens_BWT[:, :, -1].flatten()
    return read(state.written, state.ended, n_sentences, options.most)


def _advance(state: BeamState[C], logits_NV: Tensor, options: BeamOptions) -> BeamState[C]:
    """Extend the hypotheses by a token: collect those that are done, and keep the W best others."""
    if state.constraints is not None:
        return _advance_constrained(state, state.constraints, log_probabilities(logits_NV), options)
    added_NV, scores_BW = summands(logits_NV, state.scores_BW)
    state.limits.forbid(added_NV, state.tokens_BWT.flatten(0, 1))
    extensions = _likeliest(added_NV, scores_BW, options.beam)
    ended_BX = _ended(state, extensions)
    state = _collect_done(state, extensions, ended_BX[:, : options.beam], options)
    scores_BW, place_BW = extensions.scores_BX.masked_fill(ended_BX, -math.inf).topk(options.beam, dim=-1)
    return _extended(state, extensions, scores_BW, place_BW)


def _advance_constrained(
    state: BeamState[C], constraints: Constraints, log_p_NV: Tensor, options: BeamOptions
) -> BeamState[C]:
    """As `_advance`; what stays live and what may be done depends on the constraints."""
    log_p_NV = constraints.pointed(log_p_NV, state.cache)
    constraints = constraints.later(log_p_NV, state.scores_BW)
    state = replace(state, constraints=constraints)
    state.limits.forbid(log_p_NV, state.tokens_BWT.flatten(0, 1))
    constraints.forbid(log_p_NV, state.limits, state.tokens_BWT.shape[2])
    extensions, complete_BX = constraints.extensions(log_p_NV, state.scores_BW, options.beam)
    ended_BX = _ended(state, extensions)
    state = _collect_stuck(state, extensions, ended_BX & ~complete_BX, options)
    state = _collect_done(state, extensions, (ended_BX & complete_BX)[:, : options.beam], options)
    place_BW = ended_BX.to(torch.uint8).argsort(dim=1, stable=True)[:, : options.beam]
    scores_BW = extensions.scores_BX.masked_fill(ended_BX, -math.inf).gather(1, place_BW)
    return _extended(state, extensions, scores_BW, place_BW)


def _ended(state: BeamState[C], extensions: Extensions) -> Tensor:
    """Which extensions end, or reach the longest length: [B, X]."""
    last_B1 = (state.limits.longest_B <= state.tokens_BWT.shape[2] + 1)[:, None]
    return (extensions.tokens_BX == EOS) | last_B1


def _extended(state: BeamState[C], extensions: Extensions, scores_BW: Tensor, place_BW: Tensor) -> BeamState[C]:
    """The state with the extensions at place_BW as its live hypotheses. scores_BW: their scores"""
    parent_BW, token_BW = extensions.parent_BX.gather(1, place_BW), extensions.tokens_BX.gather(1, place_BW)
    place_B1 = torch.arange(len(parent_BW), device=parent_BW.device)[:, None]
    return replace(
        state,
        tokens_BWT=torch.cat([state.tokens_BWT[place_B1, parent_BW], token_BW[:, :, None]], dim=2),
        scores_BW=scores_BW,
        written=(*state.written, BeamStep(state.sentence_B, parent_BW, token_BW)),
        coverage_BWS=None if state.coverage_BWS is None else state.coverage_BWS[place_B1, parent_BW],
        cache=state.cache.reorder((place_B1 * state.scores_BW.shape[1] + parent_BW).flatten()),
        constraints=None if state.constraints is None else state.constraints.advanced(parent_BW, token_BW),
    )


def _likeliest(added_NV: Tensor, scores_BW: Tensor, beam: int) -> Extensions:
    """The 2W likeliest extensions of each sentence, likeliest first; their scores are sums of both numbers.

    added: [N, V], what each token adds to the score of its hypothesis
    """
    scores_BX, tokens_BX, parent_BX = top_candidates(added_NV, scores_BW, 2 * beam)
    missing = (0, 2 * beam - tokens_BX.shape[1])  # if the vocabulary is smaller than the beam
    scores_BX, tokens_BX = F.pad(scores_BX, missing, value=-math.inf), F.pad(tokens_BX, missing, value=EOS)
    return Extensions(scores_BX, tokens_BX, F.pad(parent_BX, missing))


def _collect_stuck(
    state: BeamState[C], extensions: Extensions, incomplete_BX: Tensor, options: BeamOptions
) -> BeamState[C]:
    """Of a sentence without any result that must stop before all constraints are met, collect the best hypothesis.

    incomplete_BX: extensions that must stop and lack a constraint
    """
    possible_BX = extensions.scores_BX > -math.inf
    stuck_B = ~(possible_BX & ~incomplete_BX).any(dim=1) & (state.scores_BW[:, 0] > -math.inf)
    stuck_B &= state.n_done_B == 0
    first_X = torch.arange(options.beam, device=stuck_B.device) == 0
    state = _collect_done(state, extensions, incomplete_BX[:, : options.beam] & first_X & stuck_B[:, None], options)
    bare_B1 = (stuck_B & (state.n_done_B == 0))[:, None]  # they have no extension at all
    length, log_p_B1 = state.tokens_BWT.shape[2], state.scores_BW[:, :1].masked_fill(~bare_B1, -math.inf)
    score_B1, first_B1 = log_p_B1 / length_penalty(length, options.alpha), torch.zeros_like(bare_B1, dtype=torch.long)
    return _with(state, Ended(length, state.sentence_B, first_B1, first_B1 + PAD, log_p_B1, score_B1))


def _collect_done(state: BeamState[C], extensions: Extensions, ended_BW: Tensor, options: BeamOptions) -> BeamState[C]:
    """Add the extensions that ended, or reached the longest length, to the hypotheses that are done."""
    scores_BW, token_BW, parent_BW = (x_BX[:, : options.beam] for x_BX in extensions)
    log_p_BW = scores_BW.masked_fill(~ended_BW, -math.inf)
    if look_steps(log_p_BW.device) == 1 and not (log_p_BW > -math.inf).any():
        return state
    length = state.tokens_BWT.shape[2]
    score_BW = log_p_BW / length_penalty(length + 1, options.alpha)
    if state.coverage_BWS is not None:
        place_B1 = torch.arange(len(parent_BW), device=parent_BW.device)[:, None]
        score_BW = score_BW + coverage_penalty(state.coverage_BWS[place_B1, parent_BW], options.beta)
    return _with(state, Ended(length, state.sentence_B, parent_BW, token_BW, log_p_BW, score_BW))


def _with(state: BeamState[C], ended: Ended) -> BeamState[C]:
    """The state with more hypotheses that are done."""
    best_BX = torch.cat([state.best_BR, ended.score_BW], dim=1)
    return replace(
        state,
        best_BR=best_BX.topk(state.best_BR.shape[1], dim=1).values,
        n_done_B=state.n_done_B + (ended.log_p_BW > -math.inf).sum(dim=1),
        ended=(*state.ended, ended),
    )


def _without_finished(state: BeamState[C], options: BeamOptions, look: bool) -> BeamState[C]:
    """End the search for finished sentences, and remove them if they are enough. look: whether to count them."""
    best_B, bar_B = state.scores_BW.amax(dim=1), state.best_BR[:, -1]
    enough_B = state.n_done_B >= options.beam
    if state.constraints is not None:
        # Hypotheses that meet constraints too early end first: wait for those that are better at the same length.
        enough_B &= best_B / length_penalty(state.tokens_BWT.shape[2], options.alpha) <= bar_B
        enough_B |= (state.constraints.late_B > PATIENCE) & (bar_B > -math.inf)
    finished_B = enough_B | (best_B == -math.inf)
    if options.early:
        # Log-probabilities only fall and the length penalty only grows: no live hypothesis can score more than this.
        limit_B = best_B / length_penalty(state.limits.longest_B, options.alpha)
        finished_B = finished_B | (limit_B <= bar_B)
    n_finished = int(finished_B.sum()) if look else 0
    if n_finished and too_many_idle(n_finished, len(finished_B)):
        return state.select(unfinished(finished_B, n_finished))
    if look and not n_finished:
        return state
    return replace(state, scores_BW=state.scores_BW.masked_fill(finished_B[:, None], -math.inf))
