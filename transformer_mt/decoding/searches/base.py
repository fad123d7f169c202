"""What a way of searching says about itself, and what it is given to search with.

Imports nothing heavy: a config asks a search what contradicts before anything is searched.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from transformer_mt.config.choices import CHOICES, choice, chosen

if TYPE_CHECKING:
    from transformer_mt.config.decoding import DecodingConfig
    from transformer_mt.config.section import Section
    from transformer_mt.decoding.beam_search import Coverage
    from transformer_mt.decoding.request import SearchResult
    from transformer_mt.decoding.step import Limits, Step


@dataclass(frozen=True)
class Sentences:
    """A batch of sentences to translate, as a search sees it: a step to ask, and no model.

    step, cache: ask the model (or an ensemble) for the next token of each row
    limits:      what the translations must keep to
    sources:     source ids of each sentence
    coverage:    how the newest tokens attended to the source; None unless the search `needs_attention`
    seed:        for what is drawn at random
    scored:      False if nobody asks for scores: they may be 0 then
    """

    step: Step[Any]
    cache: Any
    limits: Limits
    sources: Sequence[Sequence[int]]
    coverage: Coverage | None = None
    seed: int = 0
    scored: bool = True


class Search(ABC):
    """A way of searching, with the settings of a config's `decoding` section.

    settings:        keys of `decoding` that this search reads and others may not
    elsewhere:       what is wrong if one of these settings (`{option}`) is given to a search that does not read it, and
                     what to do
    engines:         those that can search this way: tmt, and ctranslate2 if the proposer is a `Beam` or a `Sampling`
    Options:         keys of its own, if it has any: `method: {kind: NAME, ...}`
    rows:            hypotheses of one sentence that are alive at once
    needs_attention: whether `Sentences.coverage` is needed
    proposer:        the search that finds the candidates: this one, unless it chooses among what another finds
    """

    settings: ClassVar[tuple[str, ...]] = ()
    elsewhere: ClassVar[tuple[str, str]] = ("{option} is for another way of searching", "Leave it out.")
    engines: ClassVar[tuple[str, ...]] = ("tmt",)
    Options: ClassVar[type[Section] | None] = None
    rows: int = 1
    needs_attention: bool = False

    def __init__(self, decoding: DecodingConfig, options: Any = None) -> None:
        self.decoding, self.options = decoding, options
        self.proposer: Search = self

    @classmethod
    def problems(cls, decoding: DecodingConfig) -> list[str]:
        """What contradicts in these settings, a sentence each that names the keys."""
        return []

    @classmethod
    def adapt(cls, given: Collection[str]) -> dict[str, Any]:
        """Settings that follow from those that are given on the command line."""
        return {}

    def refusal(self, given: Collection[str]) -> tuple[str, str] | None:
        """If a given setting would have no effect: what is wrong, and what to do."""
        reads = {*self.settings, *self.proposer.settings}
        for other in (choice("search", name) for name in CHOICES["search"]):
            for name in other.settings:
                if name in given and name not in reads:
                    problem, remedy = other.elsewhere
                    return problem.format(option=option_of(name)), remedy
        return None

    @abstractmethod
    def find(self, sentences: Sentences) -> list[list[SearchResult]]:
        """What is found for each sentence, at least one each, best first."""

    def choose(self, found: Sequence[SearchResult], decode: Callable[[Sequence[int]], str]) -> list[SearchResult]:
        """Of the results for a sentence, the `n_best` with different texts, best first. decode: ids to text."""
        if self.decoding.n_best == 1:
            return [found[0]]
        return different_texts(found, decode)[: self.decoding.n_best]


def different_texts(found: Sequence[SearchResult], decode: Callable[[Sequence[int]], str]) -> list[SearchResult]:
    """The first result of each text, in the given order."""
    first: dict[str, SearchResult] = {}
    for result in found:
        first.setdefault(decode(result.ids), result)
    return list(first.values())


def option_of(setting: str) -> str:
    """What a setting of a search is called on the command line."""
    return f"--{setting.replace('_', '-')}"


def make_search(decoding: DecodingConfig) -> Search:
    """The search that a config's `decoding.method` names."""
    cls, options = chosen("search", decoding.method)
    search: Search = cls(decoding, options)
    return search
