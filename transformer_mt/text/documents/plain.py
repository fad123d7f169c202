"""Plain text: paragraphs, whose lines may be wrapped."""

from __future__ import annotations

import re

from transformer_mt.text.documents.base import Block, Format, Piece, Wrap, has_letters, with_addresses, writer

_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|$)")
_ITEM = re.compile(r"(?:[-*+•–·]|\d{1,3}[.)])\s+")
_ENDS = re.compile(r"[.!?:;…。！？][\"'”’»“)\]]*$")


class PlainText(Format):
    """A paragraph ends at an empty line, another indentation, an item of a list, or a sentence on a short line."""

    suffixes = (".txt", ".text")

    def blocks(self, text: str) -> list[Block]:
        paragraphs: list[list[tuple[int, int, int]]] = []  # lines: number, first and last character
        before = ""
        for number, match in enumerate(_LINE.finditer(text), start=1):
            line = match[1].strip("\ufeff \t\f\v\u3000\xa0")
            start = match.start() + match[1].find(line) if line else match.start()
            item = _ITEM.match(line)
            if item is not None:
                start += item.end()
            if not has_letters(line):  # an empty line, or a rule
                before = ""
                continue
            if not before or item is not None or _starts_new(before, match[1], paragraphs[-1]):
                paragraphs.append([])
            paragraphs[-1].append((number, start, match.start() + len(match[1].rstrip())))
            before = match[1]
        return [block for lines in paragraphs if (block := _block(text, lines)) is not None]


def _starts_new(before: str, line: str, paragraph: list[tuple[int, int, int]]) -> bool:
    """Whether a line begins a new block: it is indented in another way, or the line before it ended early."""
    indents = [len(one) - len(one.lstrip()) for one in (before, line)]
    is_item = _ITEM.match(before.lstrip())
    if indents[0] != indents[1] and len(paragraph) > 1:
        return True
    if indents[0] > indents[1] and is_item is None and len(paragraph) == 1:
        return False  # the first line of a paragraph may be indented
    room = max([len(line.rstrip()), *(end - start for _, start, end in paragraph)])
    return bool(_ENDS.search(before.rstrip())) and len(before.rstrip()) + 1 + len(line.split()[0]) <= room


def _block(text: str, lines: list[tuple[int, int, int]]) -> Block | None:
    pieces = []
    for (_, start, end), following in zip(lines, [*lines[1:], None], strict=True):
        pieces += with_addresses(Piece("text", start, end, text[start:end]), text)
        if following is not None:
            pieces.append(Piece("text", end, following[1], " "))
    if not has_letters("".join(piece.text for piece in pieces)):
        return None
    wrap = None
    if len(lines) > 1:
        wrap = Wrap(max(end - start for _, start, end in lines), text[lines[0][2] : lines[1][1]])
    return Block(tuple(pieces), lines[0][0], writer(str), wrap)
