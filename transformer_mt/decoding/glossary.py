"""A glossary: terms with fixed translations, and where they are in a line.

The file has two columns, separated by a tab: a term and its translation. Lines that begin with `#` are comments.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import regex

from transformer_mt.decoding.given import checked_text
from transformer_mt.decoding.terms import Span, Term
from transformer_mt.errors import TmtError, at, number_of
from transformer_mt.files.lines import path_of, read_lines
from transformer_mt.text.casing import lowered
from transformer_mt.text.copies import NUMBER, PARTICLES, UNBROKEN
from transformer_mt.text.script import ENDS, SPACELESS, SPACELESS_LETTER

_PARTICLES = regex.compile(PARTICLES)
_LETTER = regex.compile(r"\X")  # with its accents
_KOREAN_TERM = regex.compile(r"[\p{sc=Hangul}\p{sc=Latin}]$|\p{L}.*\p{N}$")  # particles may follow it: 고양이는, AI는
_WIDE_SPACE = regex.compile(r"\s\s|[^\S ]")
_SPACE_OR_NOT = regex.compile(r"\s+|\S")
_LETTER_OR_DIGIT = regex.compile(r"[\p{L}\p{N}]")
_NEW_SENTENCE = regex.compile(  # a point after these, a letter or a number usually ends no sentence
    rf"(?:[!?…{ENDS}]|(?<=\p{{Greek}});|^\s*\d+\.|(?<!\b(?:Dr|Prof|Mrs?|Ms|St|Nr|Hr|Fr|\p{{L}}|\d+))\.)"
    r"[\"'”’“‘»«)\]]*\s+[^\p{L}\p{N}\s]*$"
)
_LOOK_BACK = 20  # characters
_MARK = regex.compile(r"\p{M}")
_IN_WORDS = r"\p{L}\p{M}\p{N}_\u200c\u200d"  # with the joiners of Persian and of the scripts of India
_WORD = regex.compile(f"[{_IN_WORDS}]")
_FIRST_WORD = regex.compile(f"[{_IN_WORDS}]+|.", regex.DOTALL)
# Beside a letter of a script without spaces, a word may begin and end.
_WORD_START = regex.compile(rf"(?:(?<![{_IN_WORDS}])|(?<=[{SPACELESS}])|(?=[{SPACELESS}]))\S")
_CASES_OF_I = {"ı": "ıI", "i": "iIİ", "İ": "iİ"}
_REMEDY = "Write two columns with one tab between them: the term, and its translation."


@dataclass(frozen=True)
class Glossary:
    """Terms and their translations.

    entries:     translation of each term
    ignore_case: whether a term also matches in another case; otherwise only a first letter at the start of a
                 sentence may be upper case instead of lower case. `Translator.glossary` knows what fits a model
    Raises TmtError if an entry is not text, empty or of several lines, or if a term has two translations.
    """

    entries: Mapping[str, str]
    ignore_case: bool = False
    _by_text: dict[str, list[str]] = field(init=False, repr=False, compare=False)  # terms, by their text in lower case
    _longest: int = field(init=False, repr=False, compare=False)  # characters of a term
    _lengths: dict[str, list[int]] = field(init=False, repr=False, compare=False)  # of terms, by their first word

    def __post_init__(self) -> None:
        if not isinstance(self.entries, Mapping):
            raise TmtError(
                "entries are not a dict", place="glossary", remedy='For example:  Glossary({"Hund": "hound"})'
            )
        rows = ((term, translation, "glossary") for term, translation in self.entries.items())
        object.__setattr__(self, "entries", _checked(rows, self.ignore_case))
        by_text, lengths = dict[str, list[str]](), dict[str, set[int]]()
        for term in self.entries:
            by_text.setdefault(_folded(term), []).append(term)
            lengths.setdefault(_folded(_first_word(term, 0)), set()).add(len(term))
        object.__setattr__(self, "_by_text", by_text)
        object.__setattr__(self, "_longest", max(map(len, by_text), default=0))
        object.__setattr__(self, "_lengths", {word: sorted(some, reverse=True) for word, some in lengths.items()})

    @classmethod
    def of(cls, terms: Glossary | Mapping[str, str] | str | Path, ignore_case: bool) -> Glossary:
        """A glossary from its entries or the path of its file; another one ignores case too if it must."""
        if isinstance(terms, Glossary):
            return replace(terms, ignore_case=True) if ignore_case and not terms.ignore_case else terms
        return cls.load(terms, ignore_case) if isinstance(terms, (str, Path)) else cls(terms, ignore_case)

    @classmethod
    def load(cls, file: str | Path, ignore_case: bool = False) -> Glossary:
        """Raises TmtError, with the line, if a row is malformed, or if a term has two translations."""
        entries = _checked(_rows(path_of(file)), ignore_case)
        if not entries:
            raise TmtError("the glossary has no terms", place=file, remedy=_REMEDY)
        return cls(entries, ignore_case)

    def terms(self, line: str) -> list[Term]:
        """The terms of a line, from left to right; see `spans`."""
        return [span.term for span in self.spans(line)]

    def spans(self, line: str) -> list[Span]:
        """Terms at their places in a line: addresses and placeholders, then other entries, then numbers.

        Entries are found from left to right; of those that start at the same place, the longest. They match whole
        words, also if the line writes its letters decomposed (NFD), as macOS does. Korean particles may follow an entry
        that ends in Hangul or a Latin letter. In scripts without spaces, a word may begin and end anywhere.
        """
        text, places = _composed(line)
        taken: list[tuple[int, int, str | None]] = []  # sorted, and none overlaps another
        copies = ((*found.span(), self.entries.get(found[0])) for found in UNBROKEN.finditer(text))
        numbers = ((*found.span(), None) for found in NUMBER.finditer(text))
        spaced, at_space = _spaced(text)
        entries = ((at_space[start], at_space[end], target) for start, end, target in self._matches(spaced))
        for start, end, target in chain(copies, entries, numbers):
            place = bisect_left(taken, (start,))
            is_after = place == 0 or taken[place - 1][1] <= start
            if is_after and (place == len(taken) or end <= taken[place][0]):
                taken.insert(place, (start, end, target))
        texts = ((places[start], line[places[start] : places[end]], target) for start, end, target in taken)
        return [Span(start, Term(source, source if target is None else target)) for start, source, target in texts]

    def _matches(self, line: str) -> Iterator[tuple[int, int, str]]:
        """Start and end of entries, with their translations; of those that start at the same place, the longest."""
        for found in _WORD_START.finditer(line):
            start = found.start()
            word = _first_word(line, start, start + self._longest + 1)  # a longer one is none of the glossary
            # A term of several words has the whole word; a Korean term may be the beginning of a word.
            lengths = [*self._lengths.get(_folded(word), ()), *range(min(len(word) - 1, self._longest), 0, -1)]
            ends = (start + length for length in lengths if start + length <= len(line))
            some = ((end, term) for end in ends for term in self._like(line[start:end]))
            for end, term in some:
                if self._same(term, line, start, end) and _ends_word(term, line, end):
                    yield start, end, self.entries[term]
                    break

    def _like(self, text: str) -> list[str]:
        """The terms with these letters in any case; the one in the same case comes first."""
        return sorted(self._by_text.get(_folded(text), ()), key=text.__ne__)

    def _same(self, term: str, line: str, start: int, end: int) -> bool:
        text = line[start:end]
        if self.ignore_case:
            return _folded(text) == _folded(term) and all(map(_is_same_letter, text, term))
        capitals = (term[0].upper(), "İ") if term[0] == "i" else term[0].upper()
        return text == term or (text[0] in capitals and text[1:] == term[1:] and _begins_sentence(line, start))


@dataclass
class GlossaryCount:
    """The number of terms and copies that were found, and of the lines that have any."""

    terms: int = 0
    copies: int = 0
    lines: int = 0

    def add(self, spans: Sequence[Span]) -> Sequence[Span]:
        """Count the terms of a line. Returns them."""
        copies = sum(span.term.is_copy for span in spans)
        self.copies += copies
        self.terms += len(spans) - copies
        self.lines += bool(spans)
        return spans

    def __str__(self) -> str:
        counts = (self.terms, "term", "terms"), (self.copies, "copy", "copies"), (self.lines, "line", "lines")
        terms, copies, lines = (f"{count:,} {one if count == 1 else more}" for count, one, more in counts)
        return f"glossary: {terms} and {copies} in {lines}"


def _rows(file: Path) -> Iterator[tuple[str, str, str]]:
    """Term, translation and place of each row. Raises TmtError if a row does not have two columns."""
    for number, row in read_lines(file, any_text=True):
        if row.strip() and not row.startswith("#"):
            columns = [" ".join(column.split()) for column in row.split("\t")]
            if len(columns) != 2:
                raise TmtError(f"{number_of(len(columns), 'column')}, not 2", place=at(file, number), remedy=_REMEDY)
            if all(len(column) > 1 and column[0] == column[-1] == '"' for column in columns):
                raise TmtError("both columns are in quotes", place=at(file, number), remedy="Remove the quotes.")
            yield columns[0], columns[1], at(file, number)


def _checked(rows: Iterable[tuple[str, str, str]], ignore_case: bool) -> dict[str, str]:
    """The entries. Raises TmtError, with its place, for what is no entry.

    rows: term, translation, and where they come from
    """
    entries, first = dict[str, str](), dict[str, tuple[str, str]]()
    for term, translation, place in rows:
        for side, text in (("term", term), ("translation", translation)):
            if not checked_text(text, place).strip():
                raise TmtError(f"the {side} is empty", place=place, remedy="Each term needs a translation.")
            if len(text.splitlines()) > 1:
                raise TmtError(f"the {side} has a line break: {text!r}", place=place, remedy="Write it in one line.")
        term = " ".join(unicodedata.normalize("NFC", term).split())
        other, where = first.setdefault(term.lower() if ignore_case else term, (translation, place))
        if other != translation:
            raise TmtError(
                f"'{term}' has another translation in {where}: '{other}'", place=place, remedy="Keep one of the two."
            )
        entries[term] = translation
    return entries


def _composed(line: str) -> tuple[str, Sequence[int]]:
    """The line in NFC, as entries are, and where each of its characters, and its end, is in the line."""
    if unicodedata.is_normalized("NFC", line):
        return line, range(len(line) + 1)
    parts, places = list[str](), list[int]()
    for letter in _LETTER.finditer(line):
        parts.append(unicodedata.normalize("NFC", letter[0]))
        places += [letter.start()] * len(parts[-1])
    return "".join(parts), [*places, len(line)]


def _spaced(line: str) -> tuple[str, Sequence[int]]:
    """The line with one space for each stretch of white space, and where each of its characters is in the line."""
    if not _WIDE_SPACE.search(line):
        return line, range(len(line) + 1)
    found = list(_SPACE_OR_NOT.finditer(line))
    return "".join(" " if one[0].isspace() else one[0] for one in found), [*(one.start() for one in found), len(line)]


def _begins_sentence(line: str, start: int) -> bool:
    """Whether nothing but signs stands before a place in the line, or in its sentence."""
    before = line[max(0, start - _LOOK_BACK) : start]
    return (start <= _LOOK_BACK and not _LETTER_OR_DIGIT.search(before)) or _NEW_SENTENCE.search(before) is not None


def _folded(text: str) -> str:
    """The text in lower case, with one letter for i and ı: which one is the small I depends on the language."""
    return lowered(text, "").replace("ı", "i")


def _is_same_letter(letter: str, of_term: str) -> bool:
    """Whether letters that are folded alike differ only in case: ı is not i, but I may be the capital of both."""
    return letter in _CASES_OF_I.get(of_term, letter)


def _first_word(text: str, start: int, end: int | None = None) -> str:
    found = _FIRST_WORD.match(text, start, end)
    return found[0] if found is not None else ""


def _ends_word(term: str, line: str, end: int) -> bool:
    after = line[end : end + 1]
    if not _WORD.match(after) or not _WORD.match(term[-1]):
        return True
    if SPACELESS_LETTER.match(after) or SPACELESS_LETTER.match(term[-1]):
        return not _MARK.match(after)
    return _PARTICLES.match(line, end) is not None and _KOREAN_TERM.search(term) is not None
