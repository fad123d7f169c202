"""A glossary: terms with fixed translations, and where they are in a line.

The file has two columns, separated by a tab: a term and its translation. Lines that begin with `#` are comments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import regex

from transformer_mt.decoding.terms import Term
from transformer_mt.errors import TmtError, at
from transformer_mt.files.lines import read_lines
from transformer_mt.text.copies import number_spans, unbroken_spans

# Endings that may follow a Korean noun, and that are no part of the term. Several may follow each other: 들에게는.
_PARTICLES = regex.compile(
    "(?:들|은|는|이|가|을|를|의|에|에서|에게|에게서|한테|한테서|께|께서|으로|로|으로서|로서|으로써|로써|와|과|이랑|랑"
    "|하고|도|만|까지|부터|보다|처럼|같이|마다|조차|마저|밖에|뿐|대로|이나|나|이라|라|이라는|라는|이란|란|이고|고|이며|며"
    "|이다|다|입니다|입니까|이에요|예요|이야|야|이었다|였다|이었습니다|였습니다|인|일|이지만|지만|이라고|라고|요){1,3}"
    r"(?![\p{L}\p{N}])"
)
_HANGUL_END = regex.compile(r"\p{sc=Hangul}$")
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}_]")
_WORD_START = regex.compile(r"(?<![\p{L}\p{M}\p{N}_])\S")
_REMEDY = "Write two columns with one tab between them: the term, and its translation."


@dataclass(frozen=True)
class Glossary:
    """Terms and their translations.

    entries:     translation of each term
    ignore_case: whether a term also matches in another case; otherwise only a first letter at the start of a line may
                 be upper case instead of lower case
    """

    entries: dict[str, str]
    ignore_case: bool = False
    _by_start: dict[str, list[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_start: dict[str, list[str]] = {}
        for term in sorted(self.entries, key=len, reverse=True):
            by_start.setdefault(term[0].lower(), []).append(term)
        object.__setattr__(self, "_by_start", by_start)

    @classmethod
    def load(cls, file: str | Path, ignore_case: bool = False) -> Glossary:
        """Raises TmtError, with the line, if a row is malformed, or if a term has two translations."""
        entries: dict[str, str] = {}
        first: dict[str, int] = {}
        for number, row in read_lines(file, any_text=True):
            if not row.strip() or row.startswith("#"):
                continue
            columns = [" ".join(column.split()) for column in row.split("\t")]
            if len(columns) != 2:
                raise TmtError(f"{len(columns)} columns, not 2", place=at(file, number), remedy=_REMEDY)
            if not all(columns):
                side = "translation" if columns[0] else "term"
                raise TmtError(f"the {side} is empty", place=at(file, number), remedy=_REMEDY)
            term, translation = columns
            key = term.lower() if ignore_case else term
            if entries.get(key, translation) != translation:
                raise TmtError(
                    f"'{term}' has another translation in line {first[key]}: '{entries[key]}'",
                    place=at(file, number),
                    remedy="Keep one of the two lines.",
                )
            entries[key] = translation
            first.setdefault(key, number)
        if not entries:
            raise TmtError("the glossary has no terms", place=file, remedy=_REMEDY)
        return cls(entries, ignore_case)

    def terms(self, line: str) -> list[Term]:
        """The terms of a line from left to right: addresses and placeholders, then the longest entries, then numbers.

        An entry matches whole words. Korean particles may follow an entry that ends in Hangul.
        """
        taken: list[tuple[int, int, str]] = []
        copies = ((start, end, line[start:end]) for start, end in unbroken_spans(line))
        numbers = ((start, end, line[start:end]) for start, end in number_spans(line))
        for start, end, target in chain(copies, self._matches(line), numbers):
            if all(end <= first or last <= start for first, last, _ in taken):
                taken.append((start, end, target))
        return [Term(line[start:end], target) for start, end, target in sorted(taken)]

    def terms_of(self, lines: Iterable[str]) -> Iterator[list[Term]]:
        """The terms of each line."""
        return map(self.terms, lines)

    def _matches(self, line: str) -> Iterator[tuple[int, int, str]]:
        """Start and end of entries, with their translations; of those that start at the same place, the longest."""
        for found in _WORD_START.finditer(line):
            start = found.start()
            for term in self._by_start.get(found[0].lower(), ()):
                end = start + len(term)
                if self._same(term, line[start:end], start) and _ends_word(term, line, end):
                    yield start, end, self.entries[term]
                    break

    def _same(self, term: str, text: str, start: int) -> bool:
        if self.ignore_case:
            return text.lower() == term.lower()
        return text == term or (start == 0 and text == term[0].upper() + term[1:])


def _ends_word(term: str, line: str, end: int) -> bool:
    after = line[end : end + 1]
    if not _WORD.match(after) or not _WORD.match(term[-1]):
        return True
    return _HANGUL_END.search(term) is not None and _PARTICLES.match(line, end) is not None
