"""What a model writes by itself, for lines with terms: whether it has their copies, and terms in place of its words.

A model that has never written a term is in a state after it that it never saw in training, and may end too early. One
that was trained with placeholders and numbers writes them best where it is free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import regex

from transformer_mt.decoding.forced import links_across
from transformer_mt.decoding.terms import JOINING, Span, Term
from transformer_mt.decoding.translation import Hypothesis, Translation
from transformer_mt.text.codec import Segmenter
from transformer_mt.text.copies import NUMBER, UNBROKEN
from transformer_mt.text.script import SPACELESS
from transformer_mt.text.words import words_of_tokens

KEPT = 0.6  # of the words that a translation without terms has beside them, at least this share must be there
_SHORT = 3  # letters of articles and prepositions, which are kept beside a longer word
_AROUND = regex.compile(r"([^\p{L}\p{M}\p{N}]*+).*?((?:['’]s)?[^\p{L}\p{M}\p{N}]*)", regex.DOTALL)  # a word
_JOINED = regex.compile(rf"[\p{{Hangul}}{SPACELESS}]")  # words that have particles, or no spaces around them
# Beside a copy there is no letter or digit, and no number goes on. Korean particles may follow.
_FREE = rf"(?<![[\p{{L}}\p{{M}}\p{{N}}_]--[\p{{sc=Hangul}}{SPACELESS}]])(?<!\d[.,:/'’-])"
_ENDS = rf"(?!{JOINING.pattern}|[.,:/'’-]\d)"
_PLACED = "\0"  # in place of a copy that was found
Links = Sequence[Collection[int]]  # for each word of a translation, the words of the line that its tokens are linked to


def is_spaced(text: str) -> bool:
    """Whether a text has words that can be replaced: without particles, and with spaces around them."""
    return _JOINED.search(text) is None


def has_copies(own: Translation, copies: Sequence[str]) -> bool:
    """Whether all hypotheses of a translation have each copy as often as it is listed, and nothing else of its kind."""
    return all(_has_copies(one.text, copies) for one in own.n_best)


def _has_copies(text: str, copies: Sequence[str]) -> bool:
    """The longest copies come first: a number or a placeholder may be a part of a longer one."""
    for copy, times in sorted(Counter(copies).items(), key=lambda item: -len(item[0])):
        is_number = NUMBER.fullmatch(copy) is not None
        sign = NUMBER if is_number else regex.compile(f"{_FREE}{regex.escape(copy)}{_ENDS}", regex.V1)
        found = [match.span() for match in sign.finditer(text) if match.group() == copy]
        if len(found) != times:
            return False
        ends, starts = [0, *(end for _, end in found)], [*(start for start, _ in found), len(text)]
        text = _PLACED.join(text[end:start] for end, start in zip(ends, starts, strict=True))
    return UNBROKEN.search(text) is None


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


def with_terms(
    own: Hypothesis, links: Links, line: str, spans: Sequence[Span], keeps_case: bool = False
) -> Hypothesis | None:
    """A translation with the terms in place of the words that are linked to theirs; None if one has no clear place.

    spans:      of the terms
    keeps_case: whether a term at the beginning stays in lower case
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
        if number == 0 and not keeps_case and target.split(" ")[0].islower():
            target = target[:1].upper() + target[1:]
        parts += [(space, space * begins), (word, (around[1] + target) * begins + around[2] * ends)]
    text = "".join(new for _, new in parts)
    return replace(own, text=text, word_alignment=links_across(own.word_alignment or (), ((line, line),), parts))
