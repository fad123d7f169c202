"""The report of `tmt prepare`: its tables, and its remarks on unusual data."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from transformer_mt.data.doctor import DataReport
from transformer_mt.data.selection import OTHER
from transformer_mt.workflows.data_remarks import Remark, remarks
from transformer_mt.workflows.data_report import report_lines, short_report


def _side(**figures: Any) -> dict[str, Any]:
    normal = {"tokens": 1_200, "mean": 12.0, "percentile_95": 20, "longest": 31, "words": 1_000}
    return {**normal, "tokens_per_word": 1.2, "unknown": 1, "unknown_rate": 0.001, "histogram": [], **figures}


def _report(**changed: Any) -> DataReport:
    """A report that needs no remark."""
    split = {"pairs": 100, "cut": 0, "source": _side(), "target": _side()}
    values = {
        "name": "work",
        "languages": {"source": "ko", "target": "en"},
        "pairs": {
            "train": {"read": 1_040, "changed": {"NFC": 7}, "dropped": {"duplicate": 40}, "kept": 1_000},
            "validation": {"read": 100, "changed": {}, "dropped": {}, "kept": 100},
        },
        "splits": {name: copy.deepcopy(split) for name in ("train", "validation", "news")},
        "vocabulary": {"source": 1_234, "target": 5_678},
        "shared_vocabulary": False,
        "counts_words": {"source": True, "target": True},
        "case": {"source": "keep", "target": "keep"},
        "lossless": {"source": False, "target": True},
        "max_length": 128,
        "leaks": {"validation": {"pair": 0, "source": 0}, "news": {"pair": 0, "source": 0}},
        "leaks_dropped": "pair",
        "overlaps": [{"splits": ["validation", "news"], "pair": 0, "source": 0}],
        "outliers": {},
        **changed,
    }
    return DataReport.from_json(values)


def _only(**changed: Any) -> Remark:
    (remark,) = remarks(_report(**changed))
    return remark


def test_clean_data_gets_no_remark() -> None:
    assert list(remarks(_report())) == []
    assert "- " not in "\n".join(report_lines(_report()))


def test_an_empty_line_precedes_the_remarks() -> None:
    assert report_lines(_report())[-1].startswith("vocabular")
    lines = report_lines(_report(case={"source": "keep", "target": "lower"}))
    assert lines[-3:-1] == ["", "- translations are in lower case"]


def test_tables_are_aligned_and_count_read_changed_dropped_and_kept_pairs() -> None:
    lines = report_lines(_report())
    assert lines[:8] == [
        "work: ko -> en",
        "",
        "pairs               train  validation",
        "read                1,040         100",
        "changed: NFC            7           0",
        "dropped: duplicate     40           0",
        "kept                1,000         100",
        "",
    ]
    assert " ".join(lines[8].split()) == "split language pairs tokens mean 95 % within longest tokens/word unknown"
    assert lines[9].split() == ["train", "ko", "100", "1,200", "12.0", "20", "31", "1.20", "0.10%"]
    assert lines[10].split() == ["en", "1,200", "12.0", "20", "31", "1.20", "0.10%"]
    assert len({len(line) for line in lines[8:15]}) == 1
    assert lines[16] == "vocabularies: 1,234 tokens ko, 5,678 tokens en"


def test_a_shared_vocabulary_is_listed_once() -> None:
    assert "vocabulary: 1,234 tokens for both languages" in report_lines(_report(shared_vocabulary=True))


@pytest.mark.parametrize(
    ("rule", "texts"),
    [
        ("pair", ["1 training pair also in validation: dropped", "2 training pairs with a source of validation"]),
        ("off", ["1 training pair also in validation: kept", "2 training pairs with a source of validation"]),
    ],
)
def test_leaks_are_reported_with_what_was_done(rule: str, texts: list[str]) -> None:
    report = _report(leaks={"validation": {"pair": 1, "source": 3}}, leaks_dropped=rule)  # as older versions wrote it
    found = list(remarks(report))
    assert [remark.text[: len(start)] for remark, start in zip(found, texts, strict=True)] == texts
    assert found[1].text.endswith("and another translation: kept")
    assert "leaks: source" in found[1].remedy
    assert ("leaks: pair" in found[0].remedy) == (rule == "off")


@pytest.mark.parametrize(("rule", "outcome"), [("pair", "their pairs are dropped"), ("off", "kept")])
def test_leaks_between_directions_are_reported(rule: str, outcome: str) -> None:
    remark = _only(leaks={"news": {"pair": 0, "source": 0, OTHER: 2}}, leaks_dropped=rule)
    assert remark.text == f"2 training sentences also in news of another direction: {outcome}"
    assert ("leaks: pair" in remark.remedy) == (rule == "off")


def test_leaks_by_source_are_reported_as_dropped_if_the_config_says_so() -> None:
    remark = _only(leaks={"news": {"pair": 0, "source": 3}}, leaks_dropped="source")
    assert remark == ("3 training pairs with a source of news and another translation: dropped", "", ())


@pytest.mark.parametrize(
    ("rule", "outcome", "remedy"),
    [
        ("pair", "kept", "data.cleaning.leaks: target drops them too."),
        ("source", "kept", "data.cleaning.leaks: either drops them too."),
        ("target", "dropped", ""),
        ("either", "dropped", ""),
    ],
)
def test_references_that_stand_in_training_are_reported(rule: str, outcome: str, remedy: str) -> None:
    remark = _only(leaks={"news": {"pair": 0, "source": 0, "target": 2}}, leaks_dropped=rule)
    assert remark == (f"2 training pairs with a translation of news and another source: {outcome}", remedy, ())


def test_skipped_rows_are_reported() -> None:
    passed = [{"place": "a.tsv", "rows": 2, "reason": "too many columns", "remedy": "Quote.", "first": ["a.tsv:3"]}]
    assert _only(passed=passed) == ("a.tsv: 2 rows not read: too many columns", "Quote.", ("a.tsv:3",))
    files = [{"place": "folder", "rows": 1, "reason": "packed: a.bz2", "what": "file"}]
    assert _only(passed=files) == ("folder: 1 file not read: packed: a.bz2", "", ())


def test_pairs_are_shown_whole_in_the_width_of_the_terminal() -> None:
    long = " ".join(["Wort"] * 30)
    report = _report(examples={"train": [(long, "word")]})
    assert f"  ko: {long}" in report_lines(report)
    lines = report_lines(report, 60)
    begin = lines.index("pairs of train:")
    shown = "\n".join(lines[begin + 1 :]).split("\n")
    assert all(len(line) <= 60 for line in shown)
    assert shown[1].startswith("      Wort")
    assert "".join(shown).count("Wort") == 30


def test_the_short_report_has_counts_pairs_and_notes() -> None:
    lines = list(
        short_report(_report(examples={"train": [("하나", "one")]}, case={"source": "keep", "target": "lower"}))
    )
    assert lines[:3] == [
        "pairs      100 train, 100 validation, 100 news; dropped: 40 duplicate",
        "           ko: 하나",
        "           en: one",
    ]
    assert lines[3] == "note       translations are in lower case"
    assert lines[4].startswith("           With case: keep")


def test_overlaps_are_reported() -> None:
    remark = _only(overlaps=[{"splits": ["validation", "news"], "pair": 1, "source": 2}])
    assert remark.text == "2 source sentences of news also in validation, 1 with the same translation: kept"
    assert "validation" in remark.remedy


def test_large_shares_for_validation_and_test_are_reported_with_the_keys_to_write() -> None:
    remark = _only(by_share={"validation": 29_709, "test": 29_709})
    assert remark.text.startswith("29,709 pairs for validation and 29,709 pairs for test are a share of the corpus")
    assert remark.remedy.endswith("Set in data.corpus:  split: {validation: 1000, test: 1000}")
    beside_a_test_set = _only(by_share={"validation": 20_001})
    assert beside_a_test_set.remedy.endswith("split: {validation: 1000}")
    assert not list(remarks(_report(by_share={"validation": 20_000, "test": 20_000})))


def test_pairs_that_a_test_set_has_twice_are_reported() -> None:
    remark = _only(repeated={"validation": 0, "news": 10})
    assert remark.text == "10 pairs of news equal to an earlier one: kept, as test sets are not changed"
    assert "Remove them" in remark.remedy
    assert _only(repeated={"validation": 1}).text.startswith("1 pair of validation equal to an earlier one: kept")


def _with(split: str, side: str | None = None, **figures: Any) -> dict[str, Any]:
    splits: dict[str, Any] = _report().to_json()["splits"]
    (splits[split][side] if side else splits[split]).update(figures)
    return splits


def test_cut_sentences_are_reported_with_the_length_that_keeps_them_whole() -> None:
    splits = _with("news", cut=2)
    splits["news"]["target"]["longest"] = 140
    assert _only(splits=splits) == (
        "2 pairs of news cut at 128 tokens",
        "data.max_length: 141 keeps all of them whole.",
        (),
    )
    splits["news"]["target"]["longest"] = 5_000  # more than the config allows
    assert _only(splits=splits).remedy == ""


def test_a_rule_that_drops_much_is_reported() -> None:
    pairs = {"all": {"read": 1_000, "changed": {}, "dropped": {"length ratio": 250, "leak": 5}, "kept": 745}}
    assert _only(pairs=pairs).text == "'length ratio' drops 25% of the corpus"
    assert "whole corpus" in report_lines(_report(pairs=pairs))[2]
    remedy = "If that is not intended, check data.cleaning.max_ratio."
    assert _only(pairs=pairs).remedy == remedy
    characters = _only(pairs=pairs, splits=_with("validation", "target", mean=62.4))
    assert characters.remedy == f"{remedy} In validation, one side has 5.2 times the tokens of the other."


@pytest.mark.parametrize(("words", "remedy"), [(True, "min_frequency"), (False, "byte_fallback")])
def test_many_unknown_tokens_are_reported_with_a_remedy_for_this_tokenizer(words: bool, remedy: str) -> None:
    remark = _only(
        splits=_with("validation", "source", unknown_rate=0.118), counts_words={"source": words, "target": words}
    )
    assert remark.text == "11.8% of the ko tokens in validation are unknown"
    assert remedy in remark.remedy


def test_words_in_many_pieces_are_reported_for_subword_tokenizers_only() -> None:
    splits = _with("validation", "target", tokens_per_word=3.4)
    remark = _only(splits=splits, counts_words={"source": True, "target": False})
    assert remark.text == "words of the en text take 3.4 tokens on average"
    japanese = {"source": "ko", "target": "ja"}  # a "word" would be a whole clause
    changed = {"splits": splits, "counts_words": {"source": True, "target": False}, "languages": japanese}
    assert not list(remarks(_report(**changed)))
    assert "vocab_size" in remark.remedy
    assert list(remarks(_report(splits=splits))) == []


def test_lossy_tokenizers_are_reported_for_the_target_only() -> None:
    assert _only(lossless={"source": False, "target": False}).text == "the en tokenizer loses spaces or case"
    remark = _only(lossless={"source": False, "target": False}, case={"source": "lower", "target": "lower"})
    assert remark.text == "translations are in lower case"
    assert "case: keep" in remark.remedy


def test_outliers_are_reported_with_examples() -> None:
    places = [f"corpus.tsv:{line}" for line in range(5)]
    found = list(
        remarks(
            _report(
                outliers={"script": {"pairs": 9, "places": places}, "length ratio": {"pairs": 1, "places": places[:1]}}
            )
        )
    )
    assert found == [
        (
            "9 training pairs without a letter of their language on one side: kept",
            "",
            places,
        ),
        ("1 training pair with very different lengths: dropped", "", places[:1]),
    ]
    assert found[0].lines == ["See corpus.tsv:0, corpus.tsv:1, corpus.tsv:2, ..."]
    assert found[1].lines == ["See corpus.tsv:0"]
