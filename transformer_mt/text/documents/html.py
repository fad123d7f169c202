"""HTML: the text between tags, and of the attributes that people read."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser

from transformer_mt.text.copies import TEMPLATE
from transformer_mt.text.documents.base import (
    BOUNDARY,
    CODE,
    DEEPEST,
    INLINE,
    LINE_END,
    Block,
    Format,
    Part,
    Piece,
    Wrap,
    blocks_of,
    columns,
    line_numbers,
    runs_of,
    with_addresses,
    writer,
)

_OPAQUE = CODE | frozenset(
    ["pre", "script", "style", "template", "textarea", "object", "iframe", "canvas", "audio", "video"]
)
MARKS = frozenset(["img", "wbr", "input", "embed"])  # elements without an end, inside a sentence
_VOID = MARKS | frozenset(["area", "base", "br", "col", "hr", "link", "meta", "param", "source", "track"])
_PARAGRAPH_ENDS = """address article aside blockquote details div dl fieldset figcaption figure footer form
    h1 h2 h3 h4 h5 h6 header hgroup hr main menu nav ol p pre search section table ul"""
_ENDS = {  # elements whose end tag may be left out, and the start tags that end them (HTML standard, 13.1.2.4)
    tag: frozenset(ends.split())
    for tag, ends in (
        ("p", _PARAGRAPH_ENDS),
        ("li", "li"),
        *((tag, "dt dd") for tag in ("dt", "dd")),
        *((tag, "rt rp") for tag in ("rt", "rp")),
        ("option", "option optgroup hr"),
        ("optgroup", "optgroup hr"),
        *((tag, "td th tr tbody tfoot") for tag in ("td", "th")),
        ("tr", "tr tbody tfoot"),
        *((tag, "tbody tfoot") for tag in ("thead", "tbody", "tfoot")),
    )
}
_NO_ENDS = (INLINE - {"ruby"}) | {"p", "br"}  # end tags of these end no element around them
# Elements inside them end each other.
_LISTS = frozenset(["ul", "ol", "menu", "dl", "table", "select", "template", "button"])
_READ = frozenset({"alt", "title", "placeholder", "aria-label"})
_ATTRIBUTE = re.compile(r"""([^\s=>/"'<]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s>"']+))?""")
_TAG_END = re.compile(r"""(?:[^"'>]|"[^"]*"|'[^']*')*>""")
_TEMPLATE = re.compile(TEMPLATE)
_UNFINISHED = re.compile("<[!?]|</?[a-zA-Z]")
_TAG = re.compile(r"<(/?)([a-zA-Z][\w:.-]*)")


class Html(Format):
    """The text of a page. Tags, comments, scripts, styles and code stay as they are."""

    suffixes = (".html", ".htm", ".xhtml")

    def blocks(self, text: str) -> list[Block]:
        return html_blocks(text)


def html_blocks(text: str) -> list[Block]:
    """The blocks of a page, or of the HTML in another document, in the order of their first characters."""
    line, pieces = line_numbers(text), list(_pieces(text))
    found = (block for run in runs_of(pieces) for block in blocks_of(run, text, line, writer(_escaped)))
    blocks = [_wrapped(block, text) for block in found]
    for piece in pieces:
        if piece.kind != "text":
            blocks += attribute_blocks(text, piece, line(piece.start))
    return sorted(blocks, key=lambda block: block.start)


def _escaped(text: str) -> str:
    return escape(text, quote=False).replace("\xa0", "&nbsp;")


def attribute_blocks(text: str, tag: Piece, line: int) -> Iterator[Block]:
    """The blocks of a tag's attributes that people read: of the start tag, if the piece is a whole element.

    Nothing if the element must not be translated.
    """
    found = _attributes(text[tag.start : tag.end])
    for match in () if _keep(found) else found:
        if match[1].lower() in _READ and match[2]:
            quoted = match[2][0] in "'\""
            value = Piece("text", tag.start + match.start(2) + quoted, tag.start + match.end(2) - quoted)
            for block in blocks_of(list(_texts(value, text)), text, lambda _: line, writer(escape)):
                if quoted:
                    yield block
                elif (block.start, block.end) == (value.start, value.end):
                    yield replace(block, write=_in_quotes)


def _attributes(element: str) -> list[re.Match[str]]:
    """Names and values of the attributes of a start tag, or of that of an element; empty if there is none."""
    source = _without_templates(element)
    head = _TAG.match(source)
    if head is None or head[1]:
        return []
    end = _TAG_END.match(source, head.end())
    return list(_ATTRIBUTE.finditer(source, head.end(), len(source) if end is None else end.end()))


def _keep(attributes: Sequence[re.Match[str]]) -> bool:
    return any(_is_kept(match[1], (match[2] or "").strip("\"'")) for match in attributes)


def is_untranslated(tag: str) -> bool:
    """Whether a start tag says that its element must not be translated."""
    return _keep(_attributes(tag))


def _in_quotes(parts: Sequence[Part]) -> list[str]:
    """The value of an attribute that has no quotes in the source: a translation may have several words."""
    first, *others = writer(escape)(parts) or []
    return [f'"{first}', *others, '"']


def _is_kept(name: str, value: str) -> bool:
    """Whether an attribute says that its element must not be translated."""
    name = name.lower()
    return (name, value.lower()) == ("translate", "no") or (name == "class" and "notranslate" in value.split())


def _without_templates(text: str) -> str:
    """A text of the same length, with letters in place of the code of templates: tags inside it are part of it."""
    return _TEMPLATE.sub(lambda match: "x" * len(match[0]), text)


def _pieces(text: str) -> Iterator[Piece]:
    """Text, tags and marks; what separates blocks is a mark with the text `BOUNDARY`."""
    events = deque(_Scanner(_without_templates(text)).events)
    while events:
        kind, tag, first, last = events.popleft()
        piece = Piece("mark", first, last, BOUNDARY)
        if kind == "text":
            yield from _texts(piece._replace(kind="text", text=""), text)
        elif kind == "other":
            yield piece._replace(text="")
        elif kind == "open" and (tag in _OPAQUE or tag.endswith("!")):
            yield from _opaque(piece, tag.removesuffix("!"), events)
        elif tag in MARKS and kind != "close":
            yield piece._replace(text="")
        elif tag in INLINE and kind in ("open", "close"):
            yield piece._replace(kind="open" if kind == "open" else "close", text=tag)
        elif tag in INLINE:
            yield piece._replace(text="")
        else:
            yield piece


def _texts(piece: Piece, text: str) -> Iterator[Piece]:
    """A text without its addresses and the white space at its ends, and these."""
    for one in with_addresses(piece, text):
        if one.kind == "text":
            source = text[one.start : one.end]
            first = one.start + len(source) - len(source.lstrip())
            last = max(one.end - len(source) + len(source.rstrip()), first)
            for start, end in ((one.start, first), (first, last), (last, one.end)):
                if start < end:
                    yield Piece("text", start, end, unescape(text[start:end]))
        else:
            yield one


def _opaque(piece: Piece, tag: str, events: deque[tuple[str, str, int, int]]) -> Iterator[Piece]:
    """An element that is never translated, up to its end tag, or to what shows that this was left out."""
    last = piece.end
    within = [] if tag in _VOID else [tag]  # the open elements whose end tags may be left out, and this one first
    others = Counter[str]()  # the number of other open elements
    while within and events:
        kind, name = events[0][0], events[0][1].removesuffix("!")
        if kind == "open" and (ended := _ended_by(name, within)) is not None:
            del within[ended:]
        is_inside = name in within or name in _NO_ENDS or others[name] > 0
        if kind == "close" and tag in _ENDS and not is_inside:
            within.clear()  # it is the end of what contains this element
        if not within:
            break
        last = events.popleft()[3]
        if kind == "open" and name not in _VOID:
            if (name in _ENDS or name in _LISTS) and len(within) < DEEPEST:
                within.append(name)
            else:
                others[name] += 1
        elif kind == "close" and others[name]:
            others[name] -= 1
        elif kind == "close" and name in within:
            del within[len(within) - 1 - within[::-1].index(name) :]
    inside = tag in CODE or tag in INLINE or tag in MARKS
    yield piece._replace(kind="code" if inside else "mark", end=last, text="" if inside else BOUNDARY)


def _ended_by(name: str, within: Sequence[str]) -> int | None:
    """The place of the outermost open element that this start tag ends, because its own end tag was left out."""
    ended = None
    for place in reversed(range(len(within))):
        if name in _ENDS.get(within[place], ()):
            ended = place
        if within[place] in _LISTS:
            break
    return ended


class _Scanner(HTMLParser):
    """The parts of a page in order: kind (text, open, close, empty, other), name of the tag, and its span.

    A name ends in ! if the element has translate="no" or class="notranslate".
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.events: list[tuple[str, str, int, int]] = []
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.feed(
            re.sub("(?<!<!)(?<!<!-)--!>", "!-->", text)
        )  # which also ends a comment; the library does not know it everywhere
        if self.cdata_elem is None and _UNFINISHED.match(self.rawdata):
            self._add("other")  # up to the end of the page, as in a browser
        else:
            self.close()
        if not self.events or self.events[0][2] > 0:
            self.events.insert(0, ("other", "", 0, 0))
        ends = [*(event[2] for event in self.events[1:]), len(text)]
        self.events = [(kind, tag, first, last) for (kind, tag, first, _), last in zip(self.events, ends, strict=True)]

    def _add(self, kind: str, tag: str = "") -> None:
        line, column = self.getpos()
        if kind == "text" and self.events and self.events[-1][0] == "text":
            return  # one text, with the entities in it
        self.events.append((kind, tag, self._lines[line - 1] + column, 0))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kept = any(_is_kept(name, value or "") for name, value in attrs)
        self._add("open", tag + "!" * kept)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add("empty", tag)

    def handle_endtag(self, tag: str) -> None:
        self._add("close", tag)

    def handle_data(self, data: str) -> None:
        self._add("text")

    handle_entityref = handle_charref = handle_data  # type: ignore[assignment]

    def handle_comment(self, data: str) -> None:
        self._add("other")

    handle_decl = handle_pi = unknown_decl = handle_comment  # type: ignore[assignment]

    def parse_html_declaration(self, i: int) -> int:
        """As the standard says, `<![foo` is a comment; the library raises AssertionError in some versions of Python."""
        if self.rawdata.startswith("<![", i) and not self.rawdata.startswith("<![CDATA[", i):
            return int(self.parse_bogus_comment(i))
        return int(super().parse_html_declaration(i))


def _wrapped(block: Block, text: str) -> Block:
    """The block, with the line break of its source if it has one."""
    breaks = [
        one for piece in block.pieces if piece.kind == "text" for one in _BREAK.findall(text[piece.start : piece.end])
    ]
    if not breaks:
        return block
    width = max(columns(line.strip()) for line in LINE_END.split(text[block.start : block.end]))
    return Block(block.pieces, block.line, block.write, Wrap(width, breaks[0]))


_BREAK = re.compile(r"(?<![ \t])[ \t]*(?:\r\n|\r|\n)[ \t]*")
