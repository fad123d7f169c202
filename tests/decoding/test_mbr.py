"""Minimum Bayes risk picks the candidate most similar to the others, by sacreBLEU's scores."""

from __future__ import annotations

import math

import pytest
import sacrebleu

from transformer_mt.decoding.searches.mbr import consensus, sentence_utility

SAMPLES = ["the cat sat on the mat", "the cat sat on a mat", "a cat sat on the mat", "stock prices fell sharply"]


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
def test_empty_texts_are_like_each_other(utility: str) -> None:
    assert consensus(["", "", "x"], utility)[0] == ("", pytest.approx(200 / 3))


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
def test_the_consensus_wins_and_the_outlier_loses(utility: str) -> None:
    ranked = consensus(SAMPLES, utility)
    assert ranked[0][0] == "the cat sat on the mat"
    assert ranked[-1][0] == "stock prices fell sharply"
    assert sorted(text for text, _ in ranked) == sorted(SAMPLES)


def test_expected_utility_is_the_mean_over_all_samples_also_equal_ones() -> None:
    samples = ["ab c", "ab c", "ab d"]
    ranked = dict(consensus(samples, "chrf"))
    assert list(ranked) == ["ab c", "ab d"]
    for text, expected in ranked.items():
        scores = [sacrebleu.sentence_chrf(text, [other]).score for other in samples]
        assert expected == pytest.approx(sum(scores) / 3)


def test_likelier_candidates_weigh_more_and_equal_logits_change_nothing() -> None:
    texts = ["ab c", "ab d", "xy z"]
    scores = [[sacrebleu.sentence_chrf(text, [other]).score for other in texts] for text in texts]
    weighed = dict(consensus(texts, "chrf", [-1.0, -2.0, -1001.0]))
    for row, text in zip(scores, texts, strict=True):
        assert weighed[text] == pytest.approx((row[0] * math.e + row[1]) / (math.e + 1))
    assert consensus(texts, "chrf", [-3000.0, -3000.0, 0.0])[0] == ("xy z", pytest.approx(100))
    assert dict(consensus(texts, "chrf", [-9.0] * 3)) == pytest.approx(dict(consensus(texts, "chrf")))


def test_bleu_of_a_sentence_uses_the_orders_it_has() -> None:
    assert sentence_utility("bleu")("good morning", "good morning") == pytest.approx(100)
