"""Terms in place of the words that a model writes by itself, for lines where the search with terms loses other words.

A model that has never written a term is in a state after it that it never saw in training, and may end too early.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import regex

from transformer_mt.decoding.forced import links_across
from transformer_mt.decoding.terms import Span, Term
from transformer_mt.decoding.translation import Hypothesis, Translation
from transformer_mt.text.script import SPACELESS

KEPT = 0.6  # of the words that a translation without terms has beside them, at least this share must be there
_AROUND = regex.compile(r"([^\p{L}\p{M}\p{N}]*+).*?((?:['’]s)?[^\p{L}\p{M}\p{N}]*)", regex.DOTALL)  # a word
_JOINED = regex.compile(rf"[\p{{Hangul}}{SPACELESS}]")  # words that have particles, or no spaces around them


def is_spaced(text: str) -> bool:
    """Whether a text has words that can be replaced: without particles, and with spaces around them."""
    return _JOINED.search(text) is None


def with_terms(own: Translation, line: str, spans: Sequence[Span], keeps_case: bool) -> list[Hypothesis]:
    """The hypotheses of a translation without terms, with the terms in place of the words that are aligned to theirs.

    Those without a place for each term are left out. Word alignments are needed.

    spans:      of the terms
    keeps_case: whether a term at the beginning stays in lower case
    """
    found = [_replaced(one, line, spans, keeps_case) for one in own.n_best]
    return [one for one in found if one is not None]


def loses_words(text: str, replaced: str, terms: Sequence[Term]) -> bool:
    """Whether a translation that was searched with terms has fewer words beside them than one with replaced words."""
    n_terms = sum(len(term.target.split()) for term in terms)
    beside, wanted = (max(0, len(one.split()) - n_terms) for one in (text, replaced))
    return beside < KEPT * wanted


def _replaced(own: Hypothesis, line: str, spans: Sequence[Span], keeps_case: bool) -> Hypothesis | None:
    words, links = own.text.split(), dict(own.word_alignment or ())
    places = dict[int, Span]()  # of words that are replaced
    if not is_spaced(own.text):
        return None
    for span in spans:
        first = len(line[: span.start].split()) - (span.start > 0 and not line[span.start - 1].isspace())
        of_term = range(first, first + len(span.term.source.split()))
        aligned = sorted(links[word] for word in of_term if links.get(word, len(words)) < len(words))
        if not aligned or aligned[-1] - aligned[0] >= len(aligned) or not places.keys().isdisjoint(aligned):
            return None
        places |= dict.fromkeys(aligned, span)
    parts = list[tuple[str, str]]()  # of the model, and as they are written
    for number, word in enumerate(words):
        space, replacing = " " if number else "", places.get(number)
        if replacing is None:
            parts += [(space, space), (word, word)]
            continue
        begins, ends = (places.get(number + step) is not replacing for step in (-1, 1))
        around, target = _AROUND.fullmatch(word), replacing.term.target
        assert around is not None
        if number == 0 and not keeps_case and target.split(" ")[0].islower():
            target = target[:1].upper() + target[1:]
        parts += [(space, space * begins), (word, (around[1] + target) * begins + around[2] * ends)]
    text = "".join(new for _, new in parts)
    return replace(own, text=text, word_alignment=links_across(own.word_alignment or (), ((line, line),), parts))
