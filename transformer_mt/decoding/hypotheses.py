"""What the steps of a beam search wrote, as tensors on its device; read once, at the end.

A GPU runs ahead of the host as long as the host does not ask for its numbers. So a step only keeps tensors that it has
anyway: which hypothesis each live one continues, and with which token. The ids of a hypothesis follow from these.

Letters: B sentences in the batch at a step, W places of the beam, T steps; M hypotheses that are done.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_mt.decoding.request import SearchResult
from transformer_mt.text.vocabulary import PAD


class BeamStep(NamedTuple):
    """The live hypotheses after a step: each continues the one at the place `parent` before the step."""

    sentence_B: Tensor
    parent_BW: Tensor
    token_BW: Tensor


class Ended(NamedTuple):
    """Hypotheses that are done: each is the live one at the place `parent` after `n_steps` steps, and one more token.

    token_BW: PAD if there is no more token
    log_p_BW: log-probabilities; -inf where there is no hypothesis
    """

    n_steps: int
    sentence_B: Tensor
    parent_BW: Tensor
    token_BW: Tensor
    log_p_BW: Tensor
    score_BW: Tensor


def read(
    written: Sequence[BeamStep], ended: Sequence[Ended], n_sentences: int, most: int | None = None
) -> list[list[SearchResult]]:
    """The hypotheses that are done, for each sentence: best first; of equal scores, the one that ended first.

    written: of all steps. The host waits for the device twice, however many steps there were.
    most:    how many of each sentence; None: all
    """
    results: list[list[SearchResult]] = [[] for _ in range(n_sentences)]
    if not ended:
        return results
    log_p_M, score_M = _columns(_on_host([x for one in ended for x in (one.log_p_BW, one.score_BW)]), 2)
    last = [x for one in ended for x in (one.sentence_B[:, None].expand_as(one.token_BW), one.parent_BW, one.token_BW)]
    host = _on_host([*(x for one in written for x in one), *last])
    links, last = host[: -len(last)], host[-len(last) :]
    n_steps_M = torch.cat([torch.full((one.token_BW.numel(),), one.n_steps) for one in ended])
    sentence_M, parent_M, token_M = _columns(last, 3)
    done_M = (log_p_M > -math.inf).nonzero()[:, 0]
    if most is not None:
        done_M = _best(done_M, sentence_M, score_M, most)
    sentence_M, parent_M, token_M, n_steps_M = (x_M[done_M] for x_M in (sentence_M, parent_M, token_M, n_steps_M))
    ids_MT = _follow_back(links, sentence_M, parent_M, n_steps_M, n_sentences)
    ids_MT.scatter_(1, n_steps_M[:, None], token_M[:, None])
    length_M = n_steps_M + (token_M != PAD)
    rows = zip(*(x.tolist() for x in (sentence_M, length_M, ids_MT, log_p_M[done_M], score_M[done_M])), strict=True)
    for index, length, ids, log_p, score in rows:
        results[index].append(SearchResult(tuple(ids[:length]), log_p, score))
    if most != 1:
        for found in results:
            found.sort(key=lambda one: -one.score)
    return results


def _best(done_M: Tensor, sentence_M: Tensor, score_M: Tensor, most: int) -> Tensor:
    """Of the hypotheses done_M, the best of each sentence, in the same order."""
    ranked_M = done_M[score_M[done_M].argsort(descending=True, stable=True)]
    ranked_M = ranked_M[sentence_M[ranked_M].argsort(stable=True)]
    sentence_M = sentence_M[ranked_M]
    rank_M = torch.arange(len(ranked_M)) - torch.searchsorted(sentence_M, sentence_M)
    return ranked_M[rank_M < most].sort().values


def _follow_back(
    links: Sequence[Tensor], sentence_M: Tensor, parent_M: Tensor, n_steps_M: Tensor, n_sentences: int
) -> Tensor:
    """Ids [M, T + 1] of the live hypotheses at the places `parent` after n_steps steps; n_steps_M never falls."""
    width, n_steps = links[1].shape[1], len(links) // 3
    ids_MT = torch.full((len(sentence_M), n_steps + 1), PAD)
    first_M, place_M = sentence_M * width, parent_M.clone()
    longer = torch.searchsorted(n_steps_M, torch.arange(n_steps), right=True).tolist()
    for step in reversed(range(n_steps)):
        sentence_B, parent_BW, token_BW = links[3 * step : 3 * step + 3]
        all_2BW = torch.empty(2, n_sentences, width, dtype=torch.long)
        all_2BW[0, sentence_B], all_2BW[1, sentence_B] = parent_BW, token_BW
        parent_N, token_N = all_2BW.flatten(1)
        some = slice(longer[step], None)  # the hypotheses with a token of this step
        row_M = first_M[some] + place_M[some]
        ids_MT[some, step], place_M[some] = token_N[row_M], parent_N[row_M]
    return ids_MT


def _on_host(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors, copied in one piece."""
    whole = torch.cat([x.flatten() for x in tensors]).cpu()
    parts = whole.split([x.numel() for x in tensors])
    return [part.view(x.shape) for part, x in zip(parts, tensors, strict=True)]


def _columns(tensors: Sequence[Tensor], count: int) -> list[Tensor]:
    """Every `count`-th tensor from the first, the second, ... on, each column as one flat tensor."""
    return [torch.cat([x.flatten() for x in tensors[first::count]]) for first in range(count)]
