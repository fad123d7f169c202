"""Strings of a program, one on each line: text with tags of HTML, placeholders, and choices between texts (ICU)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import regex

from transformer_mt.text.copies import choices
from transformer_mt.text.documents.base import (
    LINE_END,
    Block,
    Format,
    Part,
    Piece,
    Write,
    blocks_of,
    with_addresses,
    writer,
)
from transformer_mt.text.documents.html import html_blocks

_ESCAPE = regex.compile(r"(?<!\\)(?<!\b[A-Za-z]:)(?:\\[nrt])+")  # a line break or tab; not that of C:\new
_TAG, _ENTITY = regex.compile("</?[a-zA-Z][^<>]*>|<!--"), regex.compile(r"&#?\w+;")
_DEEPEST = 10  # choices inside each other: only broken strings have more, and stay as they are there


class Strings(Format):
    """The texts of each line. A branch of a choice is a text of its own; its keys and braces stay as they are."""

    suffixes = ()

    def blocks(self, text: str) -> list[Block]:
        found, start = list[Block](), 0
        ends = [*((match.start(), match.end()) for match in LINE_END.finditer(text)), (len(text), len(text))]
        for number, (end, following) in enumerate(ends, start=1):
            for block in _blocks(text[start:end], start, False):
                found.append(replace(block, line=number))
            start = following
        return sorted(found, key=lambda block: block.start)


def _blocks(text: str, place: int, has_number: bool, depth: int = 0) -> Iterator[Block]:
    """The blocks of a line or branch that begins at this place of the document.

    has_number: whether `#` stands for a number
    """
    found = choices(text)
    masked = "".join(_masked(text, [choice.span() for choice in found]))
    start = 0
    for cut in (*_ESCAPE.finditer(masked), None):
        end = len(masked) if cut is None else cut.start()
        for block in _of_one_text(masked[start:end]):
            pieces = _with_numbers(block.pieces, masked[start:end]) if has_number else block.pieces
            moved = (one._replace(start=place + start + one.start, end=place + start + one.end) for one in pieces)
            yield replace(block, pieces=tuple(moved))
        start = end if cut is None else cut.end()
    for choice in found if depth < _DEEPEST else ():
        end = 0
        for first, last in sorted(choice.spans("branch")):
            if first >= end:  # the others are inside of this one
                yield from _blocks(text[first + 1 : last - 1], place + first + 1, choice["kind"] != "select", depth + 1)
                end = last


def _masked(text: str, spans: list[tuple[int, int]]) -> Iterator[str]:
    """The text, with a placeholder of the same length for each choice, which is code for the text around it."""
    place = 0
    for start, end in spans:
        yield f"{text[place:start]}{{{'x' * (end - start - 2)}}}"
        place = end
    yield text[place:]


def _of_one_text(text: str) -> list[Block]:
    """The blocks of a text. With tags or entities, signs are written as entities, but for `&` if it has this itself."""
    has_entities = _ENTITY.search(text) is not None
    if has_entities or _TAG.search(text):
        blocks = html_blocks(text, 0, len(text))
        is_bare = "&" in text and not has_entities
        return [replace(one, write=_with_ampersands(one.write)) for one in blocks] if is_bare else blocks
    pieces = list(with_addresses(Piece("text", 0, len(text), text), text))
    return blocks_of(pieces, text, lambda _: 1, writer(str))


def _with_ampersands(write: Write) -> Write:
    """A writer that writes `&` as it is."""

    def written(parts: Sequence[Part]) -> list[str] | None:
        texts = write(parts)
        if texts is None:
            return None
        kinds = [kind for kind, _ in parts]
        own = [text.replace("&amp;", "&") if kind == "text" else text for kind, text in zip(kinds, texts, strict=False)]
        return own + texts[len(own) :]  # quotes that an attribute had not in the source

    return written


def _with_numbers(pieces: tuple[Piece, ...], text: str) -> Iterator[Piece]:
    """The pieces, with each `#` as code."""
    for piece in pieces:
        source = text[piece.start : piece.end]
        if piece.kind != "text" or piece.text != source:
            yield piece
            continue
        start = piece.start
        for part in regex.splititer("(#)", source):
            if part:
                yield Piece("code" if part == "#" else "text", start, start + len(part), "" if part == "#" else part)
            start += len(part)
