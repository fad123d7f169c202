"""The interface of search methods, and what they are given to search with.

This file imports nothing heavy, because a config checks the settings of a search when it is loaded.
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
    from transformer_mt.decoding.constraints import Constraints
    from transformer_mt.decoding.request import SearchResult
    from transformer_mt.decoding.step import Limits, Step


@dataclass(frozen=True)
class Sentences:
    """A batch of sentences to translate, as a search sees it: a step function, and no model.

    step:        takes the previous token of each row and a cache; returns logits of the next one and the longer cache
    cache:       of the first step
    limits:      of the translations
    sources:     source ids of each sentence
    coverage:    attention of the newest tokens to the source; None unless the search `needs_attention`
    seed:        of random samples
    scored:      False if scores are not needed; they may be 0 then
    constraints: what the translations must contain; None unless the search has `constrained_rows`
    every:       whether all results are needed; False: the best ones, `n_best` with different texts
    """

    step: Step[Any]
    cache: Any
    limits: Limits
    sources: Sequence[Sequence[int]]
    coverage: Coverage | None = None
    seed: int = 0
    scored: bool = True
    constraints: Constraints | None = None
    every: bool = True


class Search(ABC):
    """A search method, with the settings of a config's `decoding` section.

    settings:        keys of `decoding` that this method reads, and that not all methods read
    misuse:          the message and the remedy if one of these settings (`{option}`) is given to a method that does not
                     read it
    engines:         that support this method: tmt, and ctranslate2 if the proposer is a `Beam` or a `Sampling`. A class
                     with a `find` of its own has tmt unless it says more
    Options:         more keys, if it has any: `method: {kind: NAME, ...}`
    rows:             hypotheses of one sentence that are decoded at once
    constrained_rows: the same for sentences with constraints; 0 if the method does not support them
    needs_attention:  whether it needs `Sentences.coverage`
    proposer:         the method that finds the candidates: this one, unless it chooses among the results of another
    """

    settings: ClassVar[tuple[str, ...]] = ()
    misuse: ClassVar[tuple[str, str]] = ("{option} is for another search method", "Remove the option.")
    engines: ClassVar[tuple[str, ...]] = ("tmt",)
    Options: ClassVar[type[Section] | None] = None
    rows: int = 1
    constrained_rows: int = 0
    needs_attention: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "find" in vars(cls) and "engines" not in vars(cls):  # another engine would search as the parent class does
            cls.engines = ("tmt",)

    def __init__(self, decoding: DecodingConfig, options: Any = None) -> None:
        self.decoding, self.options = decoding, options
        self.proposer: Search = self

    @property
    def reads(self) -> frozenset[str]:
        """The settings that have an effect, of those that some search declares."""
        return frozenset({*self.settings, *self.proposer.settings})

    @classmethod
    def problems(cls, decoding: DecodingConfig) -> list[str]:
        """Contradictions in these settings: a sentence for each, which names the keys."""
        return []

    @classmethod
    def adapt(cls, given: Collection[str]) -> dict[str, Any]:
        """Settings that follow from the settings given on the command line."""
        return {}

    def describe(self) -> str:
        """The search in a few words, for the reader of a score."""
        options = {} if self.options is None else self.options.model_dump()
        name = options.pop("kind", self.decoding.method)
        return ", ".join([f"search {name}", *(f"{key} {value}" for key, value in options.items())])

    def refusal(self, given: Collection[str]) -> tuple[str, str] | None:
        """The message and the remedy if a given setting would have no effect; else None."""
        known = [choice("search", name) for name in CHOICES["search"]]
        for other in sorted(known, key=lambda one: one.misuse == Search.misuse):  # those that say more come first
            for name in other.settings:
                if name in given and name not in self.reads:
                    problem, remedy = other.misuse
                    return problem.format(option=option_of(name)), remedy
        return None

    @abstractmethod
    def find(self, sentences: Sentences) -> list[list[SearchResult]]:
        """The results for each sentence: at least one, best first."""

    def choose(self, found: Sequence[SearchResult], decode: Callable[[Sequence[int]], str]) -> list[SearchResult]:
        """Of the results for a sentence, the `n_best` with different texts, best first. decode: ids to text."""
        if self.decoding.n_best == 1:
            return [found[0]]
        return different_texts(found, decode)[: self.decoding.n_best]

    def total(self, scores: Sequence[float]) -> float:
        """The score of a line from those of its sentences. Scores that are log-probabilities add."""
        return sum(scores)


def different_texts(found: Sequence[SearchResult], decode: Callable[[Sequence[int]], str]) -> list[SearchResult]:
    """The first result of each text, in the given order."""
    first: dict[str, SearchResult] = {}
    for result in found:
        first.setdefault(decode(result.ids), result)
    return list(first.values())


def option_of(setting: str) -> str:
    """The command-line option of a setting, such as --top-k for top_k."""
    return f"--{setting.replace('_', '-')}"


def search_name(decoding: DecodingConfig) -> str:
    """The search in a few words, such as `beam 5`."""
    return make_search(decoding).describe()


def make_search(decoding: DecodingConfig) -> Search:
    """The search that a config's `decoding.method` names."""
    cls, options = chosen("search", decoding.method)
    search: Search = cls(decoding, options)
    return search


def settings_in_use(decoding: DecodingConfig) -> dict[str, Any]:
    """The settings of `decoding` that decide what is found, without those that only other searches read."""
    known = {name for one in CHOICES["search"] for name in choice("search", one).settings}
    return decoding.model_dump(exclude={*(known - make_search(decoding).reads), "n_best", "batch_tokens"})
