"""More pieces for a trained BPE model: the next merges, learned from another corpus.

Byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909, algorithm 1) goes on where the first corpus ended: words are
split by the old model, and the most frequent neighbours are merged. The new merges come after all old ones.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from transformer_mt.text.tokenizers.piece_file import Piece, piece_field

SPACE = "▁"  # at the start of a word
FEWEST = 2  # occurrences of a character or merge that becomes a piece
Word = tuple[str, ...]


def more_pieces(words: Mapping[Word, int], known: Iterable[str], most: int, longest: int) -> list[str]:
    """At most `most` new pieces: first the unknown characters by frequency, then merges in the order of learning.

    words: as old pieces and unknown characters, with their number; known: old pieces; longest: characters of a piece
    """
    pieces = set(known)
    letters = Counter[str]()
    for word, count in words.items():
        for token in word:
            if token not in pieces:
                letters[token] += count
    found = [letter for letter, count in sorted(letters.items(), key=lambda one: (-one[1], one[0])) if count >= FEWEST]
    found = [letter for letter in found if len(letter) == 1][:most]
    pieces.update(found)
    merging = _Merging([(word, count) for word, count in sorted(words.items())], pieces, longest)
    while len(found) < most and (pair := merging.best()) is not None:
        merged = "".join(pair)
        if merged not in pieces:  # else the old model reaches it by other merges
            found.append(merged)
            pieces.add(merged)
        merging.merge(pair)
    return found


class _Merging:
    """Words with counts of neighbouring pieces, which are updated only where a merge changes them."""

    def __init__(self, words: Sequence[tuple[Word, int]], pieces: set[str], longest: int) -> None:
        self.words, self.counts = [word for word, _ in words], [count for _, count in words]
        self.pieces, self.longest = pieces, longest
        self.pairs = Counter[tuple[str, str]]()
        self.places = defaultdict[tuple[str, str], set[int]](set)  # words that have, or had, these neighbours
        for number in range(len(self.words)):
            self._count(number, 1)

    def best(self) -> tuple[str, str] | None:
        """The most frequent neighbours, the first in alphabetical order of equals; None if none is frequent."""
        best = min(self.pairs.items(), key=lambda one: (-one[1], one[0]), default=(None, 0))
        return best[0] if best[1] >= FEWEST else None

    def merge(self, pair: tuple[str, str]) -> None:
        for number in sorted(self.places.pop(pair)):
            self._count(number, -1)
            word, merged = self.words[number], list[str]()
            for piece in word:
                if merged and (merged[-1], piece) == pair:
                    merged[-1] += piece
                else:
                    merged.append(piece)
            self.words[number] = tuple(merged)
            self._count(number, 1)
        del self.pairs[pair]

    def _count(self, number: int, sign: int) -> None:
        for pair in pairwise(self.words[number]):
            if self._may_merge(pair):
                self.pairs[pair] += sign * self.counts[number]
                if sign > 0:
                    self.places[pair].add(number)
                elif self.pairs[pair] <= 0:
                    del self.pairs[pair]

    def _may_merge(self, pair: tuple[str, str]) -> bool:
        """As in SentencePiece, a piece has only letters, only digits, or only other characters, after a space."""
        text = "".join(pair)
        return (
            len(text) <= self.longest
            and len({_kind(character) for character in text.lstrip(SPACE)}) <= 1
            and all(one in self.pieces for one in pair)
        )


def _kind(character: str) -> str:
    category = unicodedata.category(character)[0]
    return category if category in "LN" else "L" if category == "M" else ""


def with_pieces(model: bytes, pieces: Sequence[str], score: float) -> bytes:
    """A serialised SentencePiece model with more pieces at its end. score: of the first; each next has one less.

    Concatenated messages of protocol buffers are the message with all repeated fields, so nothing is parsed.
    """
    return model + b"".join(piece_field(Piece(text, score - number)) for number, text in enumerate(pieces))
