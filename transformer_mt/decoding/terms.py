"""Terms: spans of a line whose translation is given. This file knows text; `term_reader` makes ids of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

import regex

from transformer_mt.decoding.given import checked_text
from transformer_mt.errors import TmtError, named
from transformer_mt.text.script import SPACELESS

_EXAMPLE = 'For example:  [Term("Hund", "hound")]'
# What would change a word, a number or an address if it followed directly. Korean particles do follow directly.
JOINING = regex.compile(
    rf"[\p{{L}}\p{{M}}\p{{N}}_/@#&=~+\\\uFFFD--[\p{{sc=Hangul}}{SPACELESS}]]",
    regex.V1,
)
WORD = regex.compile(r"[\p{L}\p{M}\p{N}_]")
OPENING = "([{<\"'“„«‘‚`"
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">", '"': '"', "'": "'", "`": "`"}  # what may close an opening sign
_ALL_CLOSING = _CLOSING | {"“": '”"', "„": '“”"', "«": "»", "‘": "’", "‚": "‘’"}
_LETTERS = regex.compile(r"\p{L}")
_BESIDE = regex.compile(r"[^\p{L}\p{M}\p{N}()\[\]{}<>\"'`“”„«»‘’‚]*")  # between copies that stand side by side
_INSIDE = regex.compile(r"\S\.[\p{L}\p{N}]|[\p{L}\p{N}]\.\S|\d,\d")  # as in {name}.txt and 1,5
_NEW_SENTENCE = regex.compile(r"[.!?…。！？]\s")
_ATTACHED = regex.compile(r"[^\s\p{L}\p{M}\p{N}]*")


class Term(NamedTuple):
    """A span of a line, and the text that the translation must contain exactly once for it.

    source: text of the span, as it is in the line
    target: its translation; equal to `source` for a copy, which is then byte for byte the same
    """

    source: str
    target: str

    @property
    def is_copy(self) -> bool:
        return self.source == self.target


class Span(NamedTuple):
    """A term at its place in a line."""

    start: int
    term: Term

    @property
    def end(self) -> int:
        return self.start + len(self.term.source)


LineTerms = Sequence[Term] | Sequence[Span]  # those of a line; a glossary knows their places


def spans_of_terms(line: str, terms: LineTerms) -> list[Span]:
    """Where each term is in the line, from left to right: as words, if there is a place for all of them.

    Raises TmtError if a term is empty, or not in the line after those before it.
    """
    if not isinstance(terms, Sequence):
        raise TmtError(f"{named(terms)} is no list of terms", place="terms", remedy=_EXAMPLE)
    if all(isinstance(one, Span) for one in terms):
        return cast("list[Span]", list(terms))
    terms = cast("Sequence[Term]", terms)
    for term in terms:
        if not isinstance(term, Term):
            raise TmtError(f"{term!r} is not a Term", place="terms", remedy=_EXAMPLE)
    latest, ends = list[int](), len(line)  # where each term can be, so that those after it have a place
    for term in reversed(terms):
        ends = line.rfind(checked_text(term.source, "terms"), 0, max(ends, 0))
        latest.append(ends)
    spans: list[Span] = []
    for term, last in zip(terms, reversed(latest), strict=True):
        begin, end = spans[-1].end if spans else 0, last + len(term.source)
        start = find(line, term.source, begin, end)
        if start < 0 or not term.source or not checked_text(term.target, "terms").strip():
            raise TmtError(
                f"the term '{term.source}' is not in the line, or its translation is empty",
                remedy="Give the terms of a line as they are written there, in their order, without overlap.",
            )
        spans.append(Span(start, term))
    return spans


def find(line: str, text: str, begin: int = 0, end: int | None = None, whole: bool = False) -> int:
    """Where a text first occurs as words, or else anywhere unless it must be whole words; -1 if it does not occur.

    begin, end: of the part of the line that is searched
    """
    start = line.find(text, begin, end)
    while start >= 0:
        after = start + len(text)
        if not WORD.match(line[max(start - 1, 0) : start]) and not JOINING.match(line[after : after + 1]):
            return start
        start = line.find(text, start + 1, end)
    return -1 if whole else line.find(text, begin, end)


def between(line: str, spans: Sequence[Span]) -> list[str]:
    """The texts before, between and after the spans."""
    ends, starts = [0, *(span.end for span in spans)], [*(span.start for span in spans), len(line)]
    return [line[end:start] for end, start in zip(ends, starts, strict=True)]


def has_words(texts: Sequence[str]) -> bool:
    return any(_LETTERS.search(text) is not None for text in texts)


def gathered(line: str, spans: Sequence[Span], unknown: Callable[[Term], bool]) -> list[Span]:
    """The spans, with unknown copies that stand side by side as one copy, and with all that touches them.

    `{a}/{b}`, `{a}, {b}`, `({a})` and `v{a}_1` are one copy each, so that the model need not place their parts.

    unknown: whether a copy has a stand-in; one without is joined only to an unknown copy that it touches
    """
    return _joined(line, _grown(line, _joined(line, _grown(line, spans, unknown), unknown), unknown), unknown)


def _joined(line: str, spans: Sequence[Span], unknown: Callable[[Term], bool]) -> list[Span]:
    joined: list[Span] = []
    for span in spans:
        if joined and joined[-1].term.is_copy and span.term.is_copy:
            gap = line[joined[-1].end : span.start]
            both = unknown(joined[-1].term) + unknown(span.term)
            beside = _BESIDE.fullmatch(gap) is not None and _NEW_SENTENCE.search(gap) is None
            if beside and (both == 2 or (both == 1 and not regex.search(r"\s", gap))):
                span = _copy(line, joined.pop().start, span.end)
        joined.append(span)
    return joined


def _grown(line: str, spans: Sequence[Span], unknown: Callable[[Term], bool]) -> list[Span]:
    grown: list[Span] = []
    for span, following in zip(spans, [*(other.start for other in spans[1:]), len(line)], strict=True):
        start, end, first = span.start, span.end, grown[-1].end if grown else 0
        while span.term.is_copy and unknown(span.term):
            before, after = line[max(start - 1, first) : start], line[end : min(end + 1, following)]
            closes = before != "" and after != "" and after in _CLOSING.get(before, "")
            if JOINING.match(before) or closes or (start - 1 > first and _INSIDE.match(line, start - 2)):
                start -= 1
            if JOINING.match(after) or closes or (end + 1 < following and _INSIDE.match(line, end - 1)):
                end += 1
            if (start, end) == (span.start, span.end):
                break
            span = _copy(line, start, end)
        grown.append(span)
    return grown


def _copy(line: str, start: int, end: int) -> Span:
    return Span(start, Term(line[start:end], line[start:end]))


def pieces(line: str, spans: Sequence[Span], cuts: Sequence[Span]) -> Iterator[tuple[int, int, bool]]:
    """A line in pieces: start, end, and whether it has words; else it has terms and punctuation only.

    cuts: those of the spans that stand between the pieces with words
    """
    begun = done = 0  # of the piece without words
    for cut in [*cuts, None]:
        start = len(line) if cut is None else cut.start
        others = [span for span in spans if done <= span.start and span.end <= start]
        free = between(line[:start], [Span(0, Term(line[:done], "")), *others])[1:]
        if has_words(free):
            first, last = done, start
            if done:
                first = done + len(_ATTACHED.match(free[0])[0])  # type: ignore[index]
            if cut is not None:
                last = start - len(_ATTACHED.match(free[-1][::-1])[0])  # type: ignore[index]
            if first > begun:
                yield begun, first, False
            yield first, last, True
            begun = last
        done = start if cut is None else cut.end
    if done > begun:
        yield begun, done, False


def opens(text: str) -> bool:
    """Whether a text ends with a sign that opens a quotation or a bracket."""
    last = text[-1:]
    return last != "" and last in OPENING and (last not in _ALL_CLOSING[last] or text.count(last) % 2 == 1)


def reopened(text: str, sign: str, opener: str) -> str:
    """Put what opened a quotation or bracket before a sign that the text closes again but does not open."""
    before, _, after = text.partition(sign)
    closer = after[:1]
    if not closer or closer not in _ALL_CLOSING[opener] or before.endswith(opener) or opens(before):
        return text
    is_open = before.count(opener) % 2 == 1 if closer == opener else before.count(opener) > before.count(closer)
    return text if is_open else f"{before}{opener}{sign}{after}"
