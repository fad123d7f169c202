"""Terms: what the translation of a line must contain, whatever the model would write.

A term that the target vocabulary can spell is a constraint of the search. Other texts, such as addresses, the model
would break: it reads and writes a stand-in for them, a short word that both vocabularies know, and the text takes the
place of the stand-in afterwards. This file knows text and ids; `constraints` knows the search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, product
from typing import NamedTuple

import regex

from transformer_mt.config.schema import Config
from transformer_mt.decoding.request import Constraint
from transformer_mt.errors import TmtError
from transformer_mt.text.cleaning import clean_text
from transformer_mt.text.codec import Codec
from transformer_mt.text.vocabulary import MARKS, UNK

MOST_PIECES = 2  # of a copy that the model itself reads and writes; longer ones get a stand-in
_SPACE = "\u2581"  # SentencePiece and characters mark a space so
UNKNOWN = "\U00017fff"  # the stand-in if there is no other word: a letter that no vocabulary knows
_FIRST_SIGN = 0x17000  # letters without case that no corpus contains (Tangut): they mark places while text is written
_OPENING = "([{<\"'“„«‘‚`"
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">", '"': '"', "'": "'", "`": "`"}  # what may close an opening sign
_CLOSING |= {"“": '”"', "„": '“”"', "«": "»", "‘": "’", "‚": "‘’"}
# What would change a word, a number or an address if it followed directly. Korean particles do follow directly.
_JOINING = regex.compile(
    r"[\p{L}\p{M}\p{N}_/@#&=~+\\\uFFFD--[\p{sc=Hangul}\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}]]",
    regex.V1,
)
_WORD, _LETTERS = regex.compile(r"[\p{L}\p{M}\p{N}_]"), regex.compile(r"\p{L}")


class Term(NamedTuple):
    """A span of a line, and the text that the translation must contain exactly once for it.

    source: text of the span, as it is in the line
    target: its translation; equal to `source` for a copy, which is then byte for byte the same
    """

    source: str
    target: str


class Required(NamedTuple):
    """A constraint, and the texts that its occurrences stand for, in the order of the line.

    copies:  whether they are copies, which are never changed, even at the start of a sentence
    openers: the characters before the spans of the line; "" without one
    """

    constraint: Constraint
    texts: tuple[str, ...]
    copies: bool
    openers: tuple[str, ...]


@dataclass(frozen=True)
class BoundLine:
    """A line with terms, as the model reads it, and what its translation must contain.

    answer: the translation, if nothing but terms is in the line; else None
    """

    line: str
    required: tuple[Required, ...]
    answer: str | None = None

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        return tuple(one.constraint for one in self.required)

    def missing(self, ids: Sequence[int]) -> list[str]:
        """The texts that a translation lacks."""
        return _find(self.required, ids)[1]

    def left_over(self, ids: Sequence[int]) -> bool:
        """Whether a translation has words for a copy, such as stand-ins, outside the places of the copies."""
        inside = {place for one in _find(self.required, ids)[0] for place in range(one.start, one.end)}
        words = {ids[-1] for one in self.required if one.copies for ids in one.constraint.patterns} - {UNK}
        return any(token in words for place, token in enumerate(ids) if place not in inside)


class _Place(NamedTuple):
    """A span of the ids of a translation, and the text that takes its place."""

    start: int
    end: int
    text: str
    copies: bool
    opener: str


class TermReader:
    """Turns lines with terms into constraints, and the ids of a translation into text with these terms."""

    def __init__(self, config: Config, source: Codec, target: Codec) -> None:
        self.config, self.source, self.target = config, source, target
        self._tokens = target.vocabulary.tokens

    def read(self, line: str, terms: Sequence[Term]) -> BoundLine:
        """Raises TmtError if a term is empty, or not in the line after those before it."""
        spans = spans_of_terms(line, terms)
        between = [line[end:start] for end, start in _gaps(spans, len(line))]
        if not any(map(_has_words, between)):
            pairs = zip(between, [*(term.target for _, term in spans), ""], strict=True)
            return BoundLine(line, (), "".join(chain.from_iterable(pairs)).strip())
        patterns: dict[Term, Constraint] = {}
        read: dict[Term, str] = {}
        for term in dict.fromkeys(term for _, term in spans):
            constraint = self._own(term)
            if constraint is None:
                used = {token for one in patterns.values() for ids in one.patterns for token in ids}
                read[term], constraint = self._stand_in(line, [term.target for term in patterns], used)
            patterns[term] = constraint
        words = [read.get(term, term.source) for _, term in spans]
        parts = list(chain.from_iterable(zip(between, [*words, ""], strict=True)))
        bounds = list(accumulate(map(len, parts), initial=0))
        read_line = "".join(parts)
        places = [self._places(read_line, *bounds[2 * number + 1 : 2 * number + 3]) for number in range(len(spans))]
        return BoundLine(read_line, _required(line, spans, patterns, places))

    def write(self, bound: BoundLine, ids: Sequence[int], unknown: Sequence[str] = ()) -> str:
        """The text of a translation with the terms in their places.

        unknown: words to write for the ids UNK, as in `Codec.decode`
        """
        places, _ = _find(bound.required, ids)
        words, filled, written, end = iter(unknown), [], [], 0
        for number, place in enumerate([*places, _Place(len(ids), len(ids), "", False, "")]):
            for token in ids[end : place.start]:
                filled.append(token)
                if token == UNK:
                    written.append(next(words, MARKS[UNK]))
            for token in ids[place.start : place.end]:
                if token == UNK:
                    next(words, "")
            if number < len(places):
                spaced = ids[place.start] == UNK or self._tokens[ids[place.start]].startswith(_SPACE)
                lead = _SPACE if spaced else ""
                filled.append(UNK)
                written.append(f"{lead}{chr(_FIRST_SIGN + number)}")
            end = place.end
        text = self.target.decode(filled, written)
        for number, place in enumerate(places):
            text = self._put(text, chr(_FIRST_SIGN + number), place, bound.line)
        return text

    @cached_property
    def joining(self) -> tuple[int, ...]:
        """Ids that may not directly follow a term: as text they would continue its last word."""
        detokenize, tokens = self.target.segmenter.tokenizer.detokenize, self._tokens
        texts = [(index, detokenize(["a", token])) for index, token in enumerate(tokens) if index >= len(MARKS)]
        return tuple(index for index, text in texts if _JOINING.match(text[1:2]))

    @cached_property
    def _stand_ins(self) -> list[tuple[str, Constraint]]:
        """Words that both vocabularies know: numbers, which languages share, then capitalised words, then letters."""
        numbers = map(str, (7, 9, 8, 6, 5, 4, 3, *range(12, 100)))
        names = sorted({word for token in self._tokens[len(MARKS) :] if (word := token.lstrip(_SPACE)).isascii()})
        names = [word for word in names if word.istitle() and len(word) > 3]
        letters = ["".join(pair) for pair in product("qxzjkvwy", repeat=2)]
        found = []
        for word in chain(numbers, names, letters):
            constraint = self._constraint(word)
            known = UNK not in self.source.encode(word)
            if known and constraint is not None and len(constraint.patterns[0]) <= MOST_PIECES + constraint.lead:
                found.append((word, constraint))
        return found

    def _places(self, line: str, start: int, end: int) -> tuple[int, ...]:
        """The places of the tokens of a span, as exactly as the tokenizer of its beginning shows."""
        rules = self.config.data.cleaning, self.config.data.source
        before, until = (
            len(self.source.segmenter.tokenize(clean_text(line[:place], *rules))) for place in (start, end)
        )
        last = min(until, self.config.data.max_length - 1)
        return tuple(range(min(before, last - 1), last))

    def _own(self, term: Term) -> Constraint | None:
        """The constraint by the term's own tokens; None if the vocabularies do not know it well."""
        is_copy = term.source == term.target
        forms = [term.target]
        if not is_copy and term.target[:1].islower():
            forms.append(term.target[:1].upper() + term.target[1:])  # as at the start of a sentence
        constraint = self._constraint(*forms)
        if constraint is None or not is_copy:
            return constraint
        if len(constraint.patterns[0]) - constraint.lead > MOST_PIECES or UNK in self.source.encode(term.source):
            return None
        return constraint._replace(avoided=self._avoided(term.target, constraint))

    def _avoided(self, text: str, constraint: Constraint) -> tuple[int, ...]:
        """Ids of tokens that have this text as a word, such as `7.` for 7, and that its own pattern does not need."""
        word = regex.compile(rf"(?<![\p{{L}}\p{{N}}]){regex.escape(text)}(?![\p{{L}}\p{{N}}])")
        own = {token for ids in constraint.patterns for token in ids}
        return tuple(
            index
            for index, token in enumerate(self._tokens)
            if text in token and index not in own and index >= len(MARKS) and word.search(token)
        )

    def _constraint(self, *forms: str) -> Constraint | None:
        """The tokens of any of these texts inside a sentence; None if they need `<unk>` or have none."""
        tokenize, data = self.target.segmenter.tokenize, self.config.data
        patterns, lead, before = [], 0, len(tokenize("a"))
        for form in forms:
            text = clean_text(form, data.cleaning, data.target)
            inside, alone = tokenize(f"a {text}")[before:], tokenize(text)
            if len(inside) > len(alone) and inside[len(inside) - len(alone) :] == alone:
                lead = len(inside) - len(alone)
            patterns.append(tuple(self.target.vocabulary.encode(inside)))
        if UNK in patterns[0] or len(patterns[0]) <= lead:
            return None
        return Constraint(tuple(dict.fromkeys(ids for ids in patterns if UNK not in ids)), lead=lead)

    def _stand_in(self, line: str, texts: Sequence[str], used: set[int]) -> tuple[str, Constraint]:
        """A stand-in that is not in the line or in these texts. used: ids of other constraints."""
        tokens = {token for text in (line, *texts) for token in self.target.encode(text)} | used
        for word, constraint in self._stand_ins:
            own = {token for token in constraint.patterns[0] if self._tokens[token] != _SPACE}
            if word not in line and not own & tokens:
                return word, constraint._replace(avoided=self._avoided(word, constraint))
        ids = self.target.vocabulary.encode(self.target.segmenter.tokenize(f"a {UNKNOWN}"))
        spaced = len(ids) > 1 and ids[-1] == UNK and self._tokens[ids[-2]] == _SPACE
        return UNKNOWN, Constraint(((ids[-2], UNK) if spaced else (UNK,),), lead=int(spaced))

    def _put(self, text: str, sign: str, place: _Place, line: str) -> str:
        """Replace a sign by its text. What opened a quotation or bracket before it in the line touches it again."""
        text = text.replace(f" {_SPACE}{sign}", f" {sign}").replace(_SPACE + sign, f" {sign}").strip()
        if place.opener and place.opener in _OPENING:
            text = _reopened(text.replace(f"{place.opener} {sign}", f"{place.opener}{sign}"), sign, place.opener)
        written = place.text
        lower = self.target.segmenter.casing.kind == "lower"
        starts = text.startswith(sign) and not lower and not line.lstrip()[:1].islower()
        if starts and not place.copies and written.split(" ")[0].islower():
            written = written[:1].upper() + written[1:]
        return text.replace(sign, written)


def _reopened(text: str, sign: str, opener: str) -> str:
    """Put what opened a quotation or bracket before a sign that the text closes again but does not open."""
    before, _, after = text.partition(sign)
    closer = after[:1]
    if not closer or closer not in _CLOSING[opener] or before.endswith(opener):
        return text
    is_open = before.count(opener) % 2 == 1 if closer == opener else before.count(opener) > before.count(closer)
    return text if is_open else f"{before}{opener}{sign}{after}"


def spans_of_terms(line: str, terms: Sequence[Term]) -> list[tuple[int, Term]]:
    """Where each term begins in the line, from left to right."""
    spans, end = [], 0
    for term in terms:
        start = _first(line, term.source, end) if term.source and term.target.strip() else -1
        if start < 0:
            raise TmtError(
                f"the term '{term.source}' is not in the line, or its translation is empty",
                remedy="Give the terms of a line as they are written there, in their order, without overlap.",
            )
        spans.append((start, term))
        end = start + len(term.source)
    return spans


def _first(line: str, text: str, begin: int) -> int:
    """Where a text first occurs as words, or else anywhere; -1 if it does not occur."""
    start = line.find(text, begin)
    while start >= 0:
        after = start + len(text)
        if not _WORD.match(line[max(start - 1, 0) : start]) and not _JOINING.match(line[after : after + 1]):
            return start
        start = line.find(text, start + 1)
    return line.find(text, begin)


def _gaps(spans: Sequence[tuple[int, Term]], length: int) -> Iterator[tuple[int, int]]:
    """End of a span and start of the next: the text between them."""
    end = 0
    for start, term in spans:
        yield end, start
        end = start + len(term.source)
    yield end, length


def _has_words(text: str) -> bool:
    return _LETTERS.search(text) is not None


def _required(
    line: str,
    spans: Sequence[tuple[int, Term]],
    patterns: dict[Term, Constraint],
    places: Sequence[tuple[int, ...]],
) -> tuple[Required, ...]:
    """One entry for all terms with the same tokens. A pattern within another one counts there too."""
    terms: dict[tuple[int, ...], list[tuple[int, Term, tuple[int, ...]]]] = {}
    for (start, term), place in zip(spans, places, strict=True):
        terms.setdefault(patterns[term].patterns[0], []).append((start, term, place))
    counts: Counter[tuple[int, ...]] = Counter()
    for ids, some in terms.items():
        for other in terms:
            counts[other] += len(some) * _occurrences(ids, other)
    required, used = [], {token for one in patterns.values() for ids in one.patterns for token in ids}
    for ids, some in terms.items():
        _, first, _ = some[0]
        sources = tuple(chain.from_iterable(place for _, _, place in some))
        avoided = tuple(token for token in patterns[first].avoided if token not in used)
        required.append(
            Required(
                patterns[first]._replace(times=counts[ids], sources=sources, avoided=avoided),
                tuple(term.target for _, term, _ in some),
                first.source == first.target,
                tuple(line[max(start - 1, 0) : start] for start, _, _ in some),
            )
        )
    return tuple(required)


def _occurrences(ids: Sequence[int], pattern: Sequence[int]) -> int:
    return sum(tuple(ids[start : start + len(pattern)]) == tuple(pattern) for start in range(len(ids)))


def _find(required: Sequence[Required], ids: Sequence[int]) -> tuple[list[_Place], list[str]]:
    """The places of all required texts in a translation, from left to right, and the texts without a place."""
    taken: list[_Place] = []
    missing: list[str] = []
    for one in sorted(required, key=lambda one: -max(map(len, one.constraint.patterns))):
        waiting = list(zip(one.texts, one.openers, strict=True))
        for start, end in _matches(one.constraint, ids):
            if waiting and all(end <= other.start or other.end <= start for other in taken):
                text, opener = waiting.pop(0)
                taken.append(_Place(start, end, text, one.copies, opener))
        missing += [text for text, _ in waiting]
    return sorted(taken), missing


def _matches(constraint: Constraint, ids: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Start and end of each occurrence of a pattern."""
    for start in range(len(ids)):
        for pattern in constraint.patterns:
            for shown in (pattern, pattern[constraint.lead :] if start == 0 else pattern):
                if tuple(ids[start : start + len(shown)]) == shown:
                    yield start, start + len(shown)
                    break
            else:
                continue
            break
