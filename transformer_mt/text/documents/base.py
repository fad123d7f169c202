"""Blocks of a document: their text, their markup, and where they are in the file.

A format finds the blocks. Everything else of the file, and all markup inside a block, stays as it is, byte for byte.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple
from unicodedata import east_asian_width

import regex

from transformer_mt.text.copies import copied
from transformer_mt.text.script import COMMAS, ENDS, SPACELESS

# Elements of HTML inside a sentence, and those that are never translated.
INLINE = frozenset(
    (  # noqa: SIM905
        "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark q rb rp rt ruby s small span strike"
        " strong sub sup time tt u"
    ).split()
)
CODE = frozenset(["code", "kbd", "math", "samp", "svg", "var"])
Kind = Literal["text", "code", "mark", "open", "close"]
Part = tuple[str, str]  # the kind of a piece, and text
Write = Callable[[Sequence[Part]], "list[str] | None"]
ADDRESS = copied(in_markup=True)
BOUNDARY = "\0"  # text of a mark that separates blocks
DEEPEST = 100  # levels of markup in a block: only broken pages have more, and are cut there
LINE_END = regex.compile(r"\r\n|\r|\n")
END_OF_SENTENCE = regex.compile(rf"[.!?…。！？{ENDS}][\"'”’»“)\]」』）]*$")
_LETTER = regex.compile(r"\p{L}")
_BREAK = regex.compile(rf"(?<=[{SPACELESS}、。，！？：；」』）])[ \t]*(?:\r\n|\r|\n)\s*(?=[{SPACELESS}、。，「『（])")
_PLAIN = frozenset("b i em strong span u font big small".split())  # tags that only change how a text looks  # noqa: SIM905
_PUNCTUATION = regex.compile(rf"[\s.,;:!?…。、，！？：；\"'“”„‘’«»「」『』()（）{ENDS}{COMMAS}]*")  # of a sentence
_NOTE = regex.compile(r"[\[(]?(?:\d{1,3}|[*†‡§]{1,3})[\])]?")  # a reference to a footnote
_NOTED = regex.compile(
    rf"(?:[\p{{L}}\p{{M}}]{{3}}|[\p{{Hangul}}\p{{Han}}]|[.,;:!?…。！？\"”’»{ENDS}{COMMAS}])$"
)  # other signs after a word: km²
_TOUCHED = regex.compile(r"[^\s(\[]$")
_GOES_ON = regex.compile(r"[\p{L}\p{N}(\-]")
_SYMBOL = "•·◦▪▫■□●○◆◇▶►➤→※✓✔☑★☆①-⑳❶-❿➀-➓㉠-㉻"  # before an item of a list
_NUMBER_OF_ITEM = regex.compile(
    rf"\s*(?:[\[(]?\d{{1,3}}(?:\.\d{{1,3}})*[\])]?[.):]|[\[(]\d{{1,3}}[\])]|[{_SYMBOL}])\s*"
)
_SYLLABLE = "[가나다라마바사아자차카타파하]"  # of Korean lists
_ITEM = (  # the sign of an item of a list; not `1.`, which may be a date or an ordinal number
    rf"[{_SYMBOL}]|\d{{1,3}}(?:\.\d{{1,3}})+\.(?!\s*\d)|\d{{1,3}}(?:-\d{{1,3}})?\)|\(?[a-zA-Zء-ي]\)|[\[(]\d{{1,3}}[\])]"
    rf"|\(?{_SYLLABLE}\)|{_SYLLABLE}\.|(?:II|III|IV|VI{{1,3}}|IX)\.|[IVX]{{1,4}}\)"
)
ITEM = rf"[-*+–]|\d{{1,3}}\.|{_ITEM}"  # in plain text
_FIRST = regex.compile(rf"\s*(?:{_ITEM}|&(?:bull|middot|rarr|#8226|#x2022);)(?:(?:\s|&nbsp;)+|$)")
_FIRST_SHOWN = regex.compile(rf"\s*(?:{_ITEM})(?:\s+|$)")


class Piece(NamedTuple):
    """A part of a block, from the character `start` of the document to `end`.

    kind:    text;
             code, which stands for a word and is never translated (code, an address, a formula);
             mark, which stands for no word (an image, a comment); or the opening or closing part of paired markup
    text:    of a text: what a reader sees, without escapes
    written: of markup: what is written in its place; None: the same as in the document
    """

    kind: Kind
    start: int
    end: int
    text: str = ""
    written: str | None = None


class Wrap(NamedTuple):
    """How a block with several lines is written: the longest line, and what separates two lines."""

    width: int
    separator: str


@dataclass(frozen=True)
class Block:
    """A text that is translated as a whole: a paragraph, a heading, a cell, the text of an image.

    pieces: from left to right; each opening part has its closing part, well nested
    line:   number of its first line, from 1
    write:  turns the parts of the translated block (kind, and text or markup) into source, with escapes for the text;
            None if this markup cannot stand there
    wrap:   None for a block of one line
    left:   why it is left as it is; empty: it is translated
    """

    pieces: tuple[Piece, ...]
    line: int
    write: Write
    wrap: Wrap | None = None
    left: str = ""

    @property
    def start(self) -> int:
        return self.pieces[0].start

    @property
    def end(self) -> int:
        return self.pieces[-1].end


class Format(ABC):
    """A format of documents.

    suffixes: of its files
    """

    suffixes: ClassVar[tuple[str, ...]]

    @abstractmethod
    def blocks(self, text: str) -> list[Block]:
        """The blocks of a document in order. A block may be inside a mark or a tag of another one."""


def writer(escape: Callable[[str], str]) -> Write:
    """A writer that escapes the text of every part."""
    return lambda parts: [escape(text) if kind == "text" else text for kind, text in parts]


def runs_of(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """The pieces between marks that separate blocks."""
    run = list[Piece]()
    for piece in pieces:
        if piece.text == BOUNDARY:
            yield run
            run = []
        else:
            run.append(piece)
    yield run


def blocks_of(pieces: Sequence[Piece], document: str, line: Callable[[int], int], write: Write) -> list[Block]:
    """The blocks of a run of pieces: cut at markup without a partner, and without what is not text at their ends.

    line: the number of the line of a character
    """
    pairs, stack = dict[int, int](), list[int]()
    for index, piece in enumerate(pieces):
        if piece.kind == "open" and len(stack) < DEEPEST:
            stack.append(index)
        elif piece.kind == "close":
            same = [place for place in stack if pieces[place].text == piece.text]
            if same:
                pairs[same[-1]] = index
                del stack[stack.index(same[-1]) :]
    while True:  # a pair around markup without a partner would be cut, too
        paired = {*pairs, *pairs.values()}
        alone = [n for n, piece in enumerate(pieces) if piece.kind in ("open", "close") and n not in paired]
        if not (
            cut := [first for first, last in pairs.items() if bisect_right(alone, first) < bisect_left(alone, last)]
        ):
            break
        for first in cut:
            del pairs[first]
    blocks: list[Block] = []
    run: list[Piece] = []
    ends = set(alone)
    for index, piece in enumerate(pieces):
        if index not in ends:
            run.append(piece)
        if index in ends or index == len(pieces) - 1:
            if run := _trimmed(_with_atoms(run, document), document):
                blocks.append(Block(tuple(run), line(run[0].start), write))
            run = []
    return blocks


def with_addresses(piece: Piece, source: str) -> Iterator[Piece]:
    """A text, with the addresses in it as pieces of code. source: of the document, without escapes in the text."""
    place = piece.start
    for match in ADDRESS.finditer(source, piece.start, piece.end):
        if match.start() > place:
            yield Piece("text", place, match.start(), source[place : match.start()])
        yield Piece("code", *match.span())
        place = match.end()
    if place == piece.start:
        yield piece
    elif place < piece.end:
        yield Piece("text", place, piece.end, source[place : piece.end])


def line_numbers(text: str) -> Callable[[int], int]:
    """A function that returns the number of the line of a character, counted from 1."""
    starts = [match.end() for match in LINE_END.finditer(text)]
    return lambda place: bisect_right(starts, place) + 1


def without_breaks(text: str) -> str:
    """The text without line breaks between letters of scripts that write no spaces."""
    return _BREAK.sub("", text)


def at_break(before: str, after: str) -> str:
    """What a line break between two characters stands for: a space, or nothing."""
    return "" if _BREAK.search(f"{before}\n{after}") else " "


def has_letters(text: str) -> bool:
    return _LETTER.search(text) is not None


def partners(pieces: Sequence[Piece]) -> dict[int, int]:
    """For each opening part, the index of its closing part."""
    pairs, stack = {}, list[int]()
    for index, piece in enumerate(pieces):
        if piece.kind == "open":
            stack.append(index)
        elif piece.kind == "close" and stack:
            pairs[stack.pop()] = index
    return pairs


def _with_atoms(pieces: list[Piece], document: str) -> list[Piece]:
    """The pieces, with one piece for paired markup that encloses no words."""
    pairs = partners(pieces)
    following = [""]  # by piece: the next text, from it on
    for piece in reversed(pieces):
        following.append(piece.text if piece.kind == "text" else following[-1])
    following.reverse()
    found, index, before = list[Piece](), 0, ""
    while index < len(pieces):
        piece, end = pieces[index], pairs.get(index, index)
        inside = pieces[index + 1 : end]
        if end > index and (
            piece.text in CODE or not any(one.kind == "text" and has_letters(one.text) for one in inside)
        ):
            found += _atom(pieces[index : end + 1], document, before, following[end + 1])
            index = end
        else:
            found.append(piece)
        before = before.rstrip()[-3:] + " " * before[-1:].isspace()  # all that `_atom` looks at
        before += {"text": found[-1].text, "code": "xxx"}.get(found[-1].kind, "")
        index += 1
    return found


def _atom(pieces: Sequence[Piece], document: str, before: str, after: str) -> list[Piece]:
    """One piece for an element without words, and its text if that belongs to the sentence, such as a full stop.

    before: the end of the text before it; after: the text after it
    """
    first, *inside, last = pieces
    whole, text = Piece("mark", first.start, last.end), "".join(one.text for one in inside if one.kind == "text")
    if first.text in CODE or any(one.kind == "code" for one in inside):
        return [whole._replace(kind="code" if text.strip() or len(inside) else "mark")]
    tags = {one.text for one in pieces if one.kind == "open"}
    raised = "sup" in tags
    is_note = (raised or "a" in tags) and _NOTE.fullmatch(text) is not None and _GOES_ON.match(after) is None
    is_note = is_note and (_NOTED if raised else _TOUCHED).search(before) is not None
    is_number = not before.strip() and _NUMBER_OF_ITEM.fullmatch(text)
    if not text or is_note or is_number or not (text.strip() or (before.strip() and after.strip())):
        return [whole]
    is_plain = not text.strip() or (tags <= _PLAIN and _PUNCTUATION.fullmatch(text))
    if is_plain and document[first.start : first.start + 1] == "<":
        empty = "".join(document[one.start : one.end] for one in pieces if one.kind != "text")
        return [whole._replace(written=empty), Piece("text", last.end, last.end, text)]
    return [whole._replace(kind="code" if text.strip() else "mark")]


def _trimmed(pieces: list[Piece], document: str) -> list[Piece]:
    """Without white space, marks, enclosing markup and the sign of an item at the ends; empty if no text is left."""
    is_cut = False  # the sign of an item
    while pieces:
        first, last = pieces[0], pieces[-1]
        if _is_blank(first):
            pieces = pieces[1:]
        elif _is_blank(last):
            pieces = pieces[:-1]
        elif first.kind == "open" and first.written is None and partners(pieces)[0] == len(pieces) - 1:
            if last.written is not None:
                break
            pieces = pieces[1:-1]
        elif not is_cut and first.kind == "text" and (item := _FIRST.match(document, first.start, first.end)):
            is_apart = item.end() < first.end or (len(pieces) > 1 and pieces[1].text[:1].isspace())
            if not is_apart:
                break
            pieces = [first._replace(start=item.end(), text=_FIRST_SHOWN.sub("", first.text, count=1)), *pieces[1:]]
            is_cut = True
        else:
            break
    if not any(piece.kind == "text" and has_letters(piece.text) for piece in pieces):
        return []
    first, last = pieces[0], pieces[-1]
    if first.kind == "text" and first.end - first.start == len(first.text):
        text = first.text.lstrip()
        pieces = [first._replace(start=first.end - len(text), text=text), *pieces[1:]]
        last = pieces[-1]
    if last.kind == "text" and last.end - last.start == len(last.text):
        text = last.text.rstrip()
        pieces = [*pieces[:-1], last._replace(end=last.start + len(text), text=text)]
    return pieces


def _is_blank(piece: Piece) -> bool:
    """Whether a piece at an end of a block has nothing to translate."""
    return (piece.kind == "mark" and piece.written is None) or (piece.kind == "text" and not piece.text.strip())


def columns(text: str) -> int:
    """How wide a terminal writes a text: Hangul and Chinese characters take two columns."""
    return len(text) if text.isascii() else sum(1 + (east_asian_width(one) in "WF") for one in text)
