"""Random segmentations: during training, a model sees the same word in different pieces.

BPE-dropout (Provilkov et al. 2020, arXiv:1910.13267) and subword regularisation (Kudo 2018, arXiv:1804.10959), with the
pieces and scores of a trained SentencePiece model. Unlike SentencePiece's own sampling, results depend only on the
given random generator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

NEVER = -math.inf  # score of a string that is not a piece


class Drops:
    """Decides which merges are dropped, all with the same probability: draws how many are kept until the next drop."""

    def __init__(self, probability: float, random: Random) -> None:
        self._log_kept = math.log1p(-probability) if probability < 1 else NEVER
        self._random = random
        self._kept = self._draw()

    def keep(self, merges: int) -> bool:
        """Whether the next `merges` merges are all kept. If not, call `drop` for each of them."""
        if self._kept < merges:
            return False
        self._kept -= merges
        return True

    def drop(self) -> bool:
        """Whether the next merge is dropped."""
        if self.keep(1):
            return False
        self._kept = self._draw()
        return True

    def _draw(self) -> float:
        """A draw from the geometric distribution: P(at least n are kept) = (1 - probability)^n."""
        return math.log(1.0 - self._random.random()) // self._log_kept if self._log_kept else math.inf


def sample_bpe(usual: Sequence[str], scores: Mapping[str, float], drops: Drops) -> list[str]:
    """`bpe_dropout` of a word. usual: its pieces without drops, returned if all merges are kept."""
    word = "".join(usual)
    return list(usual) if drops.keep(len(word) - len(usual)) else bpe_dropout(word, scores, drops)


def bpe_dropout(word: str, scores: Mapping[str, float], drops: Drops) -> list[str]:
    """The pieces of a word after merging neighbours, best score first; at each step, merges are dropped at random.

    Algorithm 1 of Provilkov et al.; without drops it is BPE. scores: of all pieces; a higher score is merged earlier.
    """
    pieces = list(word)
    merged = [scores.get(left + right, NEVER) for left, right in pairwise(pieces)]  # score of each merge of neighbours
    while (place := _best_kept(merged, drops)) is not None:
        pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
        del merged[place]
        for left in range(max(place - 1, 0), min(place + 1, len(merged))):
            merged[left] = scores.get(pieces[left] + pieces[left + 1], NEVER)
    return pieces


def _best_kept(merged: list[float], drops: Drops) -> int | None:
    """Index of the best merge that is not dropped, the leftmost of equals. Starting with the best saves draws."""
    while (best := max(merged, default=NEVER)) != NEVER:
        place = merged.index(best)
        if not drops.drop():
            return place
        merged = [*merged[:place], NEVER, *merged[place + 1 :]]
    return None


def sample_unigram(word: str, scores: Mapping[str, float], alpha: float, random: Random, longest: int) -> list[str]:
    """Draw a segmentation x with probability P(x)^alpha / sum over all segmentations (Kudo, equation 8).

    scores: log probabilities of the pieces, which have at most `longest` characters. At least one segmentation must
    exist. Sums are computed from left to right (forward filtering); pieces are drawn from right to left (backward
    sampling).
    """
    total = [0.0]  # total[end]: log of the summed P^alpha of all segmentations of word[:end]
    endings: list[list[tuple[int, float]]] = [[]]  # last pieces of word[:end]: start and log weight of each
    for end in range(1, len(word) + 1):
        starts = (start for start in range(max(0, end - longest), end) if word[start:end] in scores)
        endings.append([(start, total[start] + alpha * scores[word[start:end]]) for start in starts])
        weights = [weight for _, weight in endings[end]]
        highest = max(weights, default=NEVER)
        if highest != NEVER:  # a piece ends here; subtracting the highest keeps the powers within floats
            highest += math.log(sum(math.exp(weight - highest) for weight in weights))
        total.append(highest)
    pieces, end = [], len(word)
    while end:
        chances = [math.exp(weight - total[end]) for _, weight in endings[end]]
        ((start, _),) = random.choices(endings[end], chances)
        pieces.append(word[start:end])
        end = start
    return pieces[::-1]
