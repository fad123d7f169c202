"""Copies: what a translation must have letter by letter, and whether what a model writes by itself has it.

A model that was trained with placeholders and numbers writes them best where it is free; others break them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import regex

from transformer_mt.decoding.terms import JOINING, Span, Term
from transformer_mt.decoding.translation import Translation, shown
from transformer_mt.text.copies import NUMBER, UNBROKEN, may_have_unbroken
from transformer_mt.text.script import SPACELESS

# Beside a copy there is no letter or digit, and no number goes on. Korean particles may follow.
_FREE = rf"(?<![[\p{{L}}\p{{M}}\p{{N}}_]--[\p{{sc=Hangul}}{SPACELESS}]])(?<!\d[.,:/'’-])"
_ENDS = rf"(?!{JOINING.pattern}|[.,:/'’-]\d)"
_PLACED = "\0"  # in place of a copy that was found


def unbroken(line: str) -> list[Span]:
    """The addresses and placeholders of a line, as terms that are copied."""
    if not may_have_unbroken(line):
        return []
    return [Span(found.start(), Term(found[0], found[0])) for found in UNBROKEN.finditer(line)]


def notes_of_copies(line: str, translation: str) -> Iterator[str]:
    """What a user must know of a translation whose addresses and placeholders are not those of its line."""
    given, written = (Counter(span.term.source for span in unbroken(text)) for text in (line, translation))
    if lost := given - written:
        yield f"the translation lacks {shown(list(lost.elements()))}"
    if new := written - given:
        yield f"the translation has {shown(list(new.elements()))}, which the line does not have"


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
