"""What a way of searching says about itself, and what it is given to search with.

Imports nothing heavy: a config asks a search what contradicts before anything is searched.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from transformer_mt.config.choices import chosen

if TYPE_CHECKING:
    from torch import Tensor

    from transformer_mt.config.decoding import DecodingConfig
    from transformer_mt.config.section import Section
    from transformer_mt.decoding.request import SearchResult
    from transformer_mt.decoding.step import Limits, Step


@dataclass(frozen=True)
class Sentences:
    """A batch of B sentences to translate, as a search sees it: a step to ask, and no model.

    step, cache:  asks the model (or an ensemble) for the next token of each row
    limits:       what the translations must keep to
    sources:      source ids of each sentence
    padding_BS:   True at padding
    attention_of: from the cache after a step: how the newest token of each row attended to the source [N, S]; only for
                  a search that `needs_attention`
    seed:         for what is drawn at random
    scored:       False if nobody asks for scores, so that they may be left 0
    """

    step: Step[Any]
    cache: Any
    limits: Limits
    sources: Sequence[Sequence[int]]
    padding_BS: Tensor
    attention_of: Callable[[Any], Tensor]
    seed: int = 0
    scored: bool = True


class Search(ABC):
    """A way of searching, with the settings of a config's `decoding` section.

    settings: keys of `decoding` that this search reads and others may not
    engines:  those that can search this way: tmt, ctranslate2
    Options:  keys of its own, if it has any: `method: {kind: NAME, ...}`
    """

    settings: ClassVar[tuple[str, ...]] = ()
    engines: ClassVar[tuple[str, ...]] = ("tmt",)
    Options: ClassVar[type[Section] | None] = None

    def __init__(self, decoding: DecodingConfig, options: Any = None) -> None:
        self.decoding, self.options = decoding, options

    @classmethod
    def problems(cls, decoding: DecodingConfig) -> list[str]:
        """What contradicts in these settings, a sentence each that names the keys."""
        return []

    @property
    @abstractmethod
    def rows(self) -> int:
        """Hypotheses of one sentence that are alive at once."""

    @property
    def needs_attention(self) -> bool:
        return False

    @property
    def proposer(self) -> Search:
        """The search that finds the candidates: this one, unless it chooses among what another finds."""
        return self

    @abstractmethod
    def find(self, sentences: Sentences) -> list[list[SearchResult]]:
        """What is found for each sentence, at least one each."""

    def choose(self, found: Sequence[SearchResult], text_of: Callable[[SearchResult], str]) -> list[SearchResult]:
        """Of what was found for a sentence, the `n_best` with different texts, best first."""
        different: dict[str, SearchResult] = {}
        for one in found:
            different.setdefault(text_of(one), one)
        return list(different.values())[: self.decoding.n_best]


def make_search(decoding: DecodingConfig) -> Search:
    """The search that a config's `decoding.method` names."""
    cls, options = chosen("search", decoding.method)
    search: Search = cls(decoding, options)
    return search
