"""The report of `prepare`: figures against a simple count."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.data.doctor import LONGEST, _histogram, _percentile
from transformer_mt.text.script import foreign_script
from transformer_mt.workflows.data_remarks import remarks
from transformer_mt.workflows.data_report import report_lines

lengths = st.lists(st.integers(0, 40), min_size=1, max_size=60)


@given(lengths=lengths, share=st.sampled_from([0.5, 0.9, 0.95, 1.0]))
def test_a_percentile_is_the_length_that_this_share_does_not_exceed(lengths: list[int], share: float) -> None:
    expected = np.percentile(lengths, 100 * share, method="inverted_cdf")
    assert _percentile(Counter(lengths), share) == expected


@given(lengths=lengths)
def test_a_histogram_counts_every_sentence(lengths: list[int]) -> None:
    assert _histogram(Counter(lengths)) == np.bincount(lengths).tolist()


def test_the_last_bin_of_a_histogram_counts_all_longer_sentences() -> None:
    bins = _histogram(Counter({3: 2, LONGEST: 1, LONGEST + 1: 4, 10_000: 1}))
    assert len(bins) == LONGEST + 1
    assert (bins[3], bins[LONGEST], sum(bins)) == (2, 6, 8)


def test_an_empty_split_has_length_zero() -> None:
    assert (_percentile(Counter(), 0.95), _histogram(Counter())) == (0, [0])


@pytest.fixture
def report(workshop: Any) -> dict[str, Any]:
    """50 training and 30 test pairs. Tokens are characters; the vocabulary has those with at least 2 occurrences."""
    chance = random.Random(2)

    def pairs(count: int, letters: str) -> list[tuple[str, str]]:
        sides = (lambda: " ".join("".join(chance.choices(letters, k=3)) for _ in range(chance.randint(1, 9))),) * 2
        return [(sides[0](), sides[1]().upper()) for _ in range(count)]

    splits = {"train": pairs(50, "abcd"), "test": pairs(30, "abcdxyz")}
    tokenizer = {"kind": "character", "min_frequency": 2}
    prepared = workshop.prepare(workshop.splits(**splits), tokenizer=tokenizer, cleaning={"max_ratio": None})
    return {**prepared.manifest.report, "expected": splits}


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_figures_of_a_split_equal_a_simple_count(report: dict[str, Any], split: str, side: str) -> None:
    texts = [pair[side == "target"] for pair in report["expected"][split]]
    sizes = [len(text) for text in texts]
    unknown = sum(letter in "xyzXYZ" for text in texts for letter in text)
    words = sum(len(text.split()) for text in texts)
    figures = report["splits"][split][side]
    assert figures["tokens"] == sum(sizes)
    assert figures["mean"] == pytest.approx(statistics.mean(sizes), abs=0.01)
    assert (figures["longest"], figures["words"], figures["unknown"]) == (max(sizes), words, unknown)
    assert figures["tokens_per_word"] == pytest.approx(sum(sizes) / words, abs=0.001)
    assert figures["unknown_rate"] == pytest.approx(unknown / sum(sizes), abs=1e-6)
    assert sum(figures["histogram"]) == len(texts)
    assert (unknown > 0) == (split == "test")


def test_outliers_are_counted_with_their_places(workshop: Any) -> None:
    train = [
        *workshop.numbered(3),
        ("очень по-русски", "quite in Russian"),
        ("eins", "one" + " one" * 19),
        ("12 34", "12 34 !"),  # no letters: never an outlier
        ("ganz deutsch", "по-русски"),
        *((f"kurz {n}", "long " * 30 + str(n)) for n in range(8)),
    ]
    corpus = workshop.splits(train)
    report = workshop.prepare(corpus).manifest.report
    places = {kind: found["places"] for kind, found in report["outliers"].items()}
    assert {kind: found["pairs"] for kind, found in report["outliers"].items()} == {
        "script": 2,
        "length ratio": 9,
        "lower target": 6,
    }
    assert places["script"] == [f"{corpus['train']}:4", f"{corpus['train']}:7"]
    assert places["length ratio"] == [f"{corpus['train']}:{line}" for line in (5, 8, 9, 10, 11)]
    assert report["pairs"]["train"] == {"read": 15, "changed": {}, "dropped": {"length ratio": 9}, "kept": 6}


def test_sums_add_up_for_any_corpus(workshop: Any) -> None:
    chance = random.Random(8)
    sides = ["", "a", "b", "A!", "gleich", "x " * 200, "lang " * 30, " weit\u00a0 hin "]
    pairs = [(chance.choice(sides), chance.choice(sides)) for _ in range(300)]
    two = workshop.splits(pairs[:150], [*pairs[150:170], ("v", "w")], [*pairs[170:190], ("t", "u")], name="two")
    report = workshop.prepare(workshop.whole(workshop.numbered(20) + pairs), two).manifest.report
    for row in report["pairs"].values():
        assert row["read"] == row["kept"] + sum(row["dropped"].values())
        assert min([*row["dropped"].values(), *row["changed"].values()]) > 0
    kept = sum(row["kept"] for row in report["pairs"].values())
    assert kept == sum(split["pairs"] for split in report["splits"].values())
    rules = {"empty side", "identical sides", "duplicate", "leak", "length ratio", "longer than max_length"}
    assert {rule for row in report["pairs"].values() for rule in row["dropped"]} == rules


@pytest.mark.parametrize(
    ("language", "own", "foreign"),
    [
        ("ko", "안녕", "hello"),
        ("vi", "Ừ", "да"),
        ("bn", "বাংলা", "English"),
        ("mk", "ќе", "kje"),
        ("am", "ሰላም", "selam"),
        ("de", "Übung 3", "Упражнение"),
    ],
)
def test_sentences_in_another_script_are_outliers(language: str, own: str, foreign: str) -> None:
    assert not foreign_script(own, language)
    assert foreign_script(foreign, language)
    assert not foreign_script("12 !", language), "no letters"


@pytest.mark.parametrize("text", ["Здраво", "Zdravo"])
def test_unknown_languages_and_languages_with_two_scripts_have_no_script_outliers(text: str) -> None:
    assert not foreign_script(text, "sr")
    assert not foreign_script(text, "qaa")


def test_each_of_several_corpora_is_reported_and_one_without_training_pairs_gets_a_remark(workshop: Any) -> None:
    whole = {"validation": 0, "test": 0}
    news = workshop.whole(workshop.numbered(100), name="news", split={"validation": 10, "test": 10})
    copy = workshop.whole(workshop.numbered(40), name="copy", weight=5.0, tag="<copy>", split=whole)
    more = workshop.whole(workshop.numbered(300, 1_000), name="more", weight=0.5, split=whole)
    report = workshop.prepare(news, copy, more).report
    names = [str(workshop.folder / f"{name}.jsonl") for name in ("news", "copy", "more")]
    assert [(one.number, one.name, one.read, one.train, one.weight) for one in report.corpora] == [
        (1, names[0], 100, 80, 1.0),
        (2, names[1], 40, 0, 5.0),
        (3, names[2], 300, 300, 0.5),
    ]
    assert [one.share for one in report.corpora] == pytest.approx([80 / 230, 0, 150 / 230], abs=1e-6)
    (remark,) = (one for one in remarks(report) if one.text.startswith("corpus"))
    assert remark.text == (
        f"corpus 2 ({names[1]}) gives no training pairs: of 40, 'duplicate' drops 40;"
        " without effect: weight 5, tag <copy>"
    )
    assert "remove this one" in remark.remedy
    rows = [line.split() for line in report_lines(report)]
    assert ["corpus", "read", "train", "weight", "share", "of", "an", "epoch"] in rows
    assert ["2", names[1], "40", "0", "5.00", "0.0%"] in rows


def test_the_weights_of_corpora_are_those_that_a_temperature_gives(workshop: Any) -> None:
    news = workshop.splits(workshop.numbered(100))
    more = workshop.whole(workshop.numbered(400, 1_000), name="more", split={"validation": 0, "test": 0})
    report = workshop.prepare(news, more, temperature=2).report
    assert [one.share for one in report.corpora] == pytest.approx([1 / 3, 2 / 3], abs=1e-6)
    assert [one.weight for one in report.corpora] == pytest.approx([5 / 3, 5 / 6], abs=1e-6)


def test_one_corpus_needs_no_table_of_corpora(workshop: Any) -> None:
    prepared = workshop.prepare(workshop.splits(workshop.numbered(100)))
    assert "corpora" not in prepared.manifest.report
    assert not any(line.startswith("corpus") for line in report_lines(prepared.report))


def test_pairs_held_out_by_a_share_are_counted_over_all_corpora(workshop: Any) -> None:
    by_shares = workshop.whole(workshop.numbered(100))
    by_numbers = workshop.whole(workshop.numbered(100, 1_000), name="more", split={"validation": 7, "test": 7})
    mixed = workshop.whole(workshop.numbered(100, 2_000), name="mixed", split={"validation": 0.2, "test": 3})
    report = workshop.prepare(by_shares, by_numbers, mixed).report
    assert report.by_share == {"validation": 30, "test": 10}
    assert not workshop.prepare(workshop.splits(workshop.numbered(30))).report.by_share


def test_repetitions_inside_evaluation_splits_are_counted(workshop: Any) -> None:
    test = workshop.numbered(40, 20_000)
    case = [(source.upper(), target) for source, target in test[:5]]  # other text, so no repetition
    corpus = workshop.splits(workshop.numbered(30), test=[*test, *test[:10], *test[:2], *case])
    assert workshop.prepare(corpus).report.repeated == {"validation": 0, "test": 12}
