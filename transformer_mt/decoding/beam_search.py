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
from transformer_mt.decoding.request import SearchResult, length_penalty
from transformer_mt.decoding.step import C, Limits, Step, coverage_penalty, too_many_idle
from transformer_mt.kernels.top_candidates import top_candidates
from transformer_mt.text.vocabulary import BOS, EOS


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
    """

    beam: int
    n_best: int = 1
    alpha: float = 0.0
    beta: float = 0.0
    early: bool = True


@dataclass(frozen=True)
class BeamState(Generic[C]):
    """Everything that a beam search knows between two steps. W is 1 before the first step."""

    sentence_B: Tensor  # [B]        indices of the sentences in the batch
    tokens_BWT: Tensor  # [B, W, T]  ids of the live hypotheses, without the start token
    scores_BW: Tensor  # [B, W]      their log-probabilities; -inf: an empty place. All -inf: the sentence is finished
    coverage_BWS: Tensor | None  # [B, W, S]  attention that each source position has received; None without a penalty
    bar_B: Tensor  # [B]             score of the n-th best hypothesis that is done; -inf if fewer are done
    done: tuple[tuple[SearchResult, ...], ...]  # for each of the B sentences, the hypotheses that are done
    limits: Limits  # of the B sentences
    cache: C  # of B * W rows
    constraints: Constraints | None = None  # of the B sentences, and what the live hypotheses have met of them

    def select(self, kept_B: Tensor) -> BeamState[C]:
        """The state of the sentences at the places kept_B."""
        return BeamState(
            self.sentence_B[kept_B],
            self.tokens_BWT[kept_B],
            self.scores_BW[kept_B],
            None if self.coverage_BWS is None else self.coverage_BWS[kept_B],
            self.bar_B[kept_B],
            tuple(self.done[index] for index in kept_B.tolist()),
            self.limits.select(kept_B),
            self.cache.select(kept_B),
            None if self.constraints is None else self.constraints.select(kept_B),
        )


def beam_search(
    step: Step[C],
    cache: C,
    limits: Limits,
    options: BeamOptions,
    coverage: Coverage | None = None,
    constraints: Constraints | None = None,
) -> list[list[SearchResult]]:
    """The hypotheses that are done for each sentence, best first: at least one, usually W, all different.

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
        bar_B=torch.full((n_sentences,), -math.inf, device=device),
        done=((),) * n_sentences,
        limits=limits,
        cache=cache,
        constraints=constraints,
    )
    results: list[list[SearchResult]] = [[] for _ in range(n_sentences)]
    previous_N = torch.full_like(state.sentence_B, BOS)
    while len(state.sentence_B):
        logits_NV, cache = step(previous_N, state.cache)
        if coverage is not None and state.coverage_BWS is not None:
            attention_BWS = coverage.attention(cache).unflatten(0, state.scores_BW.shape)
            state = replace(state, coverage_BWS=state.coverage_BWS + attention_BWS)
        state = _advance(replace(state, cache=cache), logits_NV, options)
        state = _remove_finished(state, options, results)
        previous_N = state.tokens_BWT[:, :, -1].flatten()
    return results


def _advance(state: BeamState[C], logits_NV: Tensor, options: BeamOptions) -> BeamState[C]:
    """Extend the hypotheses by a token: collect those that are done, and keep the W best others."""
    log_p_NV = logits_NV.log_softmax(dim=-1)
    if state.constraints is not None:
        log_p_NV = state.constraints.pointed(log_p_NV, state.cache)
        state = replace(state, constraints=state.constraints.later(log_p_NV, state.scores_BW))
    state.limits.forbid(log_p_NV, state.tokens_BWT.flatten(0, 1))
    last_B1 = (state.limits.longest_B <= state.tokens_BWT.shape[2] + 1)[:, None]
    if state.constraints is None:
        extensions = _likeliest(log_p_NV, state.scores_BW, options.beam)
        ended_BX = (extensions.tokens_BX == EOS) | last_B1
        state = _collect_done(state, extensions, ended_BX[:, : options.beam], options)
        scores_BW, place_BW = extensions.scores_BX.masked_fill(ended_BX, -math.inf).topk(options.beam, dim=-1)
    else:
        state.constraints.forbid(log_p_NV, state.limits, state.tokens_BWT.shape[2])
        extensions, complete_BX = state.constraints.extensions(log_p_NV, state.scores_BW, options.beam)
        ended_BX = (extensions.tokens_BX == EOS) | last_B1
        state = _collect_stuck(state, extensions, ended_BX & ~complete_BX, options)
        state = _collect_done(state, extensions, (ended_BX & complete_BX)[:, : options.beam], options)
        place_BW = ended_BX.to(torch.uint8).argsort(dim=1, stable=True)[:, : options.beam]
        scores_BW = extensions.scores_BX.masked_fill(ended_BX, -math.inf).gather(1, place_BW)
    parent_BW, token_BW = extensions.parent_BX.gather(1, place_BW), extensions.tokens_BX.gather(1, place_BW)
    place_B1 = torch.arange(len(parent_BW), device=parent_BW.device)[:, None]
    return replace(
        state,
        tokens_BWT=torch.cat([state.tokens_BWT[place_B1, parent_BW], token_BW[:, :, None]], dim=2),
        scores_BW=scores_BW,
        coverage_BWS=None if state.coverage_BWS is None else state.coverage_BWS[place_B1, parent_BW],
        cache=state.cache.reorder((place_B1 * state.scores_BW.shape[1] + parent_BW).flatten()),
        constraints=None if state.constraints is None else state.constraints.advanced(parent_BW, token_BW),
    )


def _likeliest(log_p_NV: Tensor, scores_BW: Tensor, beam: int) -> Extensions:
    """The 2W likeliest extensions of each sentence, likeliest first."""
    scores_BX, tokens_BX, parent_BX = top_candidates(log_p_NV, scores_BW, 2 * beam)
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
    stuck_B &= ~torch.tensor(list(map(bool, state.done)), device=stuck_B.device)
    first_X = torch.arange(options.beam, device=stuck_B.device) == 0
    state = _collect_done(state, extensions, incomplete_BX[:, : options.beam] & first_X & stuck_B[:, None], options)
    done = list(state.done)
    for index in stuck_B.nonzero()[:, 0].tolist():
        if not done[index]:  # it has no extension at all
            ids, log_probability = tuple(state.tokens_BWT[index, 0].tolist()), float(state.scores_BW[index, 0])
            score = log_probability / float(length_penalty(len(ids), options.alpha))
            done[index] = (SearchResult(ids, log_probability, score),)
    return replace(state, done=tuple(done))


def _collect_done(state: BeamState[C], extensions: Extensions, ended_BW: Tensor, options: BeamOptions) -> BeamState[C]:
    """Add the extensions that ended, or reached the longest length, to the hypotheses that are done."""
    places = (ended_BW & (extensions.scores_BX[:, : options.beam] > -math.inf)).nonzero()
    if not len(places):
        return state
    sentence, place = places[:, 0], places[:, 1]
    parent = extensions.parent_BX[sentence, place]
    length = state.tokens_BWT.shape[2] + 1
    ids = torch.cat([state.tokens_BWT[sentence, parent], extensions.tokens_BX[sentence, place, None]], dim=1)
    log_probability = extensions.scores_BX[sentence, place]
    score = log_probability / length_penalty(length, options.alpha)
    if state.coverage_BWS is not None:
        score = score + coverage_penalty(state.coverage_BWS[sentence, parent], options.beta)
    done, bar_B = [list(found) for found in state.done], state.bar_B.clone()
    for index, *found in zip(*(x.tolist() for x in (sentence, ids, log_probability, score)), strict=True):
        done[index].append(SearchResult(tuple(found[0]), found[1], found[2]))
    for index in set(sentence.tolist()):
        done[index].sort(key=lambda found: -found.score)
        if len(done[index]) >= options.n_best:
            bar_B[index] = done[index][options.n_best - 1].score
    return replace(state, done=tuple(map(tuple, done)), bar_B=bar_B)


def _remove_finished(state: BeamState[C], options: BeamOptions, results: list[list[SearchResult]]) -> BeamState[C]:
    """Once enough sentences are finished, write their results and remove them from the state."""
    best_B = state.scores_BW.amax(dim=1)
    enough_B = torch.tensor([len(found) >= options.beam for found in state.done], device=best_B.device)
    if state.constraints is not None:
        # Hypotheses that meet constraints too early end first: wait for those that are better at the same length.
        enough_B &= best_B / length_penalty(state.tokens_BWT.shape[2], options.alpha) <= state.bar_B
        enough_B |= (state.constraints.late_B > PATIENCE) & (state.bar_B > -math.inf)
    finished_B = enough_B | (best_B == -math.inf)
    if options.early:
        # Log-probabilities only fall and the length penalty only grows: no live hypothesis can score more than this.
        limit_B = best_B / length_penalty(state.limits.longest_B, options.alpha)
        finished_B = finished_B | (limit_B <= state.bar_B)
    n_finished = int(finished_B.sum())
    if not n_finished:
        return state
    if too_many_idle(n_finished, len(finished_B)):
        for index in finished_B.nonzero()[:, 0].tolist():
            results[int(state.sentence_B[index])] = list(state.done[index])
        return state.select((~finished_B).nonzero()[:, 0])
    return replace(state, scores_BW=state.scores_BW.masked_fill(finished_B[:, None], -math.inf))
