"""Translations drawn at random from the model's distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from transformer_mt.decoding.searches.base import Search, Sentences

if TYPE_CHECKING:
    from transformer_mt.config.decoding import DecodingConfig
    from transformer_mt.decoding.request import SearchResult


class Sampling(Search):
    """Independent samples. count: how many of each sentence; None: n_best."""

    settings = ("temperature", "top_k", "top_p")
    engines = ("tmt", "ctranslate2")

    def __init__(self, decoding: DecodingConfig, options: Any = None, count: int | None = None) -> None:
        super().__init__(decoding, options)
        self.count = count or decoding.n_best

    @property
    def rows(self) -> int:
        return self.count

    def find(self, sentences: Sentences) -> list[list[SearchResult]]:
        from transformer_mt.decoding.random_sampling import sample, seed_of

        own = self.decoding
        seeds = [seed_of(source, sentences.seed) for source in sentences.sources]
        return sample(
            sentences.step,
            sentences.cache,
            sentences.limits,
            seeds,
            self.rows,
            own.temperature,
            own.top_k,
            own.top_p,
            own.length_penalty,
        )

    def choose(self, found: Sequence[SearchResult], text_of: Callable[[SearchResult], str]) -> list[SearchResult]:
        """The most probable first."""
        different = {text_of(one): one for one in reversed(found)}  # of equal texts the first
        first = dict.fromkeys(text_of(one) for one in found)
        return sorted((different[text] for text in first), key=lambda one: -one.score)[: self.decoding.n_best]
