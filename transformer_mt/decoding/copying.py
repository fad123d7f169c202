"""Copies: what a translation must have letter by letter, and whether what a model writes by itself has it.

A model that was trained with placeholders and numbers writes them best where it is free; others break them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import regex

from transformer_mt.decoding.terms import JOINING, Span, Term
from transformer_mt.decoding.translation import Hypothesis, Translation, shown
from transformer_mt.text.copies import NUMBER, UNBROKEN, may_have_unbroken
from transformer_mt.text.script import SPACELESS

# Beside a copy there is no letter or digit, and no number goes on. Korean particles may follow.
_FREE = rf"(?<![[\p{{L}}\p{{M}}\p{{N}}_]--[\p{{sc=Hangul}}{SPACELESS}]])(?<!\d[.,:/'’-])"
_ENDS = rf"(?!{JOINING.pattern}|[.,:/'’-]\d)"
_KINDS = {  # a copy is of the first kind that it matches
    "address": regex.compile(r"https?:|ftp:|www\."),
    "placeholder": regex.compile(r"[%${<]"),
    "e-mail address": regex.compile(r".*@"),
    "number": regex.compile(""),
}
_PLACED = "\0"  # in place of a copy that was found


def unbroken(line: str) -> list[Span]:
    """The addresses and placeholders of a line, as terms that are copied."""
    if not may_have_unbroken(line):
        return []
    return [Span(found.start(), Term(found[0], found[0])) for found in UNBROKEN.finditer(line)]


def notes_of_copies(line: str, translation: str) -> list[str]:
    """What a user must know of a translation whose addresses and placeholders are not those of its line."""
    if not may_have_unbroken(line) and not may_have_unbroken(translation):
        return []
    given, written = (Counter(span.term.source for span in unbroken(text)) for text in (line, translation))
    lost, new = (list(some.elements()) for some in (given - written, written - given))
    notes = [f"the translation lacks {shown(lost)}"] if lost else []
    return [*notes, f"the translation has {shown(new)}, which the line does not have"] if new else notes


def with_copies(own: Translation, copies: Sequence[str], prefix: str = "") -> Translation | None:
    """The translation, if all its hypotheses have each copy as often as it is listed, and nothing else of its kind.

    A misspelled address or placeholder is put right: the translation lacks one, and has one of the same kind that is
    not listed. None if a hypothesis has no clear place for a copy, or begins with a prefix.
    """
    if all(_has_copies(one.text, copies) for one in own.n_best):
        return own
    found = dict[str, Hypothesis]()  # by text
    for one in own.n_best:
        text = None if prefix.strip() else _repaired(one.text, copies)
        if text is None or not _has_copies(text, copies):
            return None
        found.setdefault(text, replace(one, text=text))
    return replace(own, n_best=tuple(found.values()))


def _repaired(text: str, copies: Sequence[str]) -> str | None:
    given, written = Counter(copies), Counter(span.term.source for span in unbroken(text))
    missing, others = _by_kind(given - written), _by_kind(written - given)
    for kind, right in missing.items():
        wrong = others.get(kind, [])
        if len(right) != 1 or len(wrong) != 1 or len(right[0].split()) != len(wrong[0].split()):
            return None
        start = next(span.start for span in unbroken(text) if span.term.source == wrong[0])
        text = text[:start] + right[0] + text[start + len(wrong[0]) :]
    return text


def _by_kind(copies: Counter[str]) -> dict[str, list[str]]:
    found = dict[str, list[str]]()
    for copy in copies.elements():
        found.setdefault(next(kind for kind, sign in _KINDS.items() if sign.match(copy)), []).append(copy)
    return found


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
