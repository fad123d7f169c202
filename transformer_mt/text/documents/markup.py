"""Translated text with the markup of its source: each part exactly once, well nested, around the words it belongs to.

Markup moves with its words by word alignment, as in Bergamot's translation of HTML (github.com/browsermt). A piece of
code is a sign in the text that the model reads and writes; if it is lost, it is placed by alignment too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import regex

from transformer_mt.text.copies import UNBROKEN
from transformer_mt.text.documents.base import Block, Part, Piece, columns, partners, without_breaks
from transformer_mt.text.documents.spans import Element, Translated, find_spans
from transformer_mt.text.entities import has_entities, without_entities
from transformer_mt.text.script import SPACELESS, SPACELESS_LETTER
from transformer_mt.text.words import WordCount

_FIRST_SIGN = 0xE000  # private characters: no vocabulary knows them, so each one is one word that is copied
_SIGNS = regex.compile("[\ue000-\uf8ff]")
_MOST_SIGNS = 6400  # of these; further code is placed by alignment
_OPENING, _CLOSING = regex.compile(r"[\p{Ps}\p{Pi}\"'¿¡]+"), regex.compile(r"[\p{Pe}\p{Pf}\p{Po}\"']+$")
_STATEMENT = regex.compile(r"\{%|<%(?!=)|\{\{(?:[#/^]|else\b)")  # of a template
_STUCK = tuple(".,;:!?)")
_SPACE = regex.compile(r"[.,;:!?)]*\s")  # in a text behind a mark: signs at its start stand before the mark
# Letters of words that end at white space: code that touches one would be copied together with the word.
_SPACED = regex.compile(rf"[\p{{L}}\p{{M}}--[\p{{Hangul}}{SPACELESS}]]", regex.V1)
_HANGUL_TOO = regex.compile(rf"{_SPACED.pattern}|\p{{Hangul}}", regex.V1)
_SENTENCE_ENDS = frozenset(".!?…")


class PlainBlock:
    """The text of a block for the model.

    text:  one line
    signs: the characters in it that stand for code, with the indices of their pieces
    read:  the same line with addresses and placeholders as they are written, which a model may know from its training
    copies: where code begins in `read`, and its text or sign there
    touch: the signs that touch the word before them, and those that touch the word behind; `text` has a space there
    """

    def __init__(self, block: Block, with_signs: bool, document: str) -> None:
        """with_signs: whether code has signs in the text; otherwise it is left out."""
        self.block, self.signs = block, dict[str, int]()
        self.touch = set[str](), set[str]()
        self.first_word = list[int]()  # of each piece: the number of words before it, without the one it is in
        parts, count = list[str](), WordCount()
        for index, piece in enumerate(block.pieces):
            has_sign = piece.kind == "code" and with_signs and len(self.signs) < _MOST_SIGNS
            sign = chr(_FIRST_SIGN + len(self.signs)) if has_sign else ""
            before = next((part[-1] for part in reversed(parts) if part), "") if sign else ""
            if sign and self._note_touch(sign, index, before, document):
                parts.append(" ")
                count.add(" ")
                opened = index  # markup that opens directly before the code belongs to the code's word
                while opened and block.pieces[opened - 1].kind == "open":
                    opened -= 1
                self.first_word[opened:] = [count.before] * (index - opened)
            begins_word = piece.kind == "open" and self._first_inside(index)[:1].isspace()  # as in `new<b> text</b>`
            self.first_word.append(count.total if begins_word else count.before)
            text = ""
            if piece.kind == "text":
                text = without_breaks(_SIGNS.sub("\ufffd", piece.text))
                left_out = index and block.pieces[index - 1].kind in ("mark" if with_signs else ("mark", "code"))
                if left_out and text.startswith(_STUCK):
                    while parts and not (kept := parts.pop().rstrip()):
                        pass
                    parts += [kept] if count.total else []
                    count.strip()
            elif sign:
                self.signs[sign] = index
                text = sign + " " * (sign in self.touch[1])
            parts.append(text)
            count.add(text)
        self.first_word.append(count.total)
        self.text = " ".join("".join(parts).split())
        self._written = {
            sign: code
            for sign, index in self.signs.items()
            if UNBROKEN.fullmatch(code := document[block.pieces[index].start : block.pieces[index].end])
            and not regex.search(r"\s", code)
        }
        self.read, self.copies = "", list[tuple[int, str]]()
        for part in regex.splititer(f"({_SIGNS.pattern})", self.text):
            if part in self.signs:
                part = self._written.get(part, part)
                self.copies.append((len(self.read), part))
            self.read += part
        self._has_entities = has_entities(self.text)

    def _first_inside(self, index: int) -> str:
        """The first text in an element; "" if code or its end comes before it."""
        rest = (self.block.pieces[n] for n in range(index + 1, len(self.block.pieces)))
        return next((one.text for one in rest if one.kind not in ("open", "mark")), "")

    def _note_touch(self, sign: str, index: int, before: str, document: str) -> bool:
        """Note in `touch` what the code of a piece touches; whether it touches the end of a word or of a sentence.

        before: the last character of the text before it
        """
        pieces = self.block.pieces
        rest = (pieces[n] for n in range(index + 1, len(pieces)))
        behind = next((one for one in rest if one.kind in ("text", "code")), None)
        after = behind.text[:1] if behind is not None and behind.kind == "text" else ""
        is_statement = _STATEMENT.match(document, pieces[index].start) is not None
        is_end = before in _SENTENCE_ENDS and (after.isupper() or is_statement)
        letters = _HANGUL_TOO if is_statement else _SPACED  # behind other code, Hangul is a particle
        touches = is_end or letters.match(before) is not None
        if touches:
            self.touch[0].add(sign)
        if letters.match(after):
            self.touch[1].add(sign)
        return touches

    def signed(self, translation: str) -> str:
        """A translation of `read` with the sign of each address and placeholder."""
        for sign, code in sorted(self._written.items(), key=lambda item: -len(item[1])):  # one may be a part of another
            translation = translation.replace(code, sign, 1)
        return translation

    def words(self, translation: str) -> list[str]:
        """The words of a translation. Each sign is in it at most once, and characters are not written as entities.

        A model of pages of the web may write `&amp;` for `&`; if the source text has entities too, they stay.
        """
        unseen = set(self.signs)

        def once(match: regex.Match[str]) -> str:
            sign = match[0] if match[0] in unseen else ""
            unseen.discard(sign)
            return sign

        words = [_SIGNS.sub(once, word) for word in translation.split()]
        return words if self._has_entities else [without_entities(word) for word in words]


def place(
    plain: PlainBlock, translation: str, links: Sequence[tuple[int, int]], whole_words: bool = False
) -> list[Part]:
    """The parts of a translated block: its words and spaces, and the index of every piece of markup and code once.

    links: pairs of a source word and a word of the translation, counted from 0 in the texts split at white space
    whole_words: whether punctuation stays in the markup of its word
    """
    words = plain.words(translation)
    n_source = max(len(plain.text.split()), 1)
    if SPACELESS_LETTER.search(translation) and len(words) < n_source:
        words, links = _characters(" ".join(words), n_source)
        joints = [""] * (len(words) + 1)
    else:
        joints = _joints(words, plain, links)
    found = ((n, _SIGNS.findall(word)) for n, word in enumerate(words))
    codes = {n: [plain.signs[sign] for sign in signs] for n, signs in found if signs}
    code = {index for index, piece in enumerate(plain.block.pieces) if piece.kind == "code"}
    root = _tree(plain, code.difference(*codes.values()))
    root.span = (0, len(words))
    find_spans(root, Translated(len(words), links, codes), n_source)
    return list(_written(root, words, joints, plain, whole_words))


def _joints(words: Sequence[str], plain: PlainBlock, links: Sequence[tuple[int, int]]) -> list[str]:
    """What stands before each word, and behind the last: nothing where code touches the same word as in the source."""
    joints, linked = [" "] * (len(words) + 1), set(links)
    places = {sign: n for n, word in enumerate(plain.text.split()) for sign in _SIGNS.findall(word)}
    for n, word in enumerate(words):
        if word[:1] in plain.touch[0] and (places[word[:1]] - 1, n - 1) in linked:
            joints[n] = ""
        if word[-1:] in plain.touch[1] and (places[word[-1:]] + 1, n + 1) in linked:
            joints[n + 1] = ""
    return joints


def _characters(text: str, n_source: int) -> tuple[list[str], list[tuple[int, int]]]:
    """The characters of a language without spaces as words, linked along the diagonal."""
    letters = regex.findall(r"\X", text)  # with their vowels and tone marks
    return letters, [(index * n_source // len(letters), index) for index in range(len(letters))]


def _tree(plain: PlainBlock, lost: set[int]) -> Element:
    """All paired markup, marks, and lost code as a tree. lost: pieces of code without a sign in the translation"""
    pieces, pairs = plain.block.pieces, partners(plain.block.pieces)
    glued_to_word = _glued(pieces)
    root = Element(-1, len(pieces), (0, plain.first_word[-1]))
    parted = {plain.signs[sign] for sign in plain.touch[1]}  # code with a space behind it
    stack = [root]
    for index, piece in enumerate(pieces):
        while stack[-1].close == index:
            stack.pop()
        if piece.kind == "open":
            first, last = plain.first_word[index], plain.first_word[pairs[index]]
            end_piece = pairs[index] - 1
            glued = not pieces[end_piece].text[-1:].isspace() and pieces[end_piece].kind != "mark"
            glued = glued and end_piece not in parted
            end = max(min(last + glued, plain.first_word[-1]), first + 1)
            element = Element(index, pairs[index], (first, end))
            stack[-1].children.append(element)
            stack.append(element)
        elif piece.kind == "mark" or index in lost:
            place = plain.first_word[index]
            if glued_to_word[index]:  # to the end of a word, so it stands after it
                place = min(place + 1, plain.first_word[-1])
            stack[-1].children.append(Element(index, None, (place, place)))
    return root


def _glued(pieces: Sequence[Piece]) -> list[bool]:
    """Whether a mark in the place of each piece stands directly behind a word that does not go on behind it.

    Other marks, and the ends of elements, may stand between.
    """
    behind, before = list[bool](), list[bool]()  # a word stands directly behind, or before, the place
    is_word = False
    for piece in pieces:
        before.append(is_word)
        if piece.kind not in ("mark", "close"):
            is_word = piece.kind == "code" or piece.text[-1:].strip() != ""
    is_word = False
    for piece in reversed(pieces):
        behind.append(is_word)
        if piece.kind in ("text", "code"):
            is_word = piece.text[:1].isalnum()
    return [word and not goes_on for word, goes_on in zip(before, reversed(behind), strict=True)]


def _written(
    element: Element, words: Sequence[str], joints: Sequence[str], plain: PlainBlock, whole_words: bool
) -> Iterator[Part]:
    """The parts of the span of an element, without its own markup. joints: before each word, and behind the last"""
    place, pieces = element.span[0], plain.block.pieces
    after = False  # whether the next word follows a word

    def spaced(until: int) -> Iterator[Part]:
        nonlocal place, after
        while place < until:
            if after and joints[place]:
                yield "text", joints[place]
            yield from _word(words[place], plain)
            place, after = place + 1, True

    for child in sorted(element.children, key=lambda one: (one.span, one.piece)):
        yield from spaced(child.span[0])
        if child.close is None:
            has_space = after and pieces[child.piece - 1].text[-1:].isspace()
            if has_space:
                yield "text", joints[place]
            yield pieces[child.piece].kind, str(child.piece)
            following = pieces[child.piece + 1] if child.piece + 1 < len(pieces) else None
            after = (after and not has_space) or (following is not None and _SPACE.match(following.text) is not None)
            continue
        if after and child.span[0] < child.span[1]:
            yield "text", joints[place]
        inside = list(_written(child, words, joints, plain, whole_words))
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


def _outside(element: Element, parts: list[Part], plain: PlainBlock) -> tuple[str, list[Part], str]:
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
    codes = [int(text) for kind, text in parts if kind == "code"]
    statements = iter(sorted(index for index in codes if _STATEMENT.match(sources[index])))
    parts = [
        (kind, str(next(statements)) if kind == "code" and _STATEMENT.match(sources[int(text)]) else text)
        for kind, text in parts
    ]  # in the order of the source: the end of a condition does not come before its beginning
    texts = block.write([(kind, text if kind == "text" else sources[int(text)]) for kind, text in parts])
    if texts is None or block.wrap is None:
        return None if texts is None else "".join(texts)
    words = [""]
    for (kind, _), text in zip(parts, texts, strict=True):
        head, *others = text.split(" ") if kind == "text" else [text]
        words[-1] += head
        words += others
    lines, used = [words[:1]], columns(words[0])
    for word in words[1:]:
        wide = columns(word)
        if not used:
            lines[-1], used = [word], wide
        elif used + 1 + wide > block.wrap.width and not _BEGINS_BLOCK.match(word):
            lines.append([word])
            used = wide
        else:
            lines[-1].append(word)
            used += 1 + wide
    return block.wrap.separator.join(map(" ".join, lines))


_BEGINS_BLOCK = regex.compile(r"[-+*#>=|:~`<$!\[\\]|\d+[.)]|&")  # in Markdown, at the start of a line
