"""Translations drawn at random from the model's distribution."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from transformer_mt.decoding.searches.base import Search, Sentences, different_texts

if TYPE_CHECKING:
    from transformer_mt.config.decoding import DecodingConfig
    from transformer_mt.decoding.request import SearchResult


class Sampling(Search):
    """Independent samples. count: how many for each sentence; None: n_best."""

    settings = ("temperature", "top_k", "top_p")
    misuse = (
        "{option} is for sampling, but this search draws no samples",
        "Add --sample (draws one) or --mbr (draws many and picks the one most similar to the others).",
    )
    engines = ("tmt", "ctranslate2")

    def __init__(self, decoding: DecodingConfig, options: Any = None, count: int | None = None) -> None:
        super().__init__(decoding, options)
        self.rows = count or decoding.n_best

    def refusal(self, given: Collection[str]) -> tuple[str, str] | None:
        if "beam" in given:
            return "--sample and --beam are two ways of searching", "Give only one of them."
        return super().refusal(given)

    def describe(self) -> str:
        return "random samples"

    def find(self, sentences: Sentences) -> list[list[SearchResult]]:
        """In the order drawn."""
        from transformer_mt.decoding.random_sampling import SamplingOptions, sample, seed_of

        own = self.decoding
        options = SamplingOptions(own.temperature, own.top_k, own.top_p, own.length_penalty)
        seeds = [seed_of(source, sentences.seed) for source in sentences.sources]
        return sample(sentences.step, sentences.cache, sentences.limits, seeds, self.rows, options)

    def choose(self, found: Sequence[SearchResult], decode: Callable[[Sequence[int]], str]) -> list[SearchResult]:
        """The most probable first; of equal texts, the sample that was drawn first."""
        return sorted(different_texts(found, decode), key=lambda one: -one.score)[: self.decoding.n_best]
