"""Plain text: paragraphs, which may be wrapped or quoted, items of lists, and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple
from unicodedata import east_asian_width

from transformer_mt.text.documents.base import (
    ADDRESS,
    END_OF_SENTENCE,
    ITEM,
    Block,
    Format,
    Piece,
    Wrap,
    at_break,
    columns,
    has_letters,
    with_addresses,
    writer,
)
from transformer_mt.text.script import SPACELESS_LETTER

_BREAKS = "\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_LINE = re.compile(rf"([^{_BREAKS}]*)(\r\n|[{_BREAKS}]|$)")
_QUOTED = re.compile(r"(?:[ \t]*>)+")
_ITEM = re.compile(rf"(?:{ITEM})\s+")
_BETWEEN_CELLS = re.compile(r"\t|[ \xa0]{3,}|(?<!\S)\|(?!\S)")
_SPACE = "\ufeff \t\u3000\xa0"
_LONG_WORD = 15  # letters of Thai, Lao, Khmer or Burmese, whose words nothing separates
_NARROWEST, _WIDEST = 40, 160  # columns of text that somebody has wrapped


class _Line(NamedTuple):
    """A line with its text, or a cell of a line.

    number:     from 1
    start, end: of its text in the document
    columns:    that the line takes
    depth:      signs of quotation before it
    indent:     characters of white space before the text
    is_item:    whether it begins an item of a list
    """

    number: int
    start: int
    end: int
    columns: int
    depth: int
    indent: int
    is_item: bool


class PlainText(Format):
    """A line goes on in the next one if the next word had no place in it; see `_goes_on`."""

    suffixes = (".txt", ".text")

    def blocks(self, text: str) -> list[Block]:
        return [
            block
            for lines in _neighbours(text)
            for paragraph in _paragraphs(lines, text)
            if (block := _block(text, paragraph)) is not None
        ]


def _neighbours(text: str) -> Iterator[list[_Line]]:
    """Lines that may be a paragraph: neighbours with the same quotation and indentation. A cell is alone."""
    lines, number = list[_Line](), 1
    for match in _LINE.finditer(text):
        quoted = _QUOTED.match(match[1])
        after = match.start() + (quoted.end() if quoted else 0)
        content = text[after : match.end(1)].strip(_SPACE)
        start = text.index(content, after)
        item = _ITEM.match(content)
        first = start + (item.end() if item else 0)
        line = _Line(
            number,
            first,
            start + len(content),
            columns(match[1].rstrip()),
            quoted[0].count(">") if quoted else 0,
            start - after,
            item is not None,
        )
        cells = _cells(text, first, line.end)
        is_whole = cells == [(first, line.end)]
        if lines and (not is_whole or line.is_item or not _fits(lines, line)):
            yield lines
            lines = []
        if is_whole:
            lines.append(line)
        else:
            yield from ([line._replace(start=start, end=end)] for start, end in cells)
        if match[2] not in ("\n", "\r\n", "\r") and lines:
            yield lines
            lines = []
        number += match[2] in ("\n", "\r\n", "\r")


def _cells(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The parts of a line with letters, between tabs and other signs of a table."""
    ends = [match.span() for match in _BETWEEN_CELLS.finditer(text, start, end)]
    cells = []
    for first, last in zip([start, *(after for _, after in ends)], [*(before for before, _ in ends), end], strict=True):
        content = text[first:last].strip(_SPACE)
        if has_letters(content):
            begin = text.index(content, first)
            cells.append((begin, begin + len(content)))
    return cells


def _fits(lines: Sequence[_Line], line: _Line) -> bool:
    """Whether a line may belong to the same paragraph. The first line may be indented in another way."""
    return line.depth == lines[-1].depth and (line.indent == lines[-1].indent or len(lines) == 1)


def _paragraphs(lines: Sequence[_Line], text: str) -> Iterator[list[_Line]]:
    """Cut where lines end early. If most do, and no sentence ends, they are an address or a list: each stands alone."""
    wrapped = [line.columns for line in lines if not ADDRESS.search(text, line.start, line.end)]
    width = max([_NARROWEST, *wrapped])
    joints = [_goes_on(text, line, following, width) for line, following in pairwise(lines)]
    has_sentences = any(END_OF_SENTENCE.search(text, line.start, line.end) for line in lines)
    is_wrapped = width <= _WIDEST and (has_sentences or 2 * sum(joints) >= len(joints))
    paragraph = [lines[0]]
    for line, joined in zip(lines[1:], joints, strict=True):
        if not (joined and is_wrapped):
            yield paragraph
            paragraph = []
        paragraph.append(line)
    yield paragraph


def _goes_on(text: str, line: _Line, following: _Line, width: int) -> bool:
    """Whether the next line belongs to the same paragraph.

    Its first word had no place in this line, or it is written small and this line is at least half full.
    """
    word = text[following.start : following.end].split()[0]
    if SPACELESS_LETTER.match(word):  # Chinese and Japanese lines may end at any letter, but not before a full stop
        word = word[: 2 if east_asian_width(word[0]) == "W" else _LONG_WORD]
    return line.columns + 1 + columns(word) > width or (word[0].islower() and 2 * line.columns >= width)


def _block(text: str, lines: Sequence[_Line]) -> Block | None:
    pieces: list[Piece] = []
    for line, following in zip(lines, [*lines[1:], None], strict=True):
        pieces += with_addresses(Piece("text", line.start, line.end, text[line.start : line.end]), text)
        if following is not None:
            pieces.append(Piece("text", line.end, following.start, at_break(text[line.end - 1], text[following.start])))
    if not has_letters("".join(piece.text for piece in pieces)):
        return None
    wrap = None
    if len(lines) > 1:
        wrap = Wrap(max(line.columns for line in lines), text[lines[0].end : lines[1].start])
    return Block(tuple(pieces), lines[0].number, writer(str), wrap)
