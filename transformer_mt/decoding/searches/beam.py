"""Beam search, and greedy search as the beam of width 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from transformer_mt.decoding.searches.base import Search, Sentences

if TYPE_CHECKING:
    from transformer_mt.config.decoding import DecodingConfig
    from transformer_mt.decoding.request import SearchResult


FEWEST_CONSTRAINED = 5  # hypotheses with constraints: some that meet them early, some that wait for the right place


class Beam(Search):
    """The best translations that a beam search finds.

    n_best: how many of the results must be the best that the beam can find; None: `decoding.n_best`
    """

    settings = ("beam", "length_penalty", "coverage_penalty")
    misuse = ("{option} is for beam search, but this search draws samples", "Remove the option, or use beam search.")
    engines: ClassVar[tuple[str, ...]] = ("tmt", "ctranslate2")

    def __init__(self, decoding: DecodingConfig, options: Any = None, n_best: int | None = None) -> None:
        super().__init__(decoding, options)
        self.rows, self.n_best = decoding.beam, n_best or decoding.n_best
        self.constrained_rows = max(self.rows, FEWEST_CONSTRAINED)
        self.needs_attention = decoding.coverage_penalty > 0

    @classmethod
    def problems(cls, decoding: DecodingConfig) -> list[str]:
        if decoding.n_best > decoding.beam:
            return [f"n_best {decoding.n_best} needs a beam of at least {decoding.n_best}, not {decoding.beam}"]
        return []

    def describe(self) -> str:
        return f"beam {self.rows}" if self.rows > 1 else "greedy search"

    def find(self, sentences: Sentences) -> list[list[SearchResult]]:
        from transformer_mt.decoding.beam_search import BeamOptions, beam_search
        from transformer_mt.decoding.greedy_search import greedy_search

        step, cache, limits = sentences.step, sentences.cache, sentences.limits
        alpha, beta = self.decoding.length_penalty, self.decoding.coverage_penalty
        if self.rows == 1 and not beta and sentences.constraints is None:
            return [[found] for found in greedy_search(step, cache, limits, alpha, sentences.scored)]
        width = self.rows if sentences.constraints is None else self.constrained_rows
        only_best = self.n_best == 1 and type(self) is Beam and not sentences.every  # a subclass may choose among all
        options = BeamOptions(width, self.n_best, alpha, beta, most=1 if only_best else None)
        return beam_search(step, cache, limits, options, sentences.coverage, sentences.constraints)
