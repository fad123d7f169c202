"""`clean_text` for many sentences at once, with the same results, and the keys by which duplicates and leaks are found.

A table says for each code point whether it needs attention, and numpy looks up all characters of a batch. Only the
sentences with such characters go through the rules one by one.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.languages import two_letters
from transformer_mt.text.cleaning import (
    NO_TEXT_NOR_JOINERS,
    PIECE_MARKS,
    STOPS,
    WRONG_NEXT,
    WRONG_STARTS,
    clean_text,
    cut_into_pieces,
    not_words,
    quoted_as_csv,
    wrongly_decoded,
)
from transformer_mt.text.entities import has_entities, has_tags

# pair: equal for equal pairs; leak: for pairs that differ only in case, spaces and punctuation; source, target: for
# sentences that differ only in these
PAIR_KEYS = "pair", "leak", "source", "target"
KEYS = np.dtype([(name, "<u8") for name in PAIR_KEYS])
_ODD, _SPACE, _LINE, _START, _AFTER, _LOST, _STOP, _MARK = (np.uint8(1 << bit) for bit in range(8))
_BREAKS = re.compile(r"[\t\n\r]")
_SURROGATES = re.compile("[\ud800-\udfff]")  # JSON can contain lone surrogates; UTF-8 cannot
Flags = NDArray[np.uint8]


def one_line(text: str) -> str:
    """The text as a line of UTF-8: tabs and line breaks become spaces, and half a surrogate pair becomes U+FFFD."""
    return _SURROGATES.sub("\ufffd", _BREAKS.sub(" ", text))


def as_lines(texts: list[str]) -> list[str]:
    """`one_line` of each text; the same list if no text changes."""
    joined = "\n".join(texts)
    if joined.count("\n") == len(texts) - 1 and "\t" not in joined and "\r" not in joined:
        try:
            joined.encode("utf-8")
            return texts
        except UnicodeEncodeError:
            pass
    return [one_line(text) for text in texts]


class Batch:
    """The characters of some lines. Rows are counted from 0."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self._joined = "\n".join(["", *lines, ""])
        codes = np.frombuffer(self._joined.encode("utf-32-le"), "<u4")
        self._flags: Flags = _table()[codes]
        self._starts = np.flatnonzero(self._flags & _LINE)

    def wrongly_decoded(self) -> set[int]:
        """The rows for which `cleaning.wrongly_decoded` is true."""
        pairs = ((self._flags[:-1] & _START) != 0) & ((self._flags[1:] & _AFTER) != 0)
        rows = self._rows(pairs | ((self._flags[:-1] & _LOST) != 0))
        return {row for row in rows if wrongly_decoded(self.lines[row])}

    def quoted_as_csv(self) -> set[int]:
        """The rows for which `cleaning.quoted_as_csv` is true."""
        if '""' not in self._joined:
            return set()
        return {row for row, line in enumerate(self.lines) if quoted_as_csv(line)}

    def with_entities(self) -> set[int]:
        """The rows with characters that are written as in HTML."""
        return {row for row, line in enumerate(self.lines) if "&" in line and has_entities(line)}

    def with_tags(self) -> set[int]:
        """The rows with tags of HTML or of translation memories."""
        return {row for row, line in enumerate(self.lines) if "<" in line and has_tags(line)}

    def in_pieces(self) -> set[int]:
        """The rows for which `cleaning.cut_into_pieces` is true."""
        return {row for row in self._rows((self._flags & _MARK) != 0) if cut_into_pieces(self.lines[row])}

    def tokenized(self) -> set[int]:
        """The rows with a space before a comma or full stop, and a space or nothing after it."""
        stops = np.flatnonzero(self._flags[:-1] & _STOP)  # never the first character, which is a line break
        alone = ((self._flags[stops - 1] & _SPACE) != 0) & ((self._flags[stops + 1] & (_SPACE | _LINE)) != 0)
        return set(self._rows_of(stops[alone]))

    def in_lower_case(self) -> set[int]:
        """The rows with letters that could be capitals, and none that are. Georgian begins no sentence with one."""
        return {
            row for row, line in enumerate(self.lines) if line.islower() and (line.isascii() or line.title() != line)
        }

    def clean(self, rules: CleaningConfig, language: str) -> tuple[list[str], dict[int, set[str]]]:
        """`clean_text` of each line, and the names of the rules that changed it, by row."""
        changed: dict[int, set[str]] = {}
        cleaned = list(self.lines)
        for row in self._unclean(rules, language):
            by_rules: set[str] = set()
            cleaned[row] = clean_text(self.lines[row], rules, language, by_rules.add)
            if by_rules:
                changed[row] = by_rules
        return cleaned, changed

    def _unclean(self, rules: CleaningConfig, language: str) -> Sequence[int]:
        """The rows that a rule may change, and possibly some more."""
        if rules.max_repeats and two_letters(language) == "ko":
            return range(len(self.lines))
        edge = (self._flags & (_SPACE | _LINE)) != 0
        rows = self._rows(((self._flags[:-1] & _ODD) != 0) | (edge[:-1] & edge[1:]))
        if rules.entities:
            rows = sorted({*rows, *self.with_entities()})
        if rules.unicode == "off" or unicodedata.is_normalized(rules.unicode, self._joined):
            return rows
        normal = unicodedata.is_normalized
        return sorted({*rows, *(n for n, line in enumerate(self.lines) if not normal(rules.unicode, line))})

    def _rows(self, found: NDArray[np.bool_]) -> list[int]:
        """The rows of these characters, in order."""
        return self._rows_of(np.flatnonzero(found))

    def _rows_of(self, places: NDArray[np.intp]) -> list[int]:
        rows: list[int] = np.unique(np.searchsorted(self._starts, places, side="right") - 1).tolist()
        return rows


def keys_of_pairs(sources: list[str], targets: list[str]) -> NDArray[np.void]:
    """The keys of each pair: hashes of 8 bytes, as an array of KEYS. No text has a line break."""
    sides = [texts_of_words(side) for side in (sources, targets)]
    texts = (map("\t".join, zip(*both, strict=True)) for both in ((sources, targets), sides))
    keys = np.empty(len(sources), KEYS)
    for name, column in zip(PAIR_KEYS, (*texts, *sides), strict=True):
        digests = b"".join([blake2b(text.encode(), digest_size=16).digest() for text in column])
        keys[name] = np.frombuffer(digests, "<u8")[::2]
    return keys


def texts_of_words(texts: list[str]) -> list[str]:
    """Each text by which leaks are found: only its letters and digits, without case; the text itself if it has none."""
    if not texts:
        return []
    codes = np.frombuffer("\n".join(texts).casefold().encode("utf-32-le"), "<u4")
    words = codes[_word_table()[codes]].tobytes().decode("utf-32-le").split("\n")
    return [word or text for word, text in zip(words, texts, strict=True)]


@functools.cache
def _table() -> Flags:
    """The flags of all code points."""
    flags = np.zeros(sys.maxunicode + 1, np.uint8)
    plain = "".join(map(chr, range(0x3001)))  # all white space and invisible characters, but for U+FEFF
    for flag, pattern in (
        (_ODD, NO_TEXT_NOR_JOINERS),
        (_ODD, re.compile(r"[^\S \n]")),
        (_START, re.compile(WRONG_STARTS)),
        (_AFTER, re.compile(WRONG_NEXT)),
    ):
        flags[[found.start() for found in pattern.finditer(plain)]] |= flag
    flags[0xFEFF] |= _ODD
    flags[[ord(stop) for stop in STOPS]] |= _STOP
    flags[[ord(mark) for mark in PIECE_MARKS]] |= _MARK
    flags[ord(" ")], flags[ord("\n")], flags[0xFFFD] = _SPACE, _LINE, _LOST
    return flags


@functools.cache
def _word_table() -> NDArray[np.bool_]:
    """Whether a code point is part of a word, or a line break. Surrogates are not."""
    words = np.zeros(sys.maxunicode + 1, dtype=bool)
    for first in range(0, sys.maxunicode + 1, 0x800):  # in blocks, so that all of them need little memory
        if not 0xD800 <= first < 0xE000:
            letters = not_words().sub("", "".join(map(chr, range(first, first + 0x800))))
            words[np.frombuffer(letters.encode("utf-32-le"), "<u4")] = True
    words[ord("\n")] = True
    return words
