"""Segmentations drawn at random, so that a model in training meets a word in more than one spelling.

BPE-dropout (Provilkov et al. 2020, arXiv:1910.13267) and subword regularisation (Kudo 2018, arXiv:1804.10959), over the
pieces and scores of a trained model. A draw depends on the random generator alone, which SentencePiece's own do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from random import Random

NEVER = -math.inf  # score of what is no piece


def bpe_dropout(word: str, scores: Mapping[str, float], dropout: float, random: Random) -> list[str]:
    """Merge neighbours, best score first, while each merge is left out with probability `dropout` at every step.

    Algorithm 1 of Provilkov et al.; with dropout 0 it is BPE. scores: of all pieces; higher is merged earlier.
    """
    pieces = list(word)
    merged = [scores.get(left + right, NEVER) for left, right in pairwise(pieces)]  # score of each merge of neighbours
    while (place := _best_kept(merged, dropout, random)) is not None:
        pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
        del merged[place]
        for left in range(max(place - 1, 0), min(place + 1, len(merged))):
            merged[left] = scores.get(pieces[left] + pieces[left + 1], NEVER)
    return pieces


def _best_kept(merged: list[float], dropout: float, random: Random) -> int | None:
    """Place of the best merge that is not left out, the leftmost of equals. Asking the best first saves draws."""
    while (best := max(merged, default=NEVER)) != NEVER:
        place = merged.index(best)
        if not dropout or random.random() >= dropout:
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
