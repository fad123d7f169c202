"""Beam search, and greedy search as the beam of width 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from transformer_mt.decoding.searches.base import Search, Sentences

if TYPE_CHECKING:
    from transformer_mt.config.decoding import DecodingConfig
    from transformer_mt.decoding.request import SearchResult


class Beam(Search):
    """The likeliest translations that a beam finds.

    n_best: how many of them must be the best there are; None: as configured.
    """

    settings = ("beam", "length_penalty", "coverage_penalty")
    engines = ("tmt", "ctranslate2")

    def __init__(self, decoding: DecodingConfig, options: Any = None, n_best: int | None = None) -> None:
        super().__init__(decoding, options)
        self.n_best = n_best or decoding.n_best

    @classmethod
    def problems(cls, decoding: DecodingConfig) -> list[str]:
        if decoding.n_best > decoding.beam:
            return [f"n_best {decoding.n_best} is more than the beam of {decoding.beam} can hold"]
        return []

    @property
    def rows(self) -> int:
        return self.decoding.beam

    @property
    def needs_attention(self) -> bool:
        return self.decoding.coverage_penalty > 0

    def find(self, sentences: Sentences) -> list[list[SearchResult]]:
        from transformer_mt.decoding.beam_search import BeamOptions, Coverage, beam_search
        from transformer_mt.decoding.greedy_search import greedy_search

        step, cache, limits = sentences.step, sentences.cache, sentences.limits
        alpha, beta = self.decoding.length_penalty, self.decoding.coverage_penalty
        if self.rows == 1 and not beta:
            return [[found] for found in greedy_search(step, cache, limits, alpha, sentences.scored)]
        coverage = Coverage(sentences.padding_BS.float(), sentences.attention_of) if beta else None
        return beam_search(step, cache, limits, BeamOptions(self.rows, self.n_best, alpha, beta), coverage)

    def choose(self, found: Sequence[SearchResult], text_of: Callable[[SearchResult], str]) -> list[SearchResult]:
        return [found[0]] if self.decoding.n_best == 1 else super().choose(found, text_of)
