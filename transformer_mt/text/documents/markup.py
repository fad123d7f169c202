"""Translated text with the markup of its source: each part exactly once, well nested, around the words it belongs to.

Markup moves with its words by word alignment, as in Bergamot's translation of HTML (github.com/browsermt). A piece of
code is a sign in the text that the model reads and writes; if it is lost, it is placed by alignment too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import regex

from transformer_mt.text.documents.base import Block, Part, partners

_FIRST_SIGN = 0xE000  # private characters: no vocabulary knows them, so each one is one word that is copied
_SIGNS = regex.compile("[\ue000-\uf8ff]")
_OPENING, _CLOSING = regex.compile(r"[\p{Ps}\p{Pi}\"'¿¡]+"), regex.compile(r"[\p{Pe}\p{Pf}\p{Po}\"']+$")
_SPACELESS = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_SIGN_WEIGHT = 1000.0
_STUCK = tuple(".,;:!?)")
_UNLINKED = -0.01


class PlainBlock:
    """The text of a block for the model.

    text:  one line
    signs: the characters in it that stand for code, with the indices of their pieces
    """

    def __init__(self, block: Block, with_signs: bool) -> None:
        """with_signs: whether code has signs in the text; otherwise it is left out."""
        self.block, self.signs = block, dict[str, int]()
        text, self.first_word = "", list[int]()  # of each piece: the number of words before it, with the one it is in
        for index, piece in enumerate(block.pieces):
            before = " ".join(text.split()) + (" " if text[-1:].isspace() else "")
            self.first_word.append(len(f"{before}x".split()) - 1)
            if piece.kind == "text":
                left_out = index and block.pieces[index - 1].kind in ("mark" if with_signs else ("mark", "code"))
                if left_out and piece.text.startswith(_STUCK):
                    text = text.rstrip()
                text += _SIGNS.sub("\ufffd", piece.text)
            elif piece.kind == "code" and with_signs:
                sign = chr(_FIRST_SIGN + len(self.signs))
                self.signs[sign] = index
                text += sign
        self.first_word.append(len(text.split()))
        self.text = " ".join(text.split())


@dataclass
class _Element:
    """Paired markup, or a mark.

    words: of the source, from the first to the one after the last
    span:  of the translation
    """

    piece: int
    close: int | None
    words: tuple[int, int]
    children: list[_Element] = field(default_factory=list)
    span: tuple[int, int] = (0, 0)


def place(
    plain: PlainBlock, translation: str, links: Sequence[tuple[int, int]], whole_words: bool = False
) -> list[Part]:
    """The parts of a translated block: its words and spaces, and the index of every piece of markup and code once.

    links: pairs of a source word and a word of the translation, counted from 0 in the texts split at white space
    whole_words: whether punctuation stays in the markup of its word
    """
    words, seen = [], set[str]()
    for word in translation.split():
        for sign in _SIGNS.findall(word):
            if sign in seen or sign not in plain.signs:
                word = word.replace(sign, "")
            seen.add(sign)
        words.append(word)
    n_source = max(len(plain.text.split()), 1)
    if _SPACELESS.search(translation) and len(words) < n_source:
        words, links = _characters(translation, n_source)
        joint = ""
    else:
        joint = " "
    root = _tree(plain, set(plain.signs.values()) - {plain.signs[sign] for sign in seen if sign in plain.signs})
    linked: list[list[int]] = [[] for _ in words]
    for source, target in links:
        if target < len(words):
            linked[target].append(source)
    root.span = (0, len(words))
    _spans(root, words, linked, plain, n_source)
    return list(_written(root, words, joint, plain, whole_words))


def _characters(text: str, n_source: int) -> tuple[list[str], list[tuple[int, int]]]:
    """The characters of a language without spaces as words, linked along the diagonal."""
    return list(text), [(index * n_source // len(text), index) for index in range(len(text))]


def _tree(plain: PlainBlock, lost: set[int]) -> _Element:
    """All paired markup, marks, and code without a sign, as a tree. lost: pieces of code."""
    pieces, pairs = plain.block.pieces, partners(plain.block.pieces)
    root = _Element(-1, len(pieces), (0, plain.first_word[-1]))
    stack = [root]
    for index, piece in enumerate(pieces):
        while stack[-1].close == index:
            stack.pop()
        if piece.kind == "open":
            first, last = plain.first_word[index], plain.first_word[pairs[index]]
            glued = not pieces[pairs[index] - 1].text[-1:].isspace() and pieces[pairs[index] - 1].kind != "mark"
            end = max(min(last + glued, plain.first_word[-1]), first + 1)
            element = _Element(index, pairs[index], (first, end))
            stack[-1].children.append(element)
            stack.append(element)
        elif piece.kind == "mark" or index in lost or (piece.kind == "code" and not plain.signs):
            stack[-1].children.append(_Element(index, None, (plain.first_word[index],) * 2))
    return root


def _spans(parent: _Element, words: Sequence[str], linked: list[list[int]], plain: PlainBlock, n_source: int) -> None:
    """Find the span of each child within that of its parent: disjoint, and as many words of its own as possible."""
    low, high = parent.span
    free = [True] * len(words)
    paired = [child for child in parent.children if child.close is not None]
    weights = {child.piece: _weights(child, words, linked, plain) for child in paired}
    waiting = sorted(paired, key=lambda child: -_best(weights[child.piece], free, low, high)[0])
    for number, child in enumerate(waiting):
        score, first, last = _best(weights[child.piece], free, low, high)
        if score <= 0:  # no word of it was found: the free word nearest to its relative place
            at = min(int(child.words[0] / n_source * len(words)), len(words) - 1)
            open_places = [place for place in range(low, high) if free[place]]
            first = min(open_places, key=lambda place: abs(place - at), default=_between(free, low, high, at))
            last = first + bool(open_places)
        left = sum(free[low:high]) - (last - first)
        while len(waiting) - number - 1 > left and last - first > 1:  # leave a word for each of the others
            last, left = last - 1, left + 1
        child.span = first, last
        free[first:last] = [False] * (last - first)
        _spans(child, words, linked, plain, n_source)
    for child in parent.children:
        if child.close is None:
            child.span = (_gap(child, linked, free, low, high, n_source),) * 2


def _weights(element: _Element, words: Sequence[str], linked: list[list[int]], plain: PlainBlock) -> list[float]:
    """For each word of the translation: how much it speaks for this element, or against."""
    first, last = element.words
    weights = []
    for word, sources in zip(words, linked, strict=True):
        inside = sum(first <= source < last for source in sources)
        weight = (1.0 if 2 * inside >= len(sources) else -1.0) if sources else _UNLINKED
        for sign in _SIGNS.findall(word):
            within = element.close is not None and element.piece < plain.signs[sign] < element.close
            weight += _SIGN_WEIGHT if within else -_SIGN_WEIGHT
        weights.append(weight)
    return weights


def _best(weights: Sequence[float], free: Sequence[bool], low: int, high: int) -> tuple[float, int, int]:
    """The free span with the largest sum: the sum, the first word, and the one after the last."""
    best, total, start = (0.0, low, low), 0.0, low
    for place in range(low, high):
        if total <= 0 or not free[place]:
            total, start = 0.0, place
        if not free[place]:
            start = place + 1
            continue
        total += weights[place]
        if total > best[0] + 1e-9:
            best = total, start, place + 1
    return best


def _between(free: Sequence[bool], low: int, high: int, at: int) -> int:
    """A place that is inside no span: at the beginning or the end of the parent."""
    return low if at - low < high - at else high


def _gap(mark: _Element, linked: list[list[int]], free: list[bool], low: int, high: int, n_source: int) -> int:
    """The place of a mark: after the word before it, or before the word after it; outside the spans of siblings."""
    source, found = mark.words[0], -1
    for place in range(low, high):
        if source - 1 in linked[place]:
            found = place + 1
    if found < 0:
        found = next((place for place in range(low, high) if source in linked[place]), -1)
    if found < 0:
        found = min(max(low + round((high - low) * source / n_source), low), high)
    while low < found < high and not free[found - 1] and not free[found]:
        found += 1
    return found


def _written(
    element: _Element, words: Sequence[str], joint: str, plain: PlainBlock, whole_words: bool
) -> Iterator[Part]:
    """The parts of the span of an element, without its own markup."""
    place, pieces = element.span[0], plain.block.pieces
    after = False  # whether the next word follows a word

    def spaced(until: int) -> Iterator[Part]:
        nonlocal place, after
        while place < until:
            if after:
                yield "text", joint
            yield from _word(words[place], plain)
            place, after = place + 1, True

    for child in sorted(element.children, key=lambda one: (one.span, one.piece)):
        yield from spaced(child.span[0])
        if child.close is None:
            if after and pieces[child.piece - 1].text[-1:].isspace():
                yield "text", joint
            yield pieces[child.piece].kind, str(child.piece)
            following = pieces[child.piece + 1] if child.piece + 1 < len(pieces) else None
            after = after or (following is not None and following.text[:1].isspace())
            continue
        if after and child.span[0] < child.span[1]:
            yield "text", joint
        inside = list(_written(child, words, joint, plain, whole_words))
        lead, inside, tail = ("", inside, "") if whole_words else _outside(child, inside, plain)
        yield from (("text", one) for one in (lead,) if one)
        yield "open", str(child.piece)
        yield from inside
        yield "close", str(child.close)
        yield from (("text", one) for one in (tail,) if one)
        place, after = max(place, child.span[1]), after or child.span[0] < child.span[1]
    yield from spaced(element.span[1])


def _word(word: str, plain: PlainBlock) -> Iterator[Part]:
    """A word, with the code that its signs stand for."""
    end = 0
    for match in _SIGNS.finditer(word):
        if match.start() > end:
            yield "text", word[end : match.start()]
        yield "code", str(plain.signs[match[0]])
        end = match.end()
    if end < len(word):
        yield "text", word[end:]


def _outside(element: _Element, parts: list[Part], plain: PlainBlock) -> tuple[str, list[Part], str]:
    """Punctuation at the ends of an element goes outside, unless it is inside in the source: before, inside, after."""
    inside = plain.block.pieces[element.piece + 1 : element.close]
    lead = tail = ""
    if parts and parts[0][0] == "text" and inside[0].kind == "text" and not _OPENING.match(inside[0].text.lstrip()):
        match = _OPENING.match(parts[0][1])
        if match is not None and match.end() < len(parts[0][1]):
            lead, parts = match[0], [("text", parts[0][1][match.end() :]), *parts[1:]]
    if (parts and parts[-1][0] == "text" and inside[-1].kind != "text") or (
        parts and parts[-1][0] == "text" and not _CLOSING.search(inside[-1].text.rstrip())
    ):
        match = _CLOSING.search(parts[-1][1])
        if match is not None and (match.start() > 0 or len(parts) > 1):
            tail, parts = match[0], [*parts[:-1], ("text", parts[-1][1][: match.start()])]
    return lead, [part for part in parts if part[1]], tail


def rendered(plain: PlainBlock, parts: Sequence[Part], sources: dict[int, str]) -> str | None:
    """The source of a translated block; None if its markup cannot stand there.

    sources: of its markup and code, by the index of the piece
    """
    block = plain.block
    texts = block.write([(kind, text if kind == "text" else sources[int(text)]) for kind, text in parts])
    if texts is None or block.wrap is None:
        return None if texts is None else "".join(texts)
    words = [""]
    for (kind, _), text in zip(parts, texts, strict=True):
        head, *others = text.split(" ") if kind == "text" else [text]
        words[-1] += head
        words += others
    lines, line = list[str](), ""
    for word in words:
        if line and len(line) + 1 + len(word) > block.wrap.width and not _BEGINS_BLOCK.match(word):
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return block.wrap.separator.join([*lines, line])


_BEGINS_BLOCK = regex.compile(r"[-+*#>=|:~`<$!\[\\]|\d+[.)]|&")  # in Markdown, at the start of a line
