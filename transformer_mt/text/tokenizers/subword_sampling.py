"""Segmentations drawn at random, so that a model in training meets a word in more than one spelling.

BPE-dropout (Provilkov et al. 2020, arXiv:1910.13267) and subword regularisation (Kudo 2018, arXiv:1804.10959), over the
pieces and scores of a trained model. A draw depends on the random generator alone, which SentencePiece's own do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

NEVER = -math.inf  # score of what is no piece


class Drops:
    """Which of many merges are left out, each with the same probability. Draws how many are kept before the next."""

    def __init__(self, probability: float, random: Random) -> None:
        self._log_kept = math.log1p(-probability) if probability < 1 else NEVER
        self._random = random
        self._kept = self._draw()

    def keep(self, merges: int) -> bool:
        """Are the next so many all kept? If not, they are still to be asked for one by one."""
        if self._kept < merges:
            return False
        self._kept -= merges
        return True

    def drop(self) -> bool:
        """Is the next one left out?"""
        if self.keep(1):
            return False
        self._kept = self._draw()
        return True

    def _draw(self) -> float:
        """Geometrically distributed: P(at least n are kept) = (1 - probability)^n."""
        return math.log(1.0 - self._random.random()) // self._log_kept if self._log_kept else math.inf


def sample_bpe(usual: Sequence[str], scores: Mapping[str, float], drops: Drops) -> list[str]:
    """`bpe_dropout` of a word, given its pieces without drops: where all its merges are kept, none has to be made."""
    word = "".join(usual)
    return list(usual) if drops.keep(len(word) - len(usual)) else bpe_dropout(word, scores, drops)


def bpe_dropout(word: str, scores: Mapping[str, float], drops: Drops) -> list[str]:
    """Merge neighbours, best score first, while each merge is left out with some probability at every step.

    Algorithm 1 of Provilkov et al.; without drops it is BPE. scores: of all pieces; higher is merged earlier.
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
    """Place of the best merge that is not left out, the leftmost of equals. Asking the best first saves draws."""
    while (best := max(merged, default=NEVER)) != NEVER:
        place = merged.index(best)
        if not drops.drop():
            return place
        merged = [*merged[:place], NEVER, *merged[place + 1 :]]
    return None


def sample_unigram(word: str, scores: Mapping[str, float], alpha: float, random: Random, longest: int) -> list[str]:
    """Draw a segmentation x with probability P(x)^alpha / sum over all segmentations (Kudo, equation 8).

    scores: log probabilities of the pieces, of which none has more than `longest` characters; some segmentation into
    them must exist. Sums are gathered from left to right (filtering), pieces drawn from right to left.
    """
    total = [0.0]  # total[end]: log of the summed P^alpha of all segmentations of word[:end]
    endings: list[list[tuple[int, float]]] = [[]]  # last pieces of word[:end]: where each starts, its log weight
    for end in range(1, len(word) + 1):
        starts = (start for start in range(max(0, end - longest), end) if word[start:end] in scores)
        endings.append([(start, total[start] + alpha * scores[word[start:end]]) for start in starts])
        total.append(_log_sum_exp([weight for _, weight in endings[end]]))
    pieces, end = [], len(word)
    while end:
        starts_, weights = zip(*endings[end], strict=True)
        (start,) = random.choices(starts_, [math.exp(weight - total[end]) for weight in weights])
        pieces.append(word[start:end])
        end = start
    return pieces[::-1]


def _log_sum_exp(weights: list[float]) -> float:
    highest = max(weights, default=-math.inf)
    if highest == -math.inf:  # nothing ends here
        return highest
    return highest + math.log(sum(math.exp(weight - highest) for weight in weights))
