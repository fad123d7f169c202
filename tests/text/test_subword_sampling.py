"""Random segmentations: known answers, and frequencies compared with exact probabilities."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise

import pytest

from transformer_mt.text.tokenizers.subword_sampling import Drops, bpe_dropout, sample_bpe, sample_unigram

pytestmark = pytest.mark.slow

MERGES = {"ab": -1.0, "cd": -2.0, "abc": -3.0}  # the first one learned is the best
UNIGRAM = {"a": 0.2, "b": 0.1, "ab": 0.3, "c": 0.15, "bc": 0.2, "abc": 0.05}
SCORES = {piece: math.log(p) for piece, p in UNIGRAM.items()}


def never() -> Drops:
    return Drops(0.0, random.Random(1))


def test_bpe_takes_the_merge_learnt_first() -> None:
    assert bpe_dropout("abcd", MERGES, never()) == ["ab", "cd"]  # abc would come after cd
    assert bpe_dropout("abce", MERGES, never()) == ["abc", "e"]
    assert bpe_dropout("abab", MERGES, never()) == ["ab", "ab"]
    assert bpe_dropout("", MERGES, never()) == []


def test_if_every_merge_is_dropped_characters_are_left() -> None:
    assert bpe_dropout("abcd", MERGES, Drops(1.0, random.Random(1))) == list("abcd")


def probabilities(pieces: tuple[str, ...], p: float) -> Counter[tuple[str, ...]]:
    """The probability of every segmentation in which merging these pieces can end, by trying every choice."""
    places = [place for place in range(len(pieces) - 1) if "".join(pieces[place : place + 2]) in MERGES]
    places.sort(key=lambda place: (-MERGES["".join(pieces[place : place + 2])], place))
    found = Counter({pieces: p ** len(places)})
    for tried, place in enumerate(places):
        merged = (*pieces[:place], pieces[place] + pieces[place + 1], *pieces[place + 2 :])
        for end, chance in probabilities(merged, p).items():
            found[end] += p**tried * (1 - p) * chance
    return found


@pytest.mark.parametrize("p", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("word", ["ab", "abcd", "abcabcd"])
def test_bpe_dropout_draws_each_segmentation_with_its_probability(word: str, p: float) -> None:
    """One stream of drops over many words; most of them keep their usual pieces if p is small."""
    drops, draws = Drops(p, random.Random(3)), 20_000
    usual, expected = bpe_dropout(word, MERGES, never()), probabilities(tuple(word), p)
    drawn = Counter(tuple(sample_bpe(usual, MERGES, drops)) for _ in range(draws))
    assert sum(expected.values()) == pytest.approx(1)
    assert set(drawn) <= set(expected)
    for pieces, chance in expected.items():
        assert drawn[pieces] / draws == pytest.approx(chance, abs=0.015)


def segmentations(word: str) -> list[tuple[str, ...]]:
    found = []
    for cuts in range(2 ** (len(word) - 1)):
        ends = [0, *(place + 1 for place in range(len(word) - 1) if cuts >> place & 1), len(word)]
        pieces = tuple(word[start:end] for start, end in pairwise(ends))
        if all(piece in SCORES for piece in pieces):
            found.append(pieces)
    return found


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.99])
def test_unigram_segmentations_come_with_their_probability_to_the_power_alpha(alpha: float) -> None:
    word, draws, generator = "abcab", 20_000, random.Random(7)
    weights = {pieces: math.prod(UNIGRAM[piece] for piece in pieces) ** alpha for pieces in segmentations(word)}
    assert len(weights) == 8
    drawn = Counter(tuple(sample_unigram(word, SCORES, alpha, generator, longest=3)) for _ in range(draws))
    assert set(drawn) == set(weights)
    for pieces, weight in weights.items():
        assert drawn[pieces] / draws == pytest.approx(weight / sum(weights.values()), abs=0.015)


def test_a_place_without_the_end_of_a_piece_is_skipped() -> None:
    scores = {"ab": -1.0, "c": -2.0}  # no piece ends after the a
    assert sample_unigram("abc", scores, 0.5, random.Random(1), longest=2) == ["ab", "c"]
