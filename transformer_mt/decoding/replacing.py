"""Terms in place of the words that a model writes by itself.

A model that has never written a term is in a state after it that it never saw in training, and may end too early.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import regex

from transformer_mt.decoding.forced import links_across
from transformer_mt.decoding.terms import Span, Term
from transformer_mt.decoding.translation import Hypothesis
from transformer_mt.text.casing import Casing
from transformer_mt.text.codec import Segmenter
from transformer_mt.text.script import SPACELESS
from transformer_mt.text.words import words_of_tokens

KEPT = 0.6  # of the words that a translation without terms has beside them, at least this share must be there
_SHORT = 3  # letters of articles and prepositions, which are kept beside a longer word
_AROUND = regex.compile(r"([^\p{L}\p{M}\p{N}]*+).*?((?:['’]s)?[^\p{L}\p{M}\p{N}]*)", regex.DOTALL)  # a word
_JOINED = regex.compile(rf"[\p{{Hangul}}{SPACELESS}]")  # words that have particles, or no spaces around them
Links = Sequence[Collection[int]]  # for each word of a translation, the words of the line that its tokens are linked to


def is_spaced(text: str) -> bool:
    """Whether a text has words that can be replaced: without particles, and with spaces around them."""
    return _JOINED.search(text) is None


def loses_words(text: str, own: str, terms: Sequence[Term]) -> bool:
    """Whether a translation with terms has fewer words beside them than the model's own one, which is without them."""
    beside = len(text.split()) - sum(len(term.target.split()) for term in terms)
    return beside < KEPT * (len(own.split()) - len(terms))


def words_linked(own: Hypothesis, of_source: Sequence[int | None], target: Segmenter) -> Links:
    """For each word of a translation, the words of the line that its tokens are linked to.

    of_source: the word of each source token, as of `words_of_tokens`
    """
    links = [set[int]() for _ in own.text.split()]
    for word, place in zip(words_of_tokens(own.tokens, own.text, target), own.alignment or (), strict=False):
        source = of_source[place] if place < len(of_source) else None
        if word is not None and word < len(links) and source is not None:
            links[word].add(source)
    return links


def with_terms(own: Hypothesis, links: Links, line: str, spans: Sequence[Span], casing: Casing) -> Hypothesis | None:
    """A translation with the terms in place of the words that are linked to theirs; None if one has no clear place.

    spans:  of the terms
    casing: of the translation
    """
    words = own.text.split()
    places = dict[int, Span]()  # of words that are replaced
    for span in spans:
        first = len(line[: span.start].split()) - (span.start > 0 and not line[span.start - 1].isspace())
        of_term = set(range(first, first + len(span.term.source.split())))
        linked = [number for number, some in enumerate(links) if not of_term.isdisjoint(some)]
        is_clear = linked and linked[-1] - linked[0] < len(linked)  # side by side
        linked = [number for number in linked if len(words[number]) > _SHORT] or linked
        if not is_clear or len(linked) > len(of_term) + 1 or not places.keys().isdisjoint(linked):
            return None
        places |= dict.fromkeys(linked, span)
    parts = list[tuple[str, str]]()  # of the model, and as they are written
    for number, word in enumerate(words):
        space, replacing = " " if number else "", places.get(number)
        if replacing is None:
            parts += [(space, space), (word, word)]
            continue
        begins, ends = (places.get(number + step) is not replacing for step in (-1, 1))
        around, target = _AROUND.fullmatch(word), replacing.term.target
        assert around is not None
        if number == 0:
            target = casing.at_start(target, line)
        parts += [(space, space * begins), (word, (around[1] + target) * begins + around[2] * ends)]
    text = "".join(new for _, new in parts)
    return replace(own, text=text, word_alignment=links_across(own.word_alignment or (), ((line, line),), parts))
