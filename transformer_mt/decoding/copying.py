"""Copies: what a translation must have letter by letter, and whether what a model writes by itself has it.

A model that was trained with placeholders and numbers writes them best where it is free; others break them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import regex

from transformer_mt.decoding.terms import JOINING, Span, Term, between, has_words
from transformer_mt.decoding.translation import Hypothesis, Translation, shown
from transformer_mt.text.copies import NUMBER, UNBROKEN, choices, may_have_unbroken, name_of_choice
from transformer_mt.text.entities import name_of_tag, tags
from transformer_mt.text.script import SPACELESS

# Beside other copies there is no letter or digit, and no number goes on. Korean particles may follow.
_FREE = rf"(?<![[\p{{L}}\p{{M}}\p{{N}}_]--[\p{{sc=Hangul}}{SPACELESS}]])(?<!\d[.,:/'’-])"
_ENDS = rf"(?!{JOINING.pattern}|[.,:/'’-]\d)"
_KINDS = {  # a copy is of the first kind that it matches
    "address": regex.compile(r"https?:|ftp:|www\."),
    "placeholder": regex.compile(r"[%${<]"),
    "e-mail address": regex.compile(r".*@"),
    "number": regex.compile(""),
}
_IN_ORDER = regex.compile(r"%(?![({%]|\d+\$)")  # a program fills these in their order
LACKS = "the translation lacks"
_MARKUP = re.compile(r"<[/\w!]|\{[\w.]+, (?:plural|select)")  # in a note
NOT_IN_LINE = ", which the line does not have"
_PLACED = "\0"  # in place of a copy that was found
_LINE_BREAK = re.compile(r"\\[nr]")  # as programs write it
_LONGEST = 200  # characters between tags that are not cut: more are a paragraph


def unbroken(line: str) -> list[Span]:
    """The addresses and placeholders of a line, as terms that are copied."""
    if not may_have_unbroken(line):
        return []
    return [Span(found.start(), Term(found[0], found[0])) for found in UNBROKEN.finditer(line)]


def _unbroken_texts(text: str) -> list[str]:
    return [span.term.source for span in unbroken(text)]


def is_only_copies(line: str) -> bool:
    """Whether a line has addresses or placeholders, and no word beside them: it is its own translation."""
    copies = unbroken(line)
    return bool(copies) and not has_words(between(line, copies))


def notes_of_copies(line: str, translation: str) -> list[str]:
    """What a user must know of a translation whose addresses and placeholders are not those of its line."""
    return _notes(_unbroken_texts(line), _unbroken_texts(translation), lambda copy: "%" * bool(_IN_ORDER.match(copy)))


def notes_of_markup(line: str, translation: str) -> list[str]:
    """What a user must know of a translation whose tags and choices between texts are not those of its line."""
    return _notes(_markup(line), _markup(translation), lambda sign: sign.strip("</>") * sign.startswith("<"))


def lacks_markup(notes: Sequence[str]) -> bool:
    """Whether notes say that a translation lacks a tag, or a choice between texts."""
    return any(note.startswith(LACKS) and _MARKUP.search(note) for note in notes)


def _markup(text: str) -> list[str]:
    return [*map(name_of_tag, tags(text)), *map(name_of_choice, choices(text))]


def _notes(given: Sequence[str], written: Sequence[str], ordered: Callable[[str], str]) -> list[str]:
    """ordered: names the group in which a sign must stay in its place; "": none"""
    notes = list[str]()
    if given == written:
        return notes
    lost, new = Counter(given) - Counter(written), Counter(written) - Counter(given)
    if lost:
        notes.append(f"{LACKS} {shown([*lost.elements()])}")
    if new:
        notes.append(f"the translation has {shown([*new.elements()])}{NOT_IN_LINE}")
    in_order = [sign for sign in written if ordered(sign)]
    if not notes and _grouped(in_order, ordered) != _grouped(filter(ordered, given), ordered):
        notes.append(f"the translation has another order: {shown(in_order)}")
    return notes


def uncut(line: str) -> Iterator[tuple[int, int]]:
    """Spans of a line (first character, end) that stay in one sentence.

    These are addresses, placeholders, choices between texts, short texts between tags, and what touches an empty tag or
    a line break; but a long text is cut at one of these.
    """
    yield from ((span.start, span.end) for span in unbroken(line))
    yield from (choice.span() for choice in choices(line))
    alone = [*_LINE_BREAK.finditer(line)] if "\\" in line else []
    opened = dict[str, list[re.Match[str]]]()  # by name
    for tag in tags(line):
        same = opened.setdefault(tag["name"].lower(), [])
        if not tag["ends"]:
            (alone if tag[0].endswith("/>") else same).append(tag)
        elif same and tag.end() - (first := same.pop().start()) <= _LONGEST:
            yield first, tag.end()
    last = 0
    for start, end in sorted(one.span() for one in (*alone, *chain(*opened.values()))):
        if start - last <= _LONGEST:
            yield start - 1, end + 1
        else:
            last = start  # the line is cut here if it can be


def faults(translation: Translation, copies: Sequence[str]) -> tuple[int, int]:
    """How many copies a translation lacks, and how many others it has. Signs that touch one make another of it."""
    text = translation.text
    if _has_copies(text, copies):
        return 0, 0
    given, written = Counter(copies), Counter(_unbroken_texts(text))
    lost = sum(max(0, times - text.count(copy)) for copy, times in given.items())
    return lost, max(0 if lost else 1, (written - given).total())


def with_copies(own: Translation, copies: Sequence[str], prefix: str = "") -> Translation | None:
    """The hypotheses that have each copy as often as it is listed, and nothing else of its kind; None if none has.

    A misspelled address or placeholder is put right: a hypothesis lacks one, and has one of the same kind that is not
    listed. Nothing is changed after a prefix, which may have such a one.
    """
    found = dict[str, Hypothesis]()  # by text
    for one in own.n_best:
        text = one.text if prefix.strip() else _repaired(one.text, copies)
        if _has_copies(text, copies):
            found.setdefault(text, replace(one, text=text))
    return replace(own, n_best=tuple(found.values())) if found else None


def _repaired(text: str, copies: Sequence[str]) -> str:
    """A text with copies in place of what is misspelled, if it is clear which is which. What is right stays."""
    written = _unbroken_texts(text)
    missing = _grouped((Counter(copies) - Counter(written)).elements(), _kind)
    for kind, wrong in _grouped((Counter(written) - Counter(copies)).elements(), _kind).items():
        right = missing.get(kind, [])
        if (len(right), len(wrong)) != (1, 1) or len(right[0].split()) != len(wrong[0].split()):
            continue
        places = [span for span in unbroken(text) if _kind(span.term.source) == kind]
        if written.count(wrong[0]) > 1:  # it is one of the copies too, so it must stand where the line has the other
            of_line = [copy for copy in copies if _kind(copy) == kind]
            if len(of_line) != len(places):
                continue
            places = [place for place, copy in zip(places, of_line, strict=True) if copy == right[0]]
        wrong_places = [place for place in places if place.term.source == wrong[0]]
        if len(wrong_places) == 1:
            text = text[: wrong_places[0].start] + right[0] + text[wrong_places[0].end :]
    return text


def _grouped(copies: Iterable[str], group: Callable[[str], str]) -> dict[str, list[str]]:
    found = dict[str, list[str]]()
    for copy in copies:
        found.setdefault(group(copy), []).append(copy)
    return found


def _kind(copy: str) -> str:
    return next(kind for kind, sign in _KINDS.items() if sign.match(copy))


def _has_copies(text: str, copies: Sequence[str]) -> bool:
    """The longest copies come first: a number may be a part of another copy."""
    wanted = Counter(copies)
    of_line = Counter({copy: times for copy, times in wanted.items() if UNBROKEN.fullmatch(copy)})
    if Counter(_unbroken_texts(text)) != of_line:
        return False
    text = UNBROKEN.sub(_PLACED, text) if of_line else text
    for copy, times in sorted((wanted - of_line).items(), key=lambda item: -len(item[0])):
        is_number = NUMBER.fullmatch(copy) is not None
        sign = NUMBER if is_number else regex.compile(f"{_FREE}{regex.escape(copy)}{_ENDS}", regex.V1)
        found = [match.span() for match in sign.finditer(text) if match.group() == copy]
        if len(found) != times:
            return False
        ends, starts = [0, *(end for _, end in found)], [*(start for start, _ in found), len(text)]
        text = _PLACED.join(text[end:start] for end, start in zip(ends, starts, strict=True))
    return True
