"""Subtitles: SubRip (`.srt`) and WebVTT (`.vtt`).

A sentence often goes on in the next subtitle. It is translated as a whole, and shared out among its subtitles again, by
the columns that each has in the source. Times, numbers and all else between the texts stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape, unescape
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

import regex

from transformer_mt.text.documents.base import (
    END_OF_SENTENCE,
    LINE_END,
    Block,
    Format,
    Kind,
    Part,
    Piece,
    at_break,
    blocks_of,
    columns,
    has_letters,
    line_numbers,
    with_addresses,
    writer,
)
from transformer_mt.text.script import COMMAS, SPACELESS

_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?"
_TIMES = regex.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?!\d).*")
_LIKE_TIMES = regex.compile(r"\s*-?\d[\d:.,\s]*-->")
_TAG = regex.compile(r"<(?P<ends>/?)(?P<name>[A-Za-z]\w*)(?:[.\s/][^<>]*)?>")
_VOICE = regex.compile(r"<v(?:\.[^\s>]*)?\s([^<>]*)>")
_STAMP = r"<\d[\d:.]*>"  # when a word appears
_SETTING = rf"\{{\\[^{{}}]*\}}|{_STAMP}"  # the first is where and how the text is shown
_MARKUP = regex.compile(rf"{_TAG.pattern}|[♩♪♫♬]+|{_SETTING}")  # tags, signs of music, settings
_BEFORE = regex.compile(rf"(?:{_SETTING}|{_VOICE.pattern}|\s)*")  # what stands before the text of a subtitle
_AFTER = regex.compile(r"(?r)(?:</v>|\s)*$")  # backwards, for the time would grow with the square otherwise
_HIDDEN = regex.compile(rf"{_TAG.pattern}|{_SETTING}|\p{{Cf}}")
_DASH = regex.compile(rf"(?:{_TAG.pattern}|{_SETTING}|\s)*(?:[-–—‐‑]+|>>+)\s*")  # before what another person says
_CLOSING = regex.compile(r"(?r)(?:</\w+>|\s)*$")
_PLACE = regex.compile(r"\{\\an\d")  # on the screen
_CLOSED = regex.compile(r"[♩♪♫♬)\]）】]$")  # at the end of a text: the next subtitle is something else
_ASKED = regex.compile(r"(?r)[?!？！؟]\P{L}*$")
_OPENED = regex.compile(r"[♩♪♫♬(\[（【]")  # at its start
# Seconds between two subtitles of a sentence, if the next does not begin with a small letter, and of an overlap.
_PAUSE, _NO_PAUSE, _OVERLAP = 3.0, 0.5, 0.1
_MOST = 8  # subtitles of a sentence
_WIDTH = 42  # columns of a line, as broadcasters have them; more if many lines of the source have more
_USUAL = 0.95  # of the lines are not wider than the width
_UNIT = regex.compile(  # what no line break may divide
    rf"[\p{{Ps}}\p{{Pi}}]*(?:[{SPACELESS}]\p{{M}}*|[^{SPACELESS}\p{{Ps}}\p{{Pi}}]+)[\p{{Pe}}\p{{Pf}}\p{{Po}}ー々]*|."
)
_GOOD_END = regex.compile(rf"[,.;:!?…。、，！？；：{COMMAS}][\p{{Pe}}\p{{Pf}}\"']*$")
# How much worse than after a comma: parts of the columns of a subtitle. A short word often belongs to the next one.
_AT_SPACE, _AFTER_SHORT, _IN_WORD = 0.2, 0.35, 0.5
_SHORT = 3  # columns


class _Text(NamedTuple):
    """What one person says in a subtitle: neighbouring lines.

    lines:    start and end of each in the document
    shown:    when the subtitle appears and disappears, in seconds; None: the times are missing or not understood
    is_reply: whether a dash stands before it
    manner:   its voice, and its place on the screen
    """

    lines: list[tuple[int, int]]
    shown: tuple[float, float] | None
    is_reply: bool
    manner: tuple[str, str]


class Subtitles(Format):
    """A text is what one person says, over as many subtitles as a sentence has."""

    suffixes = (".srt", ".vtt")

    def blocks(self, text: str) -> list[Block]:
        is_vtt, number = text.startswith("WEBVTT"), line_numbers(text)
        found = list(_texts(text, is_vtt))
        widths = sorted(columns(_HIDDEN.sub("", text[slice(*line)])) for one in found for line in one.lines)
        usual = widths[int(_USUAL * (len(widths) - 1))] if widths else 0
        layout = _Layout(is_vtt, max(_WIDTH, usual), LINE_END.search(text + "\n")[0])  # type: ignore[index]
        blocks = list[Block]()
        for texts in _sentences(found, text):
            for block in blocks_of(list(_pieces(texts, text, is_vtt)), text, number, writer(str)):
                left = "" if texts[0].shown else "its times are missing or not understood"
                blocks.append(replace(block, write=_Writer(block, text, layout), left=left))
        return blocks


def _texts(document: str, is_vtt: bool) -> Iterator[_Text]:
    """The texts in order. In WebVTT, an empty line ends a subtitle; in SubRip, only the next times do."""
    shown, lines, is_reply, manner, start = None, list[tuple[int, int]](), False, ("", ""), 0
    is_inside = not is_vtt  # a subtitle, and not a comment or a style sheet
    for end, following in [*(match.span() for match in LINE_END.finditer(document)), (len(document),) * 2]:
        content, dash = document[start:end].strip(), _DASH.match(document, start, end)
        is_times, voice = _LIKE_TIMES.match(content) is not None, _VOICE.match(content)
        if is_times and lines and document[slice(*lines[-1])].isdecimal():
            lines.pop()  # the number of the next subtitle
        if lines and (is_times or dash or voice or not content):
            yield _Text(lines, shown, is_reply, manner)
            lines = []
        if is_times:
            times, is_inside, manner = _TIMES.fullmatch(content), True, ("", "")
            shown = (_seconds(*times.groups()[:4]), _seconds(*times.groups()[4:])) if times else None
        elif start == end:
            is_inside = not is_vtt
        elif is_inside and content:
            if not lines:
                place = _PLACE.search(document, start, end)
                manner = voice[1] if voice else manner[0], place[0] if place else manner[1]
                is_reply = dash is not None
            lines.append(_span(document, start, end, dash, is_first=not lines))
        start = following
    if lines:
        yield _Text(lines, shown, is_reply, manner)


def _span(document: str, start: int, end: int, dash: regex.Match[str] | None, is_first: bool) -> tuple[int, int]:
    """Where the text of a line begins and ends: without a dash, what stands before it, and the end of a voice."""
    line = document[start:end]
    skipped = dash and line[: dash.end() - start]
    if skipped is None:
        found = _BEFORE.match(line) if is_first else None
        skipped = found[0] if found else line[: len(line) - len(line.lstrip())]
    # Tags before a dash are closed behind the text.
    after = (_CLOSING if dash and _TAG.search(skipped) else _AFTER).search(line)
    assert after is not None, "it may be empty"
    return start + len(skipped), start + max(len(skipped), after.start())


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str | None) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction or 0}")


def _sentences(texts: Sequence[_Text], document: str) -> Iterator[list[_Text]]:
    """Texts of neighbouring subtitles that are one sentence.

    Where most texts end without a full stop, as automatic captions do, nothing shows where a sentence ends.
    """
    shown = [_HIDDEN.sub("", unescape(document[one.lines[0][0] : one.lines[-1][1]])).strip() for one in texts]
    is_clear = [not has_letters(one) or bool(_CLOSED.search(one) or _ASKED.search(one)) for one in shown]
    has_stop = [END_OF_SENTENCE.search(one) is not None for one in shown]
    ended = [clear or stop for clear, stop in zip(is_clear, has_stop, strict=True)]
    has_stops = 2 * (sum(ended) - sum(is_clear)) >= max(len(texts) - sum(is_clear), 1)
    sentence = list[_Text]()
    for number, one in enumerate(texts):
        goes_on = has_stops and sentence and not ended[number - 1] and _goes_on(sentence[-1], one, shown[number])
        if sentence and (not goes_on or len(sentence) == _MOST):
            yield sentence
            sentence = []
        sentence.append(one)
    if sentence:
        yield sentence


def _goes_on(before: _Text, after: _Text, shown: str) -> bool:
    """Whether a text without a full stop goes on in the next subtitle. shown: what this says"""
    if before.shown is None or after.shown is None or before.shown == after.shown or before.manner != after.manner:
        return False
    if after.is_reply or _OPENED.match(shown) or not has_letters(shown):
        return False
    is_small = regex.match(r"\P{L}*\p{Ll}", shown) is not None
    return -_OVERLAP <= after.shown[0] - before.shown[1] <= (_PAUSE if is_small else _NO_PAUSE)


def _pieces(texts: Sequence[_Text], document: str, is_vtt: bool) -> Iterator[Piece]:
    """The pieces of a sentence; between two subtitles there are a space and a mark."""
    for text, following in zip(texts, [*texts[1:], None], strict=True):
        for line, below in zip(text.lines, [*text.lines[1:], None], strict=True):
            yield from _line(*line, document, is_vtt)
            if below is not None:
                yield Piece("text", line[1], below[0], at_break(document[line[1] - 1], document[below[0]]))
        if following is not None:
            end, start = text.lines[-1][1], following.lines[0][0]
            yield Piece("text", end, end, at_break(document[end - 1], document[start]))
            yield Piece("mark", end, start)


def _line(start: int, end: int, document: str, is_vtt: bool) -> Iterator[Piece]:
    for match in [*_MARKUP.finditer(document, start, end), None]:
        until = end if match is None else match.start()
        if start < until:
            for one in with_addresses(Piece("text", start, until, document[start:until]), document):
                yield one._replace(text=unescape(one.text)) if is_vtt else one
        if match is not None and (match["name"] or "").lower() == "br":  # like the end of a line
            start = match.end()
            yield Piece("text", until, start, " ")
        elif match is not None:
            name = match["name"] or ""
            kind: Kind = "mark" if not name else "close" if match["ends"] else "open"
            start = match.end()
            yield Piece(kind, until, start, name.lower())


class _Word(NamedTuple):
    """Text and markup that nothing separates. joint: what stands before it"""

    parts: list[Part]
    joint: str

    @property
    def columns(self) -> int:
        return sum(columns(text) for kind, text in self.parts if kind in ("text", "code"))


class _Layout(NamedTuple):
    """How a document is written. width: columns of a line"""

    is_vtt: bool
    width: int
    line_end: str


@dataclass(frozen=True)
class _Writer:
    """Writes the translation of a sentence into its subtitles, in lines of about equal length."""

    block: Block
    document: str
    layout: _Layout

    def __call__(self, parts: Sequence[Part]) -> list[str]:
        breaks, shares, stamps = list[str](), [0], list[str]()
        for piece in self.block.pieces:
            source = self.document[piece.start : piece.end]
            if _is_break((piece.kind, source)):
                breaks.append(source)
                shares.append(0)
            if regex.fullmatch(_STAMP, source):
                stamps.append(source)
            shares[-1] += columns(piece.text)
        stamps.reverse()  # in the translation, they have the order of the source
        kept = [
            ("mark", stamps.pop()) if kind == "mark" and regex.fullmatch(_STAMP, text) else (kind, text)
            for kind, text in parts
            if not _is_break((kind, text))
        ]
        words = _words(kept)
        # Of a translation with fewer words than subtitles, each shows all.
        groups = _shared(words, shares) if len(words) >= len(shares) else [words] * len(shares)
        written, opened = list[str](), list[str]()
        for number, group in enumerate(groups):
            if number:  # no markup goes on in another subtitle
                written += [*(f"</{_name(tag)}>" for tag in reversed(opened)), breaks[number - 1], *opened]
            width = sum(word.columns + len(word.joint) for word in group)
            lines = _shared(group, [1] * min(-(-width // self.layout.width), len(group)))
            for line_number, line in enumerate(lines):
                written += [self.layout.line_end] if line_number else []
                written += self._line(line, opened)
        return written

    def _line(self, words: Sequence[_Word], opened: list[str]) -> Iterator[str]:
        """opened: the tags that are open, which change"""
        for number, word in enumerate(words):
            yield word.joint if number else ""
            for kind, text in word.parts:
                yield escape(text, quote=False) if kind == "text" and self.layout.is_vtt else text
                if kind == "open":
                    opened.append(text)
                elif kind == "close":
                    opened.pop()


def _is_break(part: Part) -> bool:
    """Whether it stands between two subtitles: no other mark goes on in another line."""
    return part[0] == "mark" and LINE_END.search(part[1]) is not None


def _name(tag: str) -> str:
    return regex.match(_TAG, tag)["name"]  # type: ignore[index]


def _words(parts: Sequence[Part]) -> list[_Word]:
    """The words, and the letters of scripts without spaces, each with the markup that touches it."""
    words, joint, is_new = [_Word([], "")], "", False
    for kind, text in _joined(parts):
        for one in regex.findall(r"\s+|\S+", text) if kind == "text" else [text]:
            if kind == "text" and one.isspace():
                joint, is_new = " ", True
                continue
            for unit in _UNIT.findall(one) if kind == "text" else [one]:
                has_text = any(known in ("text", "code") for known, _ in words[-1].parts)
                if has_text and kind != "close" and (is_new or (kind == "text" and len(one) > len(unit))):
                    words.append(_Word([], joint))
                joint, is_new = "", False
                words[-1].parts.append((kind, unit))
    if len(words) > 1 and not words[-1].columns:
        words[-2].parts.extend([("text", words[-1].joint), *words.pop().parts])
    return words


def _joined(parts: Sequence[Part]) -> Iterator[Part]:
    """With neighbouring texts as one: of languages without spaces, each letter comes alone."""
    for is_text, some in groupby(parts, lambda part: part[0] == "text"):
        if is_text:
            yield "text", "".join(text for _, text in some)
        else:
            yield from some


def _cost(word: _Word, following: _Word) -> float:
    """Of a break between two words."""
    if _GOOD_END.search("".join(text for kind, text in word.parts if kind == "text")):
        return 0.0
    if not following.joint:
        return _IN_WORD
    return _AFTER_SHORT if word.columns <= _SHORT else _AT_SPACE


def _shared(words: Sequence[_Word], shares: Sequence[int]) -> list[Sequence[_Word]]:
    """The words in as many groups as there are shares, each with about its share of the columns; best after a comma."""
    ends = list(accumulate(len(word.joint) + word.columns for word in words))
    part = ends[-1] / len(shares)
    costs = [part * _cost(word, following) for word, following in pairwise(words)]
    groups, first = list[Sequence[_Word]](), 0
    for left, share in zip(range(len(shares) - 1, 0, -1), accumulate(shares), strict=False):
        target = ends[-1] * share / max(sum(shares), 1)
        places = range(first + 1, len(words) - left + 1)  # at least one word for each
        end = min(places, key=lambda place: abs(ends[place - 1] - target) + costs[place - 1])
        groups.append(words[first:end])
        first = end
    return [*groups, words[first:]]
