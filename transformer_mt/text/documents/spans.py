"""Which words of a translation are inside which markup: disjoint spans of words that belong together, well nested.

The time grows with the words and the links, not with their product with the number of elements: a paragraph may have
thousands of both.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

# What a word adds to the score of a span: linked to the element, or to other words; linked to nothing; code.
_LINKED, _UNLINKED, _CODE = 100, -1, 100_000


@dataclass
class Element:
    """Paired markup, or a mark.

    piece, close: indices of its pieces; close is None for a mark
    words:        of the source, from the first to the one after the last
    span:         of the translation
    """

    piece: int
    close: int | None
    words: tuple[int, int]
    children: list[Element] = field(default_factory=list)
    span: tuple[int, int] = (0, 0)


class Translated:
    """The words of a translation with their links.

    sources: of each word: the words of the source that it is linked to
    targets: of each word of the source: the words that are linked to it
    codes:   of the words that contain code: the indices of its pieces
    """

    def __init__(self, n_words: int, links: Iterable[tuple[int, int]], codes: Mapping[int, Sequence[int]]) -> None:
        self.codes, self.code_places = codes, sorted(codes)
        self.sources: list[list[int]] = [[] for _ in range(n_words)]
        self.targets = defaultdict[int, list[int]](list)
        for source, target in links:
            if target < n_words:
                self.sources[target].append(source)
                self.targets[source].append(target)
        self._place = {piece: place for place, pieces in codes.items() for piece in pieces}
        outside = [self._weight(place, 0) - _CODE * len(codes.get(place, ())) for place in range(n_words)]
        self._outside = [0, *accumulate(outside)]  # up to each word: the score for an element that none belongs to

    def _weight(self, place: int, inside: int) -> int:
        """How much a word speaks for an element, or against it, without its code. inside: the links to the element."""
        if not self.sources[place]:
            return _UNLINKED
        return _LINKED if 2 * inside >= len(self.sources[place]) else -_LINKED

    def weights(self, element: Element) -> list[tuple[int, int]]:
        """The words that are linked to an element, or contain its code, with their weights."""
        assert element.close is not None, "marks contain no words"
        inside = Counter(target for source in range(*element.words) for target in self.targets.get(source, ()))
        pieces = range(element.piece + 1, element.close)
        inside.update({self._place[piece]: 0 for piece in pieces if piece in self._place})
        return [
            (
                place,
                self._weight(place, inside[place])
                + sum(_CODE if code in pieces else -_CODE for code in self.codes.get(place, ())),
            )
            for place in sorted(inside)
        ]

    def best(self, weights: Iterable[tuple[int, int]], free: Free) -> tuple[int, int, int]:
        """The free span with the largest score: the score, the first word, and the one after the last."""
        best, total, start, end = (0, 0, 0), 0, 0, 0
        for place, weight in weights:
            if total > 0:
                total += self._outside[place] - self._outside[end]
            if total <= 0 or not free.contains(end, place):
                total, start = 0, place
            if not free.contains(place, place + 1):
                total = 0
                continue
            total, end = total + weight, place + 1
            best = max(best, (total, start, end), key=lambda one: one[0])
        return best


class Free:
    """The words of a span that are in none of its children yet, as ranges from left to right."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high, self.count = low, high, high - low
        self._starts, self._ends = ([low], [high]) if low < high else ([], [])

    def contains(self, first: int, last: int) -> bool:
        """Whether all words from `first` to `last` are free."""
        index = bisect_right(self._starts, first) - 1
        return index >= 0 and last <= self._ends[index]

    def take(self, first: int, last: int) -> None:
        if first >= last:
            return
        left, right = bisect_right(self._ends, first), bisect_left(self._starts, last)
        ranges = list(zip(self._starts[left:right], self._ends[left:right], strict=True))
        kept = [one for start, end in ranges for one in ((start, min(end, first)), (max(start, last), end))]
        kept = [(start, end) for start, end in kept if start < end]
        self._starts[left:right], self._ends[left:right] = [one for one, _ in kept], [one for _, one in kept]
        self.count += sum(end - start for start, end in kept) - sum(end - start for start, end in ranges)

    def nearest(self, place: int) -> int | None:
        """The free word with the smallest distance."""
        index = bisect_right(self._starts, place)
        before = [min(self._ends[index - 1] - 1, place)] if index else []
        found = [*before, *self._starts[index : index + 1]]
        return min(found, key=lambda one: abs(one - place), default=None)

    def gap(self, place: int) -> int:
        """The first place from `place` on that is not between two words that are taken."""
        index = bisect_left(self._ends, place)
        if place <= self.low or (index < len(self._starts) and self._starts[index] <= place):
            return place
        return self._starts[index] if index < len(self._starts) else self.high


def find_spans(parent: Element, translated: Translated, n_source: int) -> None:
    """Set the span of each element within that of its parent: disjoint, and with as many of its words as possible.

    parent:   the root, with its span
    n_source: words of the source
    """
    if not parent.children:
        return
    low, high = parent.span
    free, wordy = Free(low, high), Free(low, high)  # wordy: without the words that contain code
    for place in translated.code_places[bisect_left(translated.code_places, low) :]:
        if place >= high:
            break
        wordy.take(place, place + 1)
    paired = [child for child in parent.children if child.close is not None]
    weights = {
        child.piece: [(place, weight) for place, weight in translated.weights(child) if low <= place < high]
        for child in paired
    }
    waiting = sorted(paired, key=lambda child: -translated.best(weights[child.piece], free)[0])
    n_words = len(translated.sources)
    for others, child in zip(range(len(waiting) - 1, -1, -1), waiting, strict=True):
        score, first, last = translated.best(weights[child.piece], free)
        if score <= 0:  # no word of it was found: the free word nearest to its relative place, but not code of others
            at = min(int(child.words[0] / n_source * n_words), n_words - 1)
            nearest = wordy.nearest(at)
            if nearest is not None:
                first, last = nearest, nearest + 1
            else:
                first = last = low if at - low < high - at else high
        last = max(first + min(last - first, 1), min(last, free.count - others + first))  # a word for each other
        child.span = first, last
        free.take(first, last)
        wordy.take(first, last)
        find_spans(child, translated, n_source)
    for child in parent.children:
        if child.close is None:
            child.span = (free.gap(_after(child, translated, low, high, n_source)),) * 2


def _after(mark: Element, translated: Translated, low: int, high: int, n_source: int) -> int:
    """The place of a mark: after the word before it, or before the word after it."""
    source = mark.words[0]
    before = [place for place in translated.targets.get(source - 1, ()) if low <= place < high]
    if before:
        return max(before) + 1
    after = [place for place in translated.targets.get(source, ()) if low <= place < high]
    if after:
        return min(after)
    return min(max(low + round((high - low) * source / n_source), low), high)
