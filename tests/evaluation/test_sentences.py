"""Every sentence is in one group by length; the best sentences have the highest scores, the worst the lowest."""

from __future__ import annotations

import pytest

from transformer_mt.evaluation.metrics import bleu_tokens, make_metric
from transformer_mt.evaluation.scores import score
from transformer_mt.evaluation.sentences import best_and_worst, by_length, length_ratio, nearest


def test_every_sentence_is_in_one_bucket(systems):
    buckets = by_length(systems.good, systems.references)
    assert sum(bucket.sentences for bucket in buckets) == len(systems.references)
    assert [bucket.shortest for bucket in buckets] == sorted(bucket.shortest for bucket in buckets)


def test_a_bucket_has_the_score_of_its_sentences(systems):
    bucket = by_length(systems.good, systems.references)[1]
    lengths = [len(tokens) for tokens in bleu_tokens(systems.references)]
    rows = [n for n, length in enumerate(lengths) if bucket.shortest <= length <= bucket.longest]
    hypotheses, references = [systems.good[n] for n in rows], [systems.references[n] for n in rows]
    alone = score(hypotheses, references)
    assert (bucket.sentences, bucket.bleu, bucket.chrf) == (len(rows), alone["bleu"].value, alone["chrf"].value)
    ratio = sum(map(len, bleu_tokens(hypotheses))) / sum(map(len, bleu_tokens(references)))
    assert bucket.length_ratio == pytest.approx(ratio)


def test_long_and_empty_references_have_a_bucket_too():
    buckets = by_length(["a", "b"], ["", "wort " * 80])
    assert [(bucket.shortest, bucket.longest, bucket.sentences) for bucket in buckets] == [(0, 5, 1), (51, None, 1)]


def test_ten_best_and_ten_worst(systems):
    sources = [f"source {n + 1}" for n in range(len(systems.references))]
    best, worst = best_and_worst(systems.good, systems.references, sources)
    metric = make_metric("chrf")
    scores = [metric.sentence_score(h, [r]).score for h, r in zip(systems.good, systems.references, strict=True)]
    assert [one.chrf for one in best] == sorted(scores, reverse=True)[:10]
    assert [one.chrf for one in worst] == sorted(scores)[:10]
    for one in (*best, *worst):
        assert one.source == f"source {one.line}"
        assert (one.hypothesis, one.reference) == (systems.good[one.line - 1], systems.references[one.line - 1])


@pytest.mark.parametrize("count", range(1, 25))
def test_few_sentences_are_divided_between_the_lists(systems, count):
    best, worst = best_and_worst(systems.good[:count], systems.references[:count])
    lines = [one.line for one in (*best, *worst)]
    assert len(set(lines)) == len(lines) == min(count, 20)


def test_of_equally_good_ones_the_longer_is_better():
    lines = ["Ja.", "Ein langer Satz ohne Fehler.", "Falsch"]
    best, _ = best_and_worst([*lines[:2], "x"], lines)
    assert [one.line for one in best] == [2, 1]


def test_an_empty_translation_of_an_empty_reference_is_not_among_the_worst():
    best, worst = best_and_worst(["", "ein Satz"], ["", "ein Fehler"])
    assert ([one.line for one in best], [one.line for one in worst]) == ([1], [2])
    assert best[0].chrf == 100.0


def test_length_ratio():
    assert length_ratio([["a", "b"], ["c"]], [["a"], ["b"]]) == 1.5
    assert length_ratio([["a"]], [[]]) == 0.0


def test_of_several_references_the_nearest_length_counts_and_of_two_the_shorter():
    hypotheses = [["a", "b", "c"], ["a"], []]
    first, second = [["a"] * 5, ["a"] * 3, ["a"]], [["b"] * 2, ["b"] * 2, []]
    third = [["c"] * 4, [], ["c"]]
    assert nearest(hypotheses, [first, second, third]) == [["b"] * 2, [], []]
    assert nearest(hypotheses, [first]) == first


def test_sentences_and_lengths_are_scored_by_the_best_of_their_references():
    hypotheses, references, others = ["the cat sat there", "x"], ["a dog ran", "y"], ["the cat sat there", "z"]
    best, worst = best_and_worst(hypotheses, references, others=[others])
    assert (best[0].chrf, best[0].reference, best[0].others) == (100.0, "a dog ran", ("the cat sat there",))
    assert worst[0].others == ("z",)
    (bucket,) = by_length(hypotheses, references, others=[others])
    assert bucket.length_ratio == 1.0  # 4 + 1 tokens; those of the first references alone would be 3 + 1
    assert bucket.bleu > by_length(hypotheses, references)[0].bleu
