"""The JSON report always has the same keys; the text report begins with the scores."""

from __future__ import annotations

import json
import math
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from transformer_mt.evaluation import record
from transformer_mt.evaluation.examine import System, Words, examine
from transformer_mt.evaluation.record import read_scores, store_scores
from transformer_mt.evaluation.report import aligned, as_json, as_text
from transformer_mt.evaluation.scores import moses_tokenized
from transformer_mt.files.replace import replace_text
from transformer_mt.text.vocabulary import bleu_of_tokens

KEYS = {"bleu", "chrf", "ter", "signature", "signatures", "sentences", "left_out", "length_ratio", "bleu_table",
        "buckets", "best", "worst", "comparison", "loss", "perplexity", "lowercased_bleu", "literature_bleu",
        "test_set", "search", "intervals", "model", "decoding", "baseline"}  # fmt: skip


@pytest.fixture(scope="module")
def report(systems):
    system = System(
        name="test_made_up",
        hypotheses=systems.good,
        references=systems.references,
        language="de",
        sources=[f"source {n}" for n in range(len(systems.references))],
        baseline=systems.bad,
        tokenized_references=[moses_tokenized(systems.references, "de")],
        loss=math.log(5.0),
    )
    return examine(system, bleu_of_tokens=bleu_of_tokens)


def test_json_has_every_key_and_survives_a_round_trip(report):
    values = as_json(report)
    assert set(values) == KEYS
    assert json.loads(json.dumps(values)) == json.loads(json.dumps(values, allow_nan=False))
    assert values["signature"] == values["signatures"]["bleu"] == report.scores["bleu"].signature
    assert values["perplexity"] == pytest.approx(5.0)
    assert values["sentences"] == 80
    assert len(values["best"]) == len(values["worst"]) == 10
    assert set(values["comparison"]) == {"bleu", "chrf", "ter"}
    assert values["comparison"]["bleu"]["system"] == pytest.approx(values["bleu"])


def test_what_was_not_requested_is_null(systems):
    values = as_json(examine(System("t", systems.good, systems.references), ("chrf",)))
    assert set(values) == KEYS
    assert values["chrf"] > 0
    assert values["signature"] == values["signatures"]["chrf"]
    for key in ("bleu", "ter", "bleu_table", "comparison", "loss", "perplexity", "lowercased_bleu", "literature_bleu"):
        assert values[key] is None


def test_text_begins_with_bleu_in_its_standard_form(report):
    text = as_text(report)
    assert text.split("\n")[0] == report.scores["bleu"].line
    assert text.startswith("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    for part in ("loss 1.609, perplexity 5.000 a token", "cumulative", "length ratio", "The 10 worst", "source 3\n"):
        assert part in text


def test_other_forms_of_bleu_have_a_label_and_are_never_first(report):
    lower, papers = as_text(report).split("\n")[3:5]
    assert lower.startswith("lower-cased:")
    assert "case:lc" in lower
    assert papers.startswith("lower-cased, Moses-tokenised, as in papers:")
    assert "tok:none" in papers


def test_the_part_of_chance_stands_beside_the_scores_unless_a_comparison_shows_it(systems, report):
    alone = examine(System("t", systems.good, systems.references), ("bleu",))
    line = as_text(alone).split("\n")[1]
    assert (
        line
        == f"on very many sentences of this kind (95 %, bootstrap resampling): BLEU ± {alone.intervals['bleu']:.2f}"
    )
    assert as_json(alone)["intervals"] == alone.intervals
    assert "on very many sentences" not in as_text(report)
    few = examine(System("t", systems.good[:29], systems.references[:29]), ("bleu",))
    assert as_json(few)["intervals"] is None
    assert "on very many sentences" not in as_text(few)


def test_words_of_the_model_fill_the_table_if_given():
    words = Words("the model's words", [["a", "b"]], [[["a", "c"]]])
    report = examine(System("t", ["xx"], ["yy"], words=words), ("bleu",), bleu_of_tokens)
    assert report.table.individual[0] == pytest.approx(50)
    assert "the model's words" in as_text(report)


def test_a_huge_loss_has_no_perplexity(systems):
    values = as_json(examine(System("t", systems.good, systems.references, loss=1e4), ("chrf",)))
    assert values["loss"] == 1e4
    assert values["perplexity"] is None


def test_columns_are_aligned():
    assert aligned([("a", "b"), ("long", "100")]) == "a       b\nlong  100"
    assert aligned([("한글", "1"), ("long", "100")]) == "한글    1\nlong  100", "a Hangul letter is two columns wide"


class TestRecord:
    def test_test_sets_stand_side_by_side(self, tmp_path):
        file = tmp_path / "scores.json"
        store_scores(file, "one", {"decoding": 1}, {"bleu": 10.0})
        store_scores(file, "two", {"decoding": 1}, {"bleu": 20.0})
        assert {name: entry["bleu"] for name, entry in read_scores(file).items()} == {"one": 10.0, "two": 20.0}
        assert [path.name for path in tmp_path.glob("[!.]*")] == ["scores.json"]

    def test_evaluations_at_the_same_time_keep_each_others_scores(self, tmp_path, monkeypatch):
        def slowly(file, text):
            time.sleep(0.05)
            replace_text(file, text)

        monkeypatch.setattr(record, "replace_text", slowly)
        file, names = tmp_path / "scores.json", {"one", "two", "three", "four"}
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda name: store_scores(file, name, {}, {"bleu": 1.0}), names))
        assert read_scores(file).keys() == names

    def test_a_figure_not_measured_again_stays_only_under_the_same_settings(self, tmp_path):
        file = tmp_path / "scores.json"
        store_scores(file, "t", {"decoding": 1}, {"bleu": 10.0, "chrf": 30.0})
        store_scores(file, "t", {"decoding": 1}, {"bleu": 11.0, "chrf": None})
        assert read_scores(file)["t"] == {"bleu": 11.0, "chrf": 30.0, "decoding": 1}
        store_scores(file, "t", {"decoding": 2}, {"bleu": 12.0, "chrf": None})
        assert read_scores(file)["t"]["bleu"] == 12.0
        assert "chrf" not in read_scores(file)["t"]

    def test_scores_of_each_search_stay_and_the_newest_comes_first(self, tmp_path):
        file = tmp_path / "scores.json"
        for beam, bleu in ((1, 10.0), (4, 11.0), (8, 12.0)):
            store_scores(file, "t", {"beam": beam}, {"bleu": bleu, "signatures": {"bleu": "b"}})
        store_scores(file, "t", {"beam": 4}, {"bleu": None, "chrf": 30.0, "signatures": {"chrf": "c"}})
        newest = read_scores(file)["t"]
        others = newest.pop("others")
        assert newest == {"beam": 4, "bleu": 11.0, "chrf": 30.0, "signatures": {"bleu": "b", "chrf": "c"}}
        assert [(one["beam"], one["bleu"]) for one in others] == [(8, 12.0), (1, 10.0)]
        assert not any("others" in one for one in others)

    @pytest.mark.parametrize("entry", [3, None, [], {"others": 4}, {"bleu": 1.0, "others": [None, 5]}])
    def test_an_entry_that_is_no_record_is_replaced(self, tmp_path, entry):
        file = tmp_path / "scores.json"
        file.write_text(json.dumps({"t": entry}))
        store_scores(file, "t", {"beam": 4}, {"bleu": 2.0})
        stored = read_scores(file)["t"]
        assert (stored["bleu"], stored["beam"]) == (2.0, 4)

    def test_intervals_of_metrics_measured_apart_stand_together(self, tmp_path):
        file = tmp_path / "scores.json"
        store_scores(file, "t", {}, {"bleu": 10.0, "intervals": {"bleu": 1.0}})
        store_scores(file, "t", {}, {"chrf": 30.0, "intervals": {"chrf": 0.5}})
        assert read_scores(file)["t"]["intervals"] == {"bleu": 1.0, "chrf": 0.5}

    @pytest.mark.parametrize("damage", ["", "{", "{ }\n", "[]"])
    def test_an_empty_file_is_written_anew(self, tmp_path, damage):
        file = tmp_path / "scores.json"
        file.write_text(damage)
        assert store_scores(file, "t", {}, {"bleu": 1.0}) is None
        assert read_scores(file) == {"t": {"bleu": 1.0}}

    def test_a_damaged_file_is_kept_under_another_name(self, tmp_path):
        file = tmp_path / "scores.json"
        file.write_text('{"other": {"bleu": 2.0}')
        kept = store_scores(file, "t", {}, {"bleu": 1.0})
        assert kept == tmp_path / "scores.json.damaged1"
        assert kept.read_text() == '{"other": {"bleu": 2.0}'
        file.write_text("\x00")
        assert store_scores(file, "t", {}, {"bleu": 1.0}) == tmp_path / "scores.json.damaged2"
        assert read_scores(file) == {"t": {"bleu": 1.0}}
