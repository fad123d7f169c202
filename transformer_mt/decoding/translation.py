"""A line on its way through an engine: as it was given, as tokens and ids, and as its translation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformer_mt.decoding.forced import Link
from transformer_mt.decoding.term_reader import BoundLine
from transformer_mt.errors import number_of


@dataclass(frozen=True, repr=False)
class Hypothesis:
    """One translation. The last three are None unless `align` is True.

    score:          log-probability with the penalties of the search, in nats; with minimum Bayes risk, the similarity
    alignment:      for each token the index of its source token
    token_scores:   log-probability of each token, in nats, and last that of the end token, unless the translation was
                    stopped before it; their sum is the log-probability of the translation without penalties
    word_alignment: (source word, word of the translation), counted from 0 in the texts split at white space
    """

    text: str
    tokens: tuple[str, ...]
    score: float
    alignment: tuple[int, ...] | None = None
    token_scores: tuple[float, ...] | None = None
    word_alignment: tuple[Link, ...] | None = None

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Hypothesis({self.text!r}, score={self.score:.4f})"


@dataclass(frozen=True, repr=False)
class Translation:
    """The result for one line.

    n_best: at least one hypothesis, best first, with different texts
    notes:  what a user must know: unknown words, a source that was cut, a translation that was stopped
    is_cut: whether the source was too long, so that its end was not read
    """

    source_tokens: tuple[str, ...]
    n_best: tuple[Hypothesis, ...]
    notes: tuple[str, ...] = ()
    is_cut: bool = False

    @property
    def text(self) -> str:
        return self.n_best[0].text

    @property
    def score(self) -> float:
        return self.n_best[0].score

    @property
    def tokens(self) -> tuple[str, ...]:
        return self.n_best[0].tokens

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        end = f", notes={list(self.notes)}" if self.notes else ""
        return f"Translation({self.text!r}, score={self.score:.4f}{end})"


@dataclass(frozen=True)
class Source:
    """A line as tokens and ids, ready for the search. prefix: ids that its translation must begin with."""

    line: str
    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    prefix: tuple[int, ...]
    notes: tuple[str, ...]
    is_cut: bool
    bound: BoundLine | None = None  # its terms


@dataclass(frozen=True)
class Target:
    """A given translation as tokens, and as ids with the end token."""

    line: str
    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    notes: tuple[str, ...]
    is_cut: bool


_MOST_SHOWN, _LONGEST_SHOWN = 5, 40  # words in a note, and characters of a word


def note_of_unknown(words: Sequence[str]) -> str:
    """The number of unknown words, and the first few."""
    return f"{number_of(len(words), 'unknown word')}: {shown(words)}"


def shown(words: Sequence[str]) -> str:
    """The first few words, cut if long, without characters that control a terminal."""
    first = []
    for word in words[:_MOST_SHOWN]:
        word = word if len(word) <= _LONGEST_SHOWN else f"{word[: _LONGEST_SHOWN - 1]}…"
        first.append("".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in word))
    return ", ".join(dict.fromkeys(first)) + ", ..." * (len(words) > _MOST_SHOWN)


def without_search(source: Source) -> Translation:
    """The translation of white space, or of a line of terms alone."""
    text = source.bound.answer or "" if source.bound is not None else ""
    return Translation((), (Hypothesis(text, (), 0.0, (), (), ()),), source.notes)
