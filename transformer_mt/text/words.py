"""Words, which are separated by white space: counting them, and which one a token belongs to, for any tokenizer."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.text.cleaning import clean_text
from transformer_mt.text.codec import Segmenter


class WordCount:
    """Counts the words of a text that is written part by part, without reading it again.

    before: number of words before the end of the text, without an unfinished one
    """

    def __init__(self) -> None:
        self.total, self._is_inside = 0, False

    @property
    def before(self) -> int:
        return self.total - self._is_inside

    def add(self, text: str) -> None:
        if text:
            self.total += len(text.split()) - (self._is_inside and not text[0].isspace())
            self._is_inside = not text[-1].isspace()

    def strip(self) -> None:
        """The white space at the end of the text is removed."""
        self._is_inside = self.total > 0


def words_of_tokens(
    tokens: Sequence[str], line: str, segmenter: Segmenter, rules: CleaningConfig | None = None
) -> list[int | None]:
    """For each token, the position in `line.split()` of the word that its first character belongs to.

    None for a token that says nothing about its word: a space, the later bytes of a character that is spelled as bytes,
    and punctuation at a word (the "." of "bed."), which would otherwise draw the word to the end of the other sentence.
    Tokens are placed by counting characters, so it does not matter whether they begin, split or span words.

    tokens: those of the line, or the first of them
    rules:  the cleaning that came before the tokenizer; None: none
    """
    words, tokenizer = line.split(), segmenter.tokenizer
    cleaned = words if rules is None else [clean_text(word, rules, segmenter.language) for word in words]
    ends = list(accumulate(_characters(segmenter.casing.apply(word)) for word in cleaned))
    written = [0, *(_characters(tokenizer.detokenize(tokens[:count])) for count in range(1, len(tokens) + 1))]
    for index in range(len(tokens) - 1, -1, -1):  # incomplete bytes count as too many characters
        written[index] = min(written[index], written[index + 1])
    places: list[int | None] = []
    for token, before, after in zip(tokens, written, written[1:], strict=False):
        place = bisect_right(ends, before)
        silent = place < len(words) and not _has_letters(token) and _has_letters(words[place])
        places.append(place if before < after and place < len(words) and not silent else None)
    return places


def _characters(text: str) -> int:
    """The number of characters that are not white space."""
    return len("".join(text.split()))


def _has_letters(text: str) -> bool:
    return any(map(str.isalnum, text))


def words_across(parts: Sequence[tuple[str, str]]) -> list[range]:
    """For each word of a text, the positions of its words in another text.

    parts: the two texts, part by part; parts that differ are a replacement
    """
    one, other = ("".join(texts) for texts in zip(*parts, strict=True)) if parts else ("", "")
    places: list[tuple[int, int]] = []  # for each character of the first text, the characters of the other, inclusive
    end = 0
    for text, replaced in parts:
        last = max(end + len(replaced) - 1, 0)
        places += [(end + n,) * 2 if text == replaced else (end, last) for n in range(len(text))]
        end += len(replaced)
    number, n = -1, list[int]()  # for each character of the other text, its word or the one before it
    for place, letter in enumerate(other):
        number += not letter.isspace() and (place == 0 or other[place - 1].isspace())
        n.append(max(number, 0))
    found = []
    for word in re.finditer(r"\S+", one):
        spans = places[word.start() : word.end()]
        found.append(range(n[spans[0][0]], n[spans[-1][1]] + 1) if n else range(0))
    return found
