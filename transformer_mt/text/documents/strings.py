"""Strings of a program, one on each line: text with tags, placeholders, escapes, and choices between texts (ICU)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import unescape

import regex

from transformer_mt.text.copies import AT_END, choices
from transformer_mt.text.documents.base import (
    ADDRESS,
    BOUNDARY,
    CODE,
    LINE_END,
    Block,
    Format,
    Piece,
    blocks_of,
    runs_of,
    writer,
)
from transformer_mt.text.documents.html import MARKS, attribute_blocks, is_untranslated
from transformer_mt.text.entities import tags

# Placeholders and escapes that are too doubtful in other texts, and paths, which may have \n and \t inside.
_NOT_IN_PATH = r"\s\\<>:\"|?*()\[\]{}"
# A path ends where the next word begins without a space, as in C:\Users\x를, and before the full stop of a sentence.
_LAST = rf"(?:[^\x00-\x7f\s]++|[[!-~]--[{_NOT_IN_PATH}]]*(?<![.,;!]))"
_PATH = rf"(?:[^{_NOT_IN_PATH}]++\\)++{_LAST}"
_KEPT = regex.compile(
    r"(?<![\p{N}%])%(?:\(\w+\))?(?:\d+\$)?[-+#0,(]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh?|ll?|[jztLqv])?"
    rf"(?:[tT][a-zA-Z]|[diouxXeEfFgGaAcCsSpnb@%]){AT_END}"
    rf"|%#@\w+@|(?<![\p{{N}}%])%L?\d{{1,2}}{AT_END}|\$t\([^()]*\)|\$\w+\$|@:[\w.]+|\\u[0-9a-fA-F]{{4}}"
    rf"|(?:(?<![\p{{L}}\p{{N}}])|(?<=\\[nrt]))[A-Za-z]:\\(?:{_PATH}|[a-z][a-z0-9_.-]+(?<!\.)(?!\\){AT_END})"
    rf"|\\\\[\w.$-]+\\(?:{_PATH}|{_LAST})",
    regex.V1,
)
# The texts on both sides are translated alone.
_CUT = regex.compile(r"(?<!\\)(?:\\\\)*+\K(?:\\[nrt])+|\t+|<!\[CDATA\[|\]\]>")
_ENTITY = regex.compile(r"&#?\w+;")
_BLANK, _LONGEST_BLANK = regex.compile(r"(?i)\s++|&(?:nbsp|#160|#xA0);"), len("&nbsp;")
_CHOICE = regex.compile(r"(?i)\{\s*[\w.]+\s*,\s*(?:plural|select\w*|choice)\b")
_QUOTED = regex.compile(r"'[{}#|]")  # ICU's quotes: what they enclose is no syntax
_CODE = CODE | {"pre", "script", "style", "ph", "bpt", "ept", "it", "ut"}
_ALONE = {"br", "hr", "p", "div", "li", "ul", "ol", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "td", "th"} | {
    *("blockquote", "body", "center", "html", "option", "section", "title", "h1", "h2", "h3", "h4", "h5", "h6")
}
_QUOTES = {'"': {ord('"'): "&quot;"}, "'": {ord("'"): "&#39;"}}  # how an attribute has its own quotes in its value
_DEEPEST = 10  # choices inside each other: only broken strings have more
Span = tuple[int, int]


class Strings(Format):
    """The texts of each line. A branch of a choice is a text of its own; its keys and braces stay as they are."""

    suffixes = ()

    def blocks(self, text: str) -> list[Block]:
        found, start = list[Block](), 0
        ends = [*(match.span() for match in LINE_END.finditer(text)), (len(text), len(text))]
        for number, (end, following) in enumerate(ends, start=1):
            if line := text[start:end]:
                found += (_moved(replace(one, line=number), start) for one in _blocks(line, _signs_of(line)))
            start = following
        return sorted(found, key=lambda block: block.start)


def _moved(block: Block, places: int) -> Block:
    pieces = (one._replace(start=places + one.start, end=places + one.end) for one in block.pieces)
    return replace(block, pieces=tuple(pieces))


def _blocks(text: str, signs: Mapping[int, str], has_number: bool = False, depth: int = 0) -> Iterator[Block]:
    """The blocks of a line, a branch or the value of an attribute.

    signs:      how characters are written, by their numbers
    has_number: whether `#` stands for a number
    """
    found, write = choices(text), writer(lambda plain: plain.translate(signs))
    spans = [choice.span() for choice in found]
    if problem := _problem(text, spans):
        yield _left(text, 0, len(text), problem)
        return
    pieces, quoted = list(_pieces(text, spans, has_number)), text.replace('\\"', ' "')
    for run in runs_of(pieces):
        yield from blocks_of(run, text, lambda _: 1, write)
    for piece in pieces:
        if piece.kind != "text" and text.startswith("<", piece.start):
            for value in attribute_blocks(quoted, piece, 1):
                if (quote := _QUOTES.get(text[value.start - 1])) is None:
                    yield value
                    continue
                inside = _blocks(text[value.start : value.end], {**signs, **quote}, has_number, depth + 1)
                yield from (_moved(block, value.start) for block in inside)
    if depth == _DEEPEST:
        yield from (_left(text, *span, "it is in too many other choices") for span in spans)
        return
    for choice in found:
        end = 0
        for first, last in sorted(choice.spans("branch")):
            if first >= end:  # the others are inside of this one
                branch = _blocks(text[first + 1 : last - 1], signs, has_number or choice["kind"] != "select", depth + 1)
                yield from (_moved(block, first + 1) for block in branch)
                end = last


def _left(text: str, start: int, end: int, why: str) -> Block:
    return Block((Piece("text", start, end, text[start:end]),), 1, writer(str), left=why)


def _problem(text: str, found: Sequence[Span]) -> str:
    """Why a text with choices is not translated; empty if it can be. found: the choices that are understood"""
    starts = [match.start() for match in _CHOICE.finditer(text)] if "{" in text else []
    if starts and _QUOTED.search(text):
        return "it has quoted braces beside a choice"
    return "its choice is not complete" if any(not _is_inside(start, found) for start in starts) else ""


def _pieces(text: str, choices_at: Sequence[Span], has_number: bool) -> Iterator[Piece]:
    """Text, markup and code from left to right; what separates blocks is a mark with the text `BOUNDARY`."""
    special = [Piece("code", *span) for span in choices_at]
    number = regex.finditer("(?<!&)#", text) if has_number else ()
    for pieces in (
        _tags(text),
        (Piece("code", *one.span()) for one in ADDRESS.finditer(_CUT.sub(lambda cut: " " * len(cut[0]), text))),
        (Piece("code", *one.span()) for one in (*_KEPT.finditer(text), *number)),
        (Piece("mark", *one.span(), BOUNDARY) for one in _CUT.finditer(text)),
    ):
        taken = _apart((piece.start, piece.end) for piece in special)
        special += [piece for piece in pieces if not _is_inside(piece.start, taken)]
    place = 0
    for piece in sorted(special, key=lambda one: (one.start, -one.end)):
        if piece.start >= place:  # the others are inside of code
            yield from _texts(text, place, piece.start)
            yield piece
            place = piece.end
    yield from _texts(text, place, len(text))


def _apart(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, without those that begin inside of another one."""
    found = list[Span]()
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not found or start >= found[-1][1]:
            found.append((start, end))
    return found


def _is_inside(place: int, spans: Sequence[Span]) -> bool:
    """Whether a place is in one of these spans, which are in order and apart from each other."""
    index = bisect_right(spans, place, key=lambda span: span[0])
    return index > 0 and place < spans[index - 1][1]


def _tags(text: str) -> Iterator[Piece]:
    """The tags and comments; an element of code is one piece."""
    found = tags(text)
    closed = {tag["name"].lower(): tag.start() for tag in found if tag["ends"]}  # where the last one of a name ends
    opened: tuple[str, int] | None = None  # an element of code
    for tag in found:
        name, is_end = tag["name"].lower(), bool(tag["ends"])
        if opened is not None:
            if is_end and name == opened[0]:
                yield Piece("code", opened[1], tag.end())
                opened = None
        elif name in _ALONE:
            yield Piece("mark", *tag.span(), BOUNDARY)
        elif tag[0].endswith("/>") or name in MARKS:
            yield Piece("mark", *tag.span())
        elif is_end:
            yield Piece("close", *tag.span(), name)
        elif (name in _CODE or is_untranslated(tag[0].replace('\\"', ' "'))) and closed.get(name, -1) > tag.start():
            opened = name, tag.start()
        else:
            yield Piece("open", *tag.span(), name)
    end = 0
    while (start := text.find("<!--", end)) >= 0 and (end := text.find("-->", start) + 3) > 2:
        yield Piece("mark", start, end)


def _texts(text: str, start: int, end: int) -> Iterator[Piece]:
    """A text without the white space at its ends, and this."""
    first, last = start, end
    while first < last and (found := _BLANK.match(text, first, last)):
        first = found.end()
    while first < last and (
        text[last - 1].isspace() or _BLANK.fullmatch(text, max(first, last - _LONGEST_BLANK), last)
    ):
        last -= 1 if text[last - 1].isspace() else _LONGEST_BLANK
    for one, other in ((start, first), (first, last), (last, end)):
        if one < other:
            shown = _ENTITY.sub(lambda entity: unescape(entity[0]), text[one:other])
            yield Piece("text", one, other, regex.sub(r"""\\(["'])""", r"\1", shown))


def _signs_of(line: str) -> dict[int, str]:
    """How characters are written in a line: with the entities and escapes that it has itself; `&` may be bare there."""
    entities = [entity for entity in _ENTITY.findall(line) if unescape(entity) != entity]
    signs = {ord(character): entity for entity in entities if len(character := unescape(entity)) == 1}
    if entities or tags(line):
        signs.setdefault(ord("<"), "&lt;")
        if entities or "&" not in line:
            signs.setdefault(ord("&"), "&amp;")
    return signs | {ord(escape[1]): escape for escape in regex.findall(r"""\\["']""", line)}
