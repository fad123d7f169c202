"""Markdown (CommonMark with tables, strike-through, formulas, front matter, and the blocks of `markdown_blocks`)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import regex
from markdown_it.common.utils import unescapeAll
from markdown_it.token import Token

from transformer_mt.text.documents.base import (
    CODE,
    INLINE,
    LINE_END,
    Block,
    Format,
    Part,
    Piece,
    Wrap,
    at_break,
    blocks_of,
    columns,
    line_numbers,
    with_addresses,
    writer,
)
from transformer_mt.text.documents.html import attribute_blocks, html_blocks
from transformer_mt.text.documents.markdown_parser import PARSER

_END = r"(?:\r\n|\r|\n)"
_FRONT_MATTER = re.compile(  # a page may also begin with a rule, so YAML must begin with a key
    rf"---[ \t]*{_END}(?:#[^\r\n]*{_END})*(?=[\w\"'.-]+[ \t]*:\s).*?{_END}(?:---|\.\.\.)[ \t]*(?:{_END}|$)"
    rf"|\+\+\+[ \t]*{_END}.*?{_END}\+\+\+[ \t]*(?:{_END}|$)",
    re.S,
)
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)")
_IMAGE = regex.compile(r"!(\[(?:[^\[\]\\`<]++|\\.|`[^`]*`|<[^<>]*>|(?1))*+\])(?=[\[(])", regex.S)
_MARKUP = frozenset("`<*_[]\\")
_TITLE = re.compile(r"""\s("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\))\s*\)$""", re.S)
_SPECIAL = re.compile(r"([\\`*_\[\]<>$~|]|&(?=#?\w+;))")
_BLOCK_START = re.compile(r"^(\s*)(?:([-+*#>=~`|:])|(\d+)([.)]))")


class Markdown(Format):
    """Markdown, with the HTML in it."""

    suffixes = (".md", ".markdown", ".mdown", ".mkd")

    def blocks(self, text: str) -> list[Block]:
        return sorted(_Reader(text).blocks(), key=lambda block: (block.start, -block.end))


class _Reader:
    """The blocks of one document."""

    def __init__(self, text: str) -> None:
        matter = _FRONT_MATTER.match(text)
        self.text, self.first = text, matter.end() if matter is not None else 0
        self.lines = [match.span() for match in _LINES.finditer(text, self.first)]
        self.starts = [start for start, _ in self.lines]
        self.line = line_numbers(text)
        self.env: dict[str, Any] = {}

    def blocks(self) -> Iterator[Block]:
        table, row, column = range(0), 0, 0  # lines of the last table; the line, and where the next cell begins
        for token in PARSER.parse(self.text[self.first :], self.env):
            if token.type == "tr_open" and token.map is not None:
                row, column = token.map[0], 0
            elif token.type == "html_block" and token.map is not None:
                yield from self._html(token.content.rstrip("\n"), token.map[0])
            elif token.type == "inline" and token.map is not None and token.content.strip():
                in_cell = token.map[0] in table
                if in_cell:
                    where = self._cell(token.content, row, column)
                    column = where[-1] + 1 - self.lines[row][0] if where else column
                else:
                    where = self._places(token.content, token.map[0])
                if where:
                    yield from self._inline(token.content, token.children or [], where, in_cell)
            elif token.type == "table_open":
                table = range(*(token.map or (0, 0)))

    def _places(self, content: str, line: int) -> list[int]:
        """For each character of a paragraph or heading its place in the document, and one more for its end."""
        places: list[int] = []
        for number, part in enumerate(content.split("\n"), start=line):
            start, end = self.lines[number]
            text = part.strip()
            found = self.text.rfind(text, start, end) if text else start
            if found < 0:
                return []
            lead = len(part) - len(part.lstrip())
            places += [found] * lead + list(range(found, found + len(text)))
            places += [found + len(text)] * (len(part) - lead - len(text) + 1)  # the end of the line
        return places

    def _html(self, content: str, line: int) -> Iterator[Block]:
        """The blocks of a piece of HTML that begins in this line."""
        where = self._places(content, line)
        for block in html_blocks(content) if where else ():
            pieces = tuple(one._replace(start=where[one.start], end=where[one.end - 1] + 1) for one in block.pieces)
            moved = Block(pieces, self.line(pieces[0].start), block.write)
            yield self._wrapped(moved) if block.wrap is not None else moved

    def _cell(self, content: str, line: int, column: int) -> list[int]:
        """As `_places`, for a cell: `\\|` in the document is `|` in the content."""
        start, end = self.lines[line]
        pattern = re.escape(content).replace(r"\|", r"(?:\\)?\|")
        match = re.compile(pattern).search(self.text, start + column, end)
        if match is None:
            return []
        places, place = [], match.start()
        for letter in content:
            place += letter == "|" and self.text.startswith("\\|", place)
            places.append(place)
            place += 1
        return [*places, place]

    def _inline(self, content: str, children: list[Token], where: list[int], in_cell: bool) -> Iterator[Block]:
        """The blocks of a run of inline markup: cut at hard line breaks, and the texts of images and titles."""
        runs: list[list[Piece]] = [[]]
        depth = 0
        for piece in pieces_of(content, children):
            moved = piece._replace(start=where[piece.start], end=where[piece.end - 1] + 1)
            if piece.kind == "mark" and piece.text == _HARD_BREAK:
                moved = moved._replace(end=where[piece.end], text="")
            depth += {"open": 1, "close": -1}.get(piece.kind, 0)
            if piece.kind == "mark" and piece.text == _HARD_BREAK and not depth:
                runs.append([])
            else:
                runs[-1].append(moved)
            yield from self._hidden(content, piece, where)

        for run in runs:
            for block in blocks_of(
                run, self.text, self.line, self._write_escaped if in_cell or len(runs) > 1 else self._write
            ):
                yield self._wrapped(block) if not in_cell else block

    def _write(self, parts: Sequence[Part], is_part: bool = False) -> list[str] | None:
        """With as few escapes as possible: the first source that reads as these parts. None if none does.

        is_part: whether it is a part of a paragraph, or a cell, so that other text follows
        """
        plain = [text for _, text in parts]
        escaped = [_SPECIAL.sub(r"\\\1", text) if kind == "text" else text for kind, text in parts]
        for texts in [escaped] if is_part else [plain, escaped]:
            guarded = _BLOCK_START.sub(_guarded, texts[0], count=1) if parts[0][0] == "text" else texts[0]
            for first in (guarded, texts[0]) if is_part else (texts[0], guarded):
                if self._reads("".join([first, *texts[1:]]), parts, is_part):
                    return [first, *texts[1:]]
        return None

    def _write_escaped(self, parts: Sequence[Part]) -> list[str] | None:
        return self._write(parts, is_part=True)

    def _reads(self, source: str, parts: Sequence[Part], is_part: bool) -> bool:
        """Whether a source is a paragraph of these parts, and nothing else."""
        tokens = PARSER.parse(source, dict(self.env))
        if [token.type for token in tokens] != ["paragraph_open", "inline", "paragraph_close"] and not is_part:
            return False
        wanted = [
            piece
            for kind, text in parts
            for piece in (self._parts(text) if kind in ("code", "mark") else [(kind, text)])
        ]
        return _normal(self._parts(source)) == _normal(wanted)

    def _parts(self, source: str) -> list[Part]:
        (inline,) = PARSER.parseInline(source, self.env)
        found = pieces_of(source, inline.children or [])
        return [(one.kind, one.text if one.kind == "text" else source[one.start : one.end]) for one in found]

    def _hidden(self, content: str, piece: Piece, where: list[int]) -> Iterator[Block]:
        """The text of an image, and the title of a link or an image."""
        source = content[piece.start : piece.end]
        at = where[piece.start]
        if piece.kind != "text" and source.startswith("<"):
            span = piece._replace(start=at, end=where[piece.end - 1] + 1)
            yield from attribute_blocks(self.text, span, self.line(at))
            return
        title = _TITLE.search(source) if piece.kind != "text" and source.endswith(")") else None
        if title is not None and (piece.kind == "close" or source.startswith("![")):
            yield from self._plain(content, piece.start + title.start(1) + 1, piece.start + title.end(1) - 1, where)
        alt = _IMAGE.match(source)
        if alt is not None and not source.endswith("[]"):
            start, end = piece.start + alt.start(1) + 1, piece.start + alt.end(1) - 1
            shown = self._shown(content[start:end])
            if shown is not None or _MARKUP.isdisjoint(content[start:end]):
                yield from self._plain(content, start, end, where, shown)

    def _shown(self, alt: str) -> str | None:
        """The text of an image as a page shows it, where emphasis means nothing; None if it has code or an address."""
        (inline,) = PARSER.parseInline(alt, self.env)
        pieces = list(pieces_of(alt, inline.children or []))
        if not all(one.kind in ("text", "open", "close") for one in pieces):
            return None
        return "".join(one.text for one in pieces if one.kind == "text")

    def _plain(self, content: str, start: int, end: int, where: list[int], shown: str | None = None) -> Iterator[Block]:
        """shown: the text, if it is not what is written in the document without its escapes"""
        if "\n" in content[start:end] or start == end:
            return
        whole = Piece("text", start, end, content[start:end])
        if shown is None:
            found = [one._replace(text=unescapeAll(one.text)) for one in with_addresses(whole, content)]
        else:
            found = [whole._replace(text=shown)]
        pieces = [one._replace(start=where[one.start], end=where[one.end - 1] + 1) for one in found]
        yield from blocks_of(pieces, self.text, self.line, writer(_escaped_title))

    def _wrapped(self, block: Block) -> Block:
        source = self.text[block.start : block.end]
        found = LINE_END.search(source)
        if found is None:
            return block
        second = self.lines[bisect_right(self.starts, block.start + found.end() - 1)]
        rest = self.text[second[0] : second[1]]
        prefix = re.match(r"[ \t>]*", rest)
        width = max(map(columns, LINE_END.split(source)))
        return Block(block.pieces, block.line, block.write, Wrap(width, found[0] + (prefix[0] if prefix else "")))


_HARD_BREAK = "\n"


def pieces_of(content: str, children: Sequence[Token]) -> Iterator[Piece]:
    """The tokens of an inline run as pieces; places are those in `content`."""
    cursor, in_autolink = 0, False
    for token in children:
        if in_autolink:
            in_autolink = token.type != "link_close"
            continue
        start, end = token.meta.get("span", (cursor, cursor + len(token.content)))
        if token.type == "text" and not token.meta.get("mark"):
            start, end = cursor, cursor + len(token.content)
        if token.type == "text" and not token.content:
            continue
        if token.type in ("strong_open", "strong_close"):
            start, end = (start - 1, end) if token.nesting > 0 else (start, end + 1)
        if token.type == "link_open":
            if token.markup == "autolink":
                yield Piece("code", start, end)
                cursor, in_autolink = end, True
                continue
            end = start + 1
        elif token.type == "link_close":
            start = cursor + (content[cursor : cursor + 1] != "]") * max(content.find("]", cursor) - cursor, 0)
        yield from _piece(token, content, start, end)
        cursor = end


def _piece(token: Token, content: str, start: int, end: int) -> Iterator[Piece]:
    """The pieces of one token."""
    if token.type == "text" and not token.meta.get("mark"):
        yield Piece("text", start, end, content[start:end])
    elif token.type in ("text", "text_special"):
        yield Piece("text", start, end, token.content)
    elif token.type == "softbreak":
        yield Piece("text", start, end, at_break(content[start - 1 : start], content[end : end + 1]))
    elif token.type == "hardbreak":
        yield Piece("mark", start, end, _HARD_BREAK)
    elif token.type == "link_close":
        source = content[start:end]
        reference = _label(content, start) if source in ("]", "][]") else None
        yield Piece("close", start, end, "link", None if reference is None else f"][{reference}]")
    elif token.nesting:
        yield Piece("open" if token.nesting > 0 else "close", start, end, token.type.rpartition("_")[0])
    elif token.type == "html_inline":
        yield _html(content, start, end)
    else:
        yield Piece("code" if token.type in ("code_inline", "tmt_code") else "mark", start, end)


def _html(content: str, start: int, end: int) -> Piece:
    tag = _TAG.match(content, start)
    if tag is None or tag[2].lower() not in INLINE | CODE or content[start:end].endswith("/>"):
        is_break = tag is not None and tag[2].lower() == "br"
        return Piece("mark", start, end, _HARD_BREAK if is_break else "")
    return Piece("close" if tag[1] else "open", start, end, tag[2].lower())


def _label(content: str, end: int) -> str:
    """The label of a link that ends here, without its opening bracket."""
    depth, place = 1, end
    while place > 0 and depth:
        place -= 1
        depth += {"]": 1, "[": -1}.get(content[place], 0)
    return content[place + 1 : end]


def _escaped_title(text: str) -> str:
    return re.sub(r"([\\\[\]\"'()|<>`*_]|&(?=#?\w+;))", r"\\\1", text)


def _guarded(match: re.Match[str]) -> str:
    """The start of a paragraph that would otherwise be an item, a heading or a quotation."""
    return f"{match[1]}\\{match[2]}" if match[2] else f"{match[1]}{match[3]}\\{match[4]}"


def _normal(parts: Sequence[Part]) -> list[Part]:
    """As one text, with single spaces."""
    text = "".join(f"{text}" if kind == "text" else f"\0{kind[0]}\0{text}\0" for kind, text in parts)
    return [("text", " ".join(text.split()))]
