"""Lines with terms on their way through the search: what the model reads and must write, and the text from its ids.

A term that the target vocabulary can spell is a constraint of the search. Other texts, such as addresses, the model
would break: it reads and writes a stand-in for them, a short word that both vocabularies know, and the text takes the
place of the stand-in afterwards. `constraints` knows the search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple

import regex

from transformer_mt.config.schema import Config
from transformer_mt.decoding.request import Constraint
from transformer_mt.decoding.term_tokens import SPACE, UNKNOWN, TermTokens
from transformer_mt.decoding.terms import (
    JOINING,
    OPENING,
    WORD,
    LineTerms,
    Span,
    Term,
    between,
    find,
    gathered,
    has_words,
    opens,
    pieces,
    reopened,
    spans_of_terms,
)
from transformer_mt.text.cleaning import clean_text
from transformer_mt.text.codec import Codec
from transformer_mt.text.vocabulary import MARKS, UNK

_FIRST_SIGN = 0x17000  # letters without case that no corpus contains (Tangut): they mark places while text is written
_JOINT = chr(_FIRST_SIGN - 1)  # marks a space between what the model wrote that the user does not see


class Required(NamedTuple):
    """A constraint, and the texts that its occurrences stand for, in the order of the line.

    copies:   whether they are copies, which are never changed, even at the start of a sentence
    openers:  the characters before the spans of the line; "" without one
    stand_in: what the model reads and writes for them; "" if it does so with their own tokens
    """

    constraint: Constraint
    texts: tuple[str, ...]
    copies: bool
    openers: tuple[str, ...]
    stand_in: str = ""


class Piece(NamedTuple):
    """A part of a line that is translated alone, with the beginning of its translation and its terms."""

    line: str
    prefix: str
    terms: LineTerms


@dataclass(frozen=True)
class BoundLine:
    """A line with terms, as the model reads it, and what its translation must contain.

    parts:  the line part by part, as the model reads it and as it was given
    prefix: what the translation must begin with, as the model writes it
    answer: the translation, if nothing but terms is in the line; else None
    pieces: the same line without any stand-in; empty if it has none
    is_ambiguous: whether the prefix has what could be a stand-in, so that only the pieces can be translated
    """

    parts: tuple[tuple[str, str], ...]
    required: tuple[Required, ...] = ()
    prefix: str = ""
    answer: str | None = None
    pieces: tuple[Piece, ...] = ()
    is_ambiguous: bool = False

    @property
    def line(self) -> str:
        return "".join(read for read, _ in self.parts)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        return tuple(one.constraint for one in self.required)

    @property
    def replaced(self) -> list[str]:
        """The texts that have stand-ins."""
        return [text for one in self.required if one.stand_in for text in one.texts]

    def restored(self, word: str) -> str:
        """A word of the line with the text that its stand-in is read for."""
        for one in self.required:
            word = word.replace(one.stand_in, one.texts[0]) if one.stand_in else word
        return word

    def shows_stand_in(self, text: str) -> bool:
        folded = text.casefold()
        return any(one.stand_in.casefold() in folded for one in self.required if one.stand_in)


class Written(NamedTuple):
    """The text of a translation.

    parts:   part by part, as the model wrote it and as the user reads it
    missing: texts that it lacks
    correct: whether it has each copy, and no stand-in elsewhere
    """

    parts: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]
    correct: bool

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.parts)


class _Place(NamedTuple):
    """A span of the ids of a translation, and the text that takes its place."""

    start: int
    end: int
    text: str
    opener: str
    owner: Required


class TermReader:
    """Turns lines with terms into constraints, and the ids of a translation into text with these terms."""

    def __init__(self, config: Config, source: Codec, target: Codec, max_length: int) -> None:
        """max_length: of a source, with tags and end token"""
        self.config, self.source, self.target, self.max_length = config, source, target, max_length
        self.tokens = TermTokens(config, source, target)

    def read(self, line: str, terms: LineTerms, prefix: str = "") -> BoundLine:
        """prefix: the beginning of the translation; what it has already need not be written again.

        Raises TmtError if a term is empty, or not in the line after those before it.
        """
        spans = spans_of_terms(line, terms)
        terms, texts = [span.term for span in spans], between(line, spans)
        if not prefix.strip() and not has_words(texts):
            answer = chain.from_iterable(zip(texts, [*(term.target for term in terms), ""], strict=True))
            return BoundLine(((line, line),), answer="".join(answer).strip())
        patterns = {term: self.tokens.own(term) for term in dict.fromkeys(terms)}
        in_prefix = any(term.is_copy and find(prefix, term.target, whole=True) >= 0 for term in terms)
        if not in_prefix:
            spans = gathered(line, spans, lambda term: patterns.get(term) is None)
        own = {term: one for _, term in spans if (one := patterns.get(term)) is not None}
        used = {token for one in own.values() for ids in one.patterns for token in ids}
        others = [prefix, *between(line, spans), *chain.from_iterable(own)]
        for term in patterns.keys() - own.keys():  # texts that the prefix has get the stand-in there
            others[0] = others[0].replace(term.target, " ")
        stand_ins: dict[Term, str] = {}
        for term in dict.fromkeys(term for _, term in spans if term not in own):
            stand_ins[term], own[term] = self.tokens.stand_in(others, used)
            others.append(stand_ins[term])
            used |= {token for ids in own[term].patterns for token in ids}
        if stand_ins and not any(regex.search(r"\p{N}", text) for text in texts):  # all its numbers are terms
            first = next(iter(stand_ins))
            own[first] = own[first]._replace(avoided=(*own[first].avoided, *self.tokens.digits))
        parts = _read_parts(line, spans, stand_ins)
        ends = list(accumulate(len(read) for read, _ in parts))
        read_line = "".join(read for read, _ in parts)
        most = min(self._n_tokens(read_line), self.max_length - 1 - len(self.config.data.request_tags))
        bounds = zip(ends[::2], ends[1::2], strict=False)  # of the terms, between which other text stands
        places = [self._places(read_line, start, end, most) for start, end in bounds]
        required = _required(line, spans, own, places, stand_ins)
        read_prefix = _with_stand_ins(prefix, required)
        required = tuple(self._still_required(required, read_prefix))
        cut = tuple(_pieces(line, spans, stand_ins, prefix)) if stand_ins else ()
        is_ambiguous = UNKNOWN in stand_ins.values() and UNK in self._ids_of(others[0])
        return BoundLine(tuple(parts), required, read_prefix, None, cut, is_ambiguous)

    def write(self, bound: BoundLine, ids: Sequence[int], unknown: Sequence[str] = ()) -> Written:
        """The text of a translation with the terms in their places.

        unknown: words to write for the ids UNK, as in `Codec.decode`
        """
        places, missing = _find(bound.required, ids)
        words = iter([MARKS[UNK] if bound.shows_stand_in(word) else word for word in unknown])
        filled, written, end = list[int](), list[str](), 0
        for number, (start, stop) in enumerate([*((place.start, place.end) for place in places), (len(ids), len(ids))]):
            for token in ids[end:start]:
                filled.append(token)
                if token == UNK:
                    written.append(next(words, MARKS[UNK]))
            for token in ids[start:stop]:
                if token == UNK:
                    next(words, "")
            if number < len(places):
                spaced = ids[start] == UNK or self.target.vocabulary.tokens[ids[start]].startswith(SPACE)
                filled.append(UNK)
                written.append(f"{SPACE if spaced else ''}{chr(_FIRST_SIGN + number)}")
            end = stop
        text = self.target.decode(filled, written)
        for number, place in enumerate(places):
            text = _placed(text, chr(_FIRST_SIGN + number), place.opener)
        parts, outside = list[tuple[str, str]](), ""
        for part in regex.split(f"([{_JOINT}-{chr(_FIRST_SIGN + len(places))}])", text):
            number = ord(part) - _FIRST_SIGN if len(part) == 1 else -1
            if part == _JOINT:
                parts.append((" ", ""))
            elif 0 <= number < len(places):
                place = places[number]
                starts = not any(before for before, _ in parts)
                final = self._capitalised(place, bound.line) if starts else place.text
                parts.append((self.target.decode(ids[place.start : place.end]) or "-", final))
            else:
                parts.append((part, part))
                outside += f"{part}\n"
        lacks = any(one.stand_in or one.copies for one, _ in missing)
        return Written(
            tuple(parts), tuple(text for _, text in missing), not lacks and not bound.shows_stand_in(outside)
        )

    def _places(self, line: str, start: int, end: int, most: int) -> tuple[int, ...]:
        """The places of the tokens of a span, as exactly as the tokenizer of its beginning shows.

        most: tokens of the line that the model reads; a beginning may have more tokens than the whole
        """
        before, until = (self._n_tokens(line[:place]) for place in (start, end))
        n_tags, last = len(self.config.data.request_tags), max(1, min(until, most))  # tags stand before the sentence
        return tuple(range(n_tags + min(before, last - 1), n_tags + last))

    def _n_tokens(self, line: str) -> int:
        rules = self.config.data.cleaning, self.config.data.one_direction.source
        return len(self.source.segmenter.tokenize(clean_text(line, *rules)))

    def _ids_of(self, prefix: str) -> list[int]:
        return self.target.encode(clean_text(prefix, self.config.data.cleaning, self.config.data.one_direction.target))

    def _still_required(self, required: Sequence[Required], prefix: str) -> Iterator[Required]:
        """Without what a prefix has in other tokens. What it has in the same tokens counts in the search."""
        ids = self._ids_of(prefix)
        for one in required:
            first, n_there = one.texts[0].casefold(), len(list(_matches(one.constraint, ids)))
            words = rf"(?<![\p{{L}}\p{{N}}]){regex.escape(first)}(?![\p{{L}}\p{{N}}])"
            n_extra = 0 if one.stand_in else len(regex.findall(words, prefix.casefold())) - n_there
            n_extra = min(max(n_extra, 0), len(one.texts))
            if n_extra < len(one.texts):
                constraint = one.constraint._replace(times=one.constraint.times - n_extra)
                yield one._replace(constraint=constraint, texts=one.texts[n_extra:], openers=one.openers[n_extra:])

    def _capitalised(self, place: _Place, line: str) -> str:
        """The text of a term that begins a sentence."""
        return place.text if place.owner.copies else self.target.segmenter.casing.at_start(place.text, line)


def _read_parts(line: str, spans: Sequence[Span], stand_ins: Mapping[Term, str]) -> list[tuple[str, str]]:
    """Texts between terms and the terms in turn: as they are read, and as they are given. Stand-ins are whole words."""
    texts = between(line, spans)
    read = list(texts)
    for number, (_, term) in enumerate(spans):
        if term in stand_ins:
            before = read[number][-1:] or (spans[number - 1].term.source[-1:] if number else "")
            after = read[number + 1][:1] or (spans[number + 1].term.source[:1] if number + 1 < len(spans) else "")
            read[number] += " " * (WORD.match(before) is not None)
            read[number + 1] = " " * (JOINING.match(after) is not None) + read[number + 1]
    pairs = [
        ((read[number], texts[number]), (stand_ins.get(term, term.source), term.source))
        for number, (_, term) in enumerate(spans)
    ]
    return [*chain.from_iterable(pairs), (read[-1], texts[-1])]


def _pieces(line: str, spans: Sequence[Span], stand_ins: Mapping[Term, str], prefix: str) -> Iterator[Piece]:
    """The line without stand-ins, its prefix first: pieces with words, and pieces of terms and punctuation."""
    cuts = [span for span in spans if span.term in stand_ins]
    done, head = list[Span](), 0  # terms that the prefix has, and where the last of them ends
    for span in cuts:
        start = find(prefix, span.term.target, whole=True)
        if start >= 0 and prefix.count(span.term.target) > sum(other.term == span.term for other in done):
            done.append(span)
            head = max(head, start + len(span.term.target))
    if head:
        yield Piece(prefix[:head], "", [Term(prefix[:head], prefix[:head])])
    found = list(pieces(line, spans, cuts))
    if prefix.strip():  # the translation begins with it, so a piece with words comes first
        first = next((piece for piece in found if piece[2]), None)
        found.sort(key=lambda piece: piece != first)
    for number, (start, end, worded) in enumerate(found):
        inside = [span for span in spans if start <= span.start and span.end <= end]
        kept = [span for span in inside if span not in done]
        text, at, own = "", start, list[Span]()
        for span in inside:
            text += line[at : span.start]
            if span in kept:
                own.append(Span(len(text), span.term))
                text += span.term.source
            at = span.end
        text += line[at:end]
        if text.strip():
            yield Piece(text, prefix[head:] if worded and not number else "", own)


def _placed(text: str, sign: str, opener: str) -> str:
    """What opens a quotation or bracket before the sign of a term touches it, also if only the line has it.

    opener: the character before the term in the line
    """
    text = text.replace(f" {SPACE}{sign}", f" {sign}").replace(SPACE + sign, f" {sign}").strip()
    before = text.partition(f" {sign}")[0]
    if before != text and opens(before):
        return text.replace(f" {sign}", f"{_JOINT}{sign}")
    return reopened(text, sign, opener) if opener and opener in OPENING else text


def _required(
    line: str,
    spans: Sequence[Span],
    patterns: Mapping[Term, Constraint],
    places: Sequence[tuple[int, ...]],
    stand_ins: Mapping[Term, str],
) -> tuple[Required, ...]:
    """One entry for all terms with the same tokens. A pattern within another one counts there too."""
    terms: dict[tuple[int, ...], list[tuple[Span, tuple[int, ...]]]] = {}
    for span, place in zip(spans, places, strict=True):
        terms.setdefault(patterns[span.term].patterns[0], []).append((span, place))
    counts: Counter[tuple[int, ...]] = Counter()
    for ids, some in terms.items():
        for other in terms:
            counts[other] += len(some) * _occurrences(ids, other)
    required, used = [], {token for one in patterns.values() for ids in one.patterns for token in ids}
    for ids, some in terms.items():
        first = some[0][0].term
        sources = tuple(chain.from_iterable(place for _, place in some))
        avoided = tuple(token for token in patterns[first].avoided if token not in used)
        required.append(
            Required(
                patterns[first]._replace(times=counts[ids], sources=sources, avoided=avoided),
                tuple(span.term.target for span, _ in some),
                first.is_copy,
                tuple(line[max(span.start - 1, 0) : span.start] for span, _ in some),
                stand_ins.get(first, ""),
            )
        )
    return tuple(required)


def _with_stand_ins(prefix: str, required: Sequence[Required]) -> str:
    """The prefix with stand-ins, for each text at most as often as the translation must contain it."""
    texts = [(text, one.stand_in) for one in required if one.stand_in for text in one.texts]
    for text, word in sorted(texts, key=lambda pair: -len(pair[0])):
        start = find(prefix, text, whole=True)
        if start >= 0:
            before, after = prefix[:start], prefix[start + len(text) :]
            glue = " " * (WORD.match(before[-1:]) is not None), " " * (JOINING.match(after[:1]) is not None)
            prefix = f"{before}{glue[0]}{word}{glue[1]}{after}"
    return prefix


def _occurrences(ids: Sequence[int], pattern: Sequence[int]) -> int:
    return sum(tuple(ids[start : start + len(pattern)]) == tuple(pattern) for start in range(len(ids)))


def _find(required: Sequence[Required], ids: Sequence[int]) -> tuple[list[_Place], list[tuple[Required, str]]]:
    """The places of all required texts in a translation, from left to right, and the texts without a place."""
    taken: list[_Place] = []
    missing: list[tuple[Required, str]] = []
    for one in sorted(required, key=lambda one: -max(map(len, one.constraint.patterns))):
        waiting = list(zip(one.texts, one.openers, strict=True))
        for start, end in _matches(one.constraint, ids):
            if waiting and all(end <= other.start or other.end <= start for other in taken):
                taken.append(_Place(start, end, *waiting.pop(0), one))
        missing += [(one, text) for text, _ in waiting]
    return sorted(taken), missing


def _matches(constraint: Constraint, ids: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Start and end of each occurrence of a pattern."""
    for start in range(len(ids)):
        lead = constraint.lead if start == 0 else 0
        forms = chain.from_iterable((pattern, pattern[lead:]) for pattern in constraint.patterns)
        found = next((form for form in forms if tuple(ids[start : start + len(form)]) == form), None)
        if found is not None:
            yield start, start + len(found)
