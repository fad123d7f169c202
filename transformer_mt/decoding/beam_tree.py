"""A beam search seen from outside, as a tree: what it considered at each step, what it kept, and what ended.

The search itself does not change. It gets a step function and a cache that remember: the step sees the newest token of
each row and the logits that follow, and the cache sees which row continues which. The 2W likeliest extensions of a step
are taken from the same numbers, by the same function, as the search takes them, so scores are equal to the last bit.

This file knows a step function and its cache, not a model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal

import torch
from torch import Tensor

from transformer_mt.decoding.beam_search import Coverage
from transformer_mt.decoding.request import SearchResult, length_penalty
from transformer_mt.decoding.searches.base import Sentences
from transformer_mt.decoding.searches.beam import Beam
from transformer_mt.decoding.step import C, Limits, Step, log_probabilities
from transformer_mt.kernels.top_candidates import top_candidates
from transformer_mt.text.vocabulary import BOS, EOS, PAD

Fate = Literal["extended", "done", "unfinished", "dropped"]
START, NONE = -1, -2  # instead of a node: before the start token; a row that holds no hypothesis


@dataclass(frozen=True)
class Node:
    """A prefix that the search considered. The first node is the start token.

    parent:          index of the prefix without the last token; None for the start token
    token:           id of the last token
    step:            number of tokens after the start token
    log_p:           log-probability of the last token after the prefix before it
    log_probability: of the whole prefix
    fate:            extended: it stayed in the beam, and a step read it; done: a hypothesis of the result; unfinished:
                     in the beam when the search stopped; dropped: considered, but others were likelier
    score:           of a hypothesis that is done, with length and coverage penalties; else None
    """

    parent: int | None
    token: int
    step: int
    log_p: float
    log_probability: float
    fate: Fate
    score: float | None = None


@dataclass(frozen=True)
class BeamTree:
    """What a search considered for one sentence.

    nodes: in the order of the steps; within a step, likeliest first
    done:  indices of the hypotheses that are done, best first, as the search returns them
    beam:  width W
    alpha: of the length penalty
    """

    nodes: tuple[Node, ...]
    done: tuple[int, ...]
    beam: int
    alpha: float

    def __repr__(self) -> str:
        return f"BeamTree(beam={self.beam}, {len(self.nodes)} nodes, {len(self.done)} done)"

    def path(self, index: int) -> list[int]:
        """Indices of the nodes from the first token to this one."""
        return _path(self.nodes, index)

    def ids(self, index: int) -> list[int]:
        """The ids of a prefix, without the start token."""
        return [self.nodes[place].token for place in self.path(index)]


def _path(nodes: Sequence[Node], index: int) -> list[int]:
    found, place = list[int](), index
    while (parent := nodes[place].parent) is not None:
        found.append(place)
        place = parent
    return found[::-1]


class RecordedBeam(Beam):
    """A beam search of one sentence, which is recorded in `tree`. With a beam of 1 it is greedy search."""

    tree: BeamTree

    def find(self, sentences: Sentences) -> list[list[SearchResult]]:
        assert len(sentences.sources) == 1, "one sentence, one tree"
        assert sentences.constraints is None, "constraints keep other hypotheses than the likeliest"
        memory = _Memory(sentences.step, sentences.limits, self.rows)
        coverage = sentences.coverage
        if coverage is not None:
            attention = coverage.attention
            coverage = Coverage(coverage.start_BS, lambda remembered: attention(remembered.cache))
        start = Remembered(sentences.cache, (START,))
        recorded = replace(sentences, step=memory.step, cache=start, coverage=coverage, scored=True)
        found = super().find(recorded)
        nodes, done = memory.read(found[0], self.n_best, self.decoding.length_penalty)
        self.tree = BeamTree(tuple(nodes), tuple(done), self.rows, self.decoding.length_penalty)
        return found


@dataclass(frozen=True)
class Remembered(Generic[C]):
    """A cache of one sentence, and for each row the node that it has read last."""

    cache: C
    nodes: tuple[int, ...]

    def select(self, sentences_B: Tensor) -> Remembered[C]:
        return Remembered(self.cache.select(sentences_B), self.nodes if len(sentences_B) else ())

    def reorder(self, rows_N: Tensor) -> Remembered[C]:
        return Remembered(self.cache.reorder(rows_N), tuple(self.nodes[row] for row in rows_N.tolist()))


class _Memory:
    """The step function of a recorded search, and all that passed through it."""

    def __init__(self, step: Step[Any], limits: Limits, beam: int) -> None:
        self._step, self._limits, self._beam = step, limits, beam
        self._nodes = [Node(None, BOS, 0, 0.0, 0.0, "extended")]
        self._places: dict[tuple[int, int], int] = {(START, BOS): 0}  # by parent and token

    def step(self, previous_N: Tensor, remembered: Remembered[Any]) -> tuple[Tensor, Remembered[Any]]:
        logits_NV, cache = self._step(previous_N, remembered.cache)
        pairs = zip(remembered.nodes, previous_N.tolist(), strict=True)
        # A row is a hypothesis only if its token was among the extensions: rows that have none left go on with any.
        rows = tuple(self._places.get((node, token), NONE) if token != EOS else NONE for node, token in pairs)
        for place in rows:
            if place != NONE:
                self._nodes[place] = replace(self._nodes[place], fate="extended")
        if any(place != NONE for place in rows):
            self._consider(rows, logits_NV)
        return logits_NV, Remembered(cache, rows)

    def _consider(self, rows: Sequence[int], logits_NV: Tensor) -> None:
        """Add the 2W likeliest extensions of the rows. Leaves the logits as they are."""
        log_p_NV = log_probabilities(logits_NV)
        allowed_NV = log_p_NV.clone()
        step = 1 + max(self._nodes[place].step for place in rows if place != NONE)
        paths = [_path(self._nodes, place) if place != NONE else [] for place in rows]
        tokens = [[self._nodes[one].token for one in path] or [PAD] * (step - 1) for path in paths]
        tokens_NT = torch.tensor(tokens, dtype=torch.long, device=logits_NV.device).view(len(rows), step - 1)
        self._limits.forbid(allowed_NV, tokens_NT)
        totals = [self._nodes[place].log_probability if place != NONE else -math.inf for place in rows]
        found = top_candidates(allowed_NV, allowed_NV.new_tensor([totals]), 2 * self._beam)
        log_p_X = log_p_NV[found[2][0], found[1][0]]
        for total, token, row, log_p in zip(*(x.tolist() for x in (*(y[0] for y in found), log_p_X)), strict=True):
            if total > -math.inf:
                self._places[rows[row], token] = len(self._nodes)
                self._nodes.append(Node(rows[row], token, step, log_p, total, "dropped"))

    def read(self, found: Sequence[SearchResult], n_best: int, alpha: float) -> tuple[list[Node], list[int]]:
        """All nodes, and those of the results."""
        nodes, done = list(self._nodes), list[int]()
        for result in found:
            place = 0
            for token in result.ids:
                place = self._places[place, token]
            nodes[place] = replace(nodes[place], fate="done", score=result.score)
            done.append(place)
        last = next(step for step in range(1, nodes[-1].step + 1) if self._is_over(nodes, step, n_best, alpha))
        nodes = [node for node in nodes if node.step <= last]
        left = [n for n, node in enumerate(nodes) if node.step == last and node.fate != "done" and node.token != EOS]
        for rank, place in enumerate(left):
            in_beam = rank < self._beam and last < self._limits.max_steps
            nodes[place] = replace(nodes[place], fate="unfinished" if in_beam else "dropped")
        return nodes, done

    def _is_over(self, nodes: Sequence[Node], step: int, n_best: int, alpha: float) -> bool:
        """Whether the search is finished after a step; on a GPU it notices this some steps later.

        It is if W hypotheses are done, or if no live one can still become one of the n best.
        """
        longest = self._limits.max_steps
        scores = sorted((node.score for node in nodes if node.score is not None and node.step <= step), reverse=True)
        live = [node for node in nodes if node.step == step and node.score is None and node.token != EOS]
        if len(scores) >= self._beam or step in (longest, nodes[-1].step) or not live:
            return True
        limit = live[0].log_probability / float(length_penalty(longest, alpha))
        return len(scores) >= n_best and limit <= scores[n_best - 1]
