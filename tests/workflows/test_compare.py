"""Runs side by side: settings that differ, results, means over seeds, and what does not compare."""

from __future__ import annotations

import json
import re
import statistics
import sys
from importlib import reload

import pytest
import torch
import yaml
from sacrebleu.metrics.chrf import CHRF
from safetensors.torch import save_file
from scipy.stats import ttest_ind

from transformer_mt import TmtError, compare_runs
from transformer_mt.cli import compare, evaluate, main
from transformer_mt.config.load import dump_config, load_config
from transformer_mt.config.schema import Config
from transformer_mt.evaluation.metrics import METRICS, Metric

CORPUS = [{"path": "train.tsv", "sha256": "a" * 64}]


def _config(name, **values):
    config = {
        "name": name,
        "data": {"source": "de", "target": "en", "corpus": {"kind": "phrasebook"}},
        "tokenizer": {"kind": "whitespace"},
        "training": {"max_epochs": 1},
        "seed": 1,
    }
    for key, value in values.items():
        *sections, last = key.split("__")
        place = config
        for section in sections:
            place = place.setdefault(section, {})
        place[last] = value
    return Config.model_validate(config)


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes a run in runs/, with these validations (loss, BLEU, whether it is the best) and scores."""
    monkeypatch.chdir(tmp_path)

    def make(name, validations=((2.0, 30.0, True),), scores=None, finished=True, corpus=CORPUS, **values):
        folder = tmp_path / "runs" / name
        (folder / "model").mkdir(parents=True)
        config = _config(name.rpartition("/")[2], **values)
        (folder / "config.yaml").write_text(dump_config(config))
        (folder / "run.json").write_text(json.dumps([{"corpus": corpus, "config": config.model_dump(mode="json")}]))
        records = [{"event": "started", "step": 0, "time": 1.0}]
        for number, (loss, bleu, best) in enumerate(validations, start=1):
            more = {"loss": loss, "bleu": bleu, "best": best, "seconds": 60.0}
            records.append({"event": "validation", "step": 100 * number, "time": 1.0 + number, **more})
        if finished:
            end = {"step": 100 * len(validations), "seconds": 61.0 * len(validations)}
            records.append({"event": "finished", "time": 99.0, **end})
        (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
        if scores is not None:
            (folder / "model" / "scores.json").write_text(json.dumps(scores))
        return folder

    return make


def _scores(bleu, **more):
    return {"test": {"bleu": bleu, "chrf": bleu + 20, "signatures": {"bleu": "13a", "chrf": "6"}, **more}}


def _write(folder, *records):
    with (folder / "metrics.jsonl").open("a") as file:
        file.writelines(f"{json.dumps({'time': 200.0, **record})}\n" for record in records)


def test_only_settings_that_differ_are_shown_and_the_best_validation_counts(make):
    make("one", ((3.0, 10.0, True), (2.0, 31.0, True), (2.1, 33.0, False)), _scores(40.0))
    make("two", ((1.5, 35.0, True),), _scores(41.0), model__d_ff=64, finished=False)
    found = compare_runs()
    one, two = found.runs
    assert found.keys == ["model.d_ff"]
    assert (one.name, one.loss, one.bleu, one.updates, one.seconds) == ("one", 2.0, 31.0, 300, 183.0)
    assert (two.state, two.seconds, two.settings) == ("unfinished", 60.0, {"model.d_ff": 64})
    assert (one.scores["test"]["bleu"], one.scores["test"]["chrf"], one.best_step) == (40.0, 60.0, 200)
    assert found.groups == []
    assert found.lines == [
        "run               d_ff  updates  time  valid loss  greedy BLEU  test BLEU",
        f"one               {one.settings['model.d_ff']}      300  3:03       2.000        31.00      40.00",
        "two (unfinished)    64      100  1:00       1.500        35.00      41.00",
    ]


def test_of_other_tokenizers_only_what_was_chosen_is_shown(make):
    make("a")
    make("b", tokenizer={"kind": "sentencepiece", "vocab_size": 900, "case": "lower"})
    make("c", tokenizer={"source": {"kind": "character"}, "target": {"kind": "sentencepiece", "vocab_size": 700}})
    assert set(compare_runs().keys) == {
        *("tokenizer.kind", "tokenizer.vocab_size", "tokenizer.case"),
        *("tokenizer.source.kind", "tokenizer.target.kind", "tokenizer.target.vocab_size"),
    }


def test_means_over_seeds(make, capsys):
    losses, scores = (2.0, 2.1, 2.4), (40.0, 41.0, 43.5)
    for seed, loss, bleu in zip((1, 2, 3), losses, scores, strict=True):
        make(f"base-{seed}", ((loss, 30.0, True),), _scores(bleu), seed=seed)
    make("wide", ((1.9, 30.0, True),), _scores(44.0), model__d_ff=64)
    make("base-4", ((9.0, 1.0, True),), seed=4, finished=False)
    found = compare_runs()
    (group,) = found.groups
    assert found.keys == ["seed", "model.d_ff"]
    assert group.names == ["base-1", "base-2", "base-3"], "a run that has not finished is in no mean"
    assert group.loss.mean == pytest.approx(statistics.mean(losses))
    assert group.scores["test"]["bleu"].deviation == pytest.approx(statistics.stdev(scores))
    assert group.scores["test"]["chrf"].mean == pytest.approx(statistics.mean(scores) + 20)
    assert group.scores["test"]["bleu"].runs == 3
    assert "2.167 ± 0.208  " in found.lines[-1]
    assert found.lines[-1].endswith("41.50 ± 1.80")
    assert capsys.readouterr().err == ""
    assert json.loads(json.dumps(found.to_json()))["groups"][0]["scores"]["test"]["bleu"]["runs"] == 3


def test_differences_between_means_are_those_of_welchs_test(make):
    values = {"base": (40.0, 41.0, 43.5), "wide": (45.0, 44.0, 46.5, 45.2)}
    for name, numbers in values.items():
        more = {"model__d_ff": 64} if name == "wide" else {}
        for seed, bleu in enumerate(numbers):
            make(f"{name}-{seed}", ((bleu / 20, bleu - 1, True),), _scores(bleu), seed=seed, **more)
    found = compare_runs()
    (difference,) = found.differences
    assert difference.names == ["wide-0", "wide-1", "wide-2", "wide-3"]
    expected = ttest_ind(values["wide"], values["base"], equal_var=False)
    low, high = expected.confidence_interval(0.95)
    for scale, one in ((1, difference.scores["test"]["bleu"]), (20, difference.loss), (1, difference.bleu)):
        assert one.value * scale == pytest.approx((low + high) / 2)
        assert one.interval * scale == pytest.approx((high - low) / 2)
        assert one.p_value == pytest.approx(expected.pvalue)
    assert "base-0, base-1, base-2: ± half its 95 % confidence interval" in found.lines[-3]
    assert found.lines[-1].endswith("+3.67 ± 3.71, p 0.051")
    assert found.lines[-1].startswith("wide-0, wide-1, wide-2, wide-3    64  +0.18")
    assert json.loads(json.dumps(found.to_json()))["differences"][0]["scores"]["test"]["chrf"]["value"] > 0


def test_a_difference_that_no_seed_changes_has_no_probability(make):
    for seed in (1, 2):
        make(f"a-{seed}", ((2.0, 30.0, True),), _scores(40.0), seed=seed)
        make(f"b-{seed}", ((2.0, 30.0, True),), _scores(42.0), seed=seed, model__d_ff=64)
    found = compare_runs()
    one = found.differences[0].scores["test"]["bleu"]
    assert (one.value, one.interval, one.p_value) == (2.0, None, None)
    assert found.lines[-1].split() == ["b-1,", "b-2", "64", "+0.000", "+0.00", "+2.00"]


@pytest.mark.parametrize(
    ("more", "missing"),
    [
        ({"scores": {"text": "2"}}, {"scores"}),
        ({"scores": {"decoding": {"beam": 1}}}, {"scores"}),
        ({"training__bleu_sentences": 7}, {"bleu"}),
        ({"data__corpus": {"kind": "phrasebook", "validation": 100}}, {"loss", "bleu"}),
        ({"data__source": "en", "data__target": "de"}, {"loss", "bleu"}),
        ({"tokenizer": {"kind": "character"}}, {"loss"}),
        ({"corpus": [{"path": "train.tsv", "sha256": "b" * 64}]}, {"loss", "bleu"}),
    ],
)
def test_what_does_not_compare_has_no_difference(make, more, missing):
    for seed in (1, 2):
        make(f"a-{seed}", ((seed, 30.0 + seed, True),), _scores(40.0 + seed, text="1"), seed=seed)
        other = {"model__d_ff": 64, **more, "scores": _scores(42.0 - seed, **{"text": "1", **more.get("scores", {})})}
        make(f"b-{seed}", ((seed, 30.0 + seed, True),), seed=seed, **other)
    found = compare_runs()
    (one,) = found.differences
    assert {key for key in ("loss", "bleu", "scores") if not getattr(one, key)} == missing
    assert found.lines[-1].split()[3:].count("-") == len(missing)


def test_a_mean_has_no_run_twice_and_none_of_another_corpus(make, capsys):
    for name, seed in (("a", 1), ("b", 2), ("copy", 2)):
        make(name, seed=seed, scores=_scores(10.0 * seed))
    make("other", seed=3, corpus=[{"path": "train.tsv", "sha256": "b" * 64}], scores=_scores(90.0))
    (group,) = compare_runs().groups
    assert group.names == ["a", "b"]
    assert group.scores["test"]["bleu"].mean == 15.0
    assert capsys.readouterr().err == (
        "tmt: the corpus of other has other contents than that of a\n"
        "tmt: copy has the settings and the seed of b: the mean has only one of them\n"
    )


def test_a_test_set_that_only_some_have_scored(make):
    make("a", seed=1, scores=_scores(10.0))
    make("b", seed=2)
    found = compare_runs()
    (group,) = found.groups
    assert group.scores == {}
    assert [line.split()[-1] for line in found.lines[1:3]] == ["10.00", "-"]
    assert found.lines[-1].split()[-1] == "-"
    make("c", seed=3, scores=_scores(20.0))
    assert compare_runs().lines[-1].endswith("15.00 ± 7.07 (of 2)")


@pytest.mark.parametrize(
    ("more", "note"),
    [
        ({"text": "2"}, "test: b translated other sentences than a"),
        ({"decoding": {"beam": 1}}, "test: b searched with other settings than a"),
        ({"signatures": {"bleu": "char"}}, "test: b and a have other forms of BLEU"),
        ({"signatures": {"chrf": "6"}}, ""),
    ],
)
def test_scores_that_do_not_compare_are_named(make, capsys, more, note):
    own = {"text": "1", "decoding": {"beam": 5}}
    make("a", scores=_scores(10.0, **own))
    make("b", scores=_scores(20.0, **{**own, **more}))
    compare_runs()
    assert capsys.readouterr().err == (f"tmt: {note}\n" if note else "")


def test_losses_of_other_vocabularies_are_named(make, capsys):
    make("a")
    make("b", tokenizer__kind="character")
    compare_runs()
    assert "losses do not compare: b and a have other vocabularies" in capsys.readouterr().err


def test_a_run_whose_config_cannot_be_read_is_shown_without_settings(make, capsys):
    make("a", model__d_ff=64)
    make("b")
    damaged = make("c", scores=_scores(10.0))
    (damaged / "run.json").write_text("[")
    (damaged / "config.yaml").write_text("name: 3: 4")
    found = compare_runs()
    assert found.runs[2].settings is None
    assert found.lines[3].split()[:2] == ["c", "-"]
    assert "its settings are unknown, so it is in no mean over seeds" in capsys.readouterr().err


def test_the_settings_are_those_of_the_training_not_of_an_edited_file(make):
    make("a", model__d_ff=64)
    edited = make("b", model__d_ff=32)
    (edited / "config.yaml").write_text(dump_config(_config("b", model__d_ff=8)))
    assert load_config(edited / "config.yaml").model.d_ff == 8
    assert [run.settings for run in compare_runs().runs] == [{"model.d_ff": 64}, {"model.d_ff": 32}]


def test_damaged_scores_and_a_run_without_records(make):
    folder = make("a", scores={"test": 3, "other": {"bleu": "x"}, "third": {"others": 4, "chrf": True}})
    (folder / "metrics.jsonl").write_text("")
    (run,) = compare_runs().runs
    assert (run.updates, run.loss, run.state) == (0, None, "unfinished")
    assert not any({"bleu", "chrf", "ter"} & entry.keys() for entry in run.scores.values())
    assert len(compare_runs().lines) == 2


def test_a_finished_run_that_trains_on_is_not_finished(make, capsys):
    """Its scores are those of the older model. If it ends again, or is only started again, all is as ever."""
    folder = make("a", seed=1, scores=_scores(10.0))
    make("b", seed=2, scores=_scores(20.0))
    assert len(compare_runs().groups) == 1
    _write(folder, {"event": "resumed", "step": 100}, {"event": "finished", "step": 100, "seconds": 61.0})
    assert compare_runs().runs[0].state == "finished"
    validation = {"event": "validation", "step": 200, "loss": 1.0, "best": True, "seconds": 50.0}
    _write(folder, {"event": "resumed", "step": 100}, validation)
    assert capsys.readouterr().err == ""
    found = compare_runs()
    run = found.runs[0]
    assert (run.state, run.seconds, run.loss, run.scores, found.groups) == ("unfinished", 110.0, 1.0, {}, [])
    assert "runs/a: goes on after the training that made its model" in capsys.readouterr().err
    _write(folder, {"event": "finished", "step": 200, "seconds": 111.0})
    assert (compare_runs().runs[0].state, compare_runs().runs[0].scores["test"]["bleu"]) == ("finished", 10.0)


def test_a_run_that_went_back_behind_its_end_has_no_scores(make, capsys):
    """Its newest checkpoint was lost: the end is no longer in metrics.jsonl, but run.json knows of it."""
    folder = make("a", ((2.0, 1.0, True), (1.0, 2.0, True)), scores=_scores(10.0))
    facts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps([{**facts[0], "finished": {"step": 200}}]))
    _write(folder, {"event": "resumed", "step": 100})
    assert (compare_runs().runs[0].state, compare_runs().runs[0].scores) == ("unfinished", {})


def test_scores_of_a_version_with_fewer_search_settings(make):
    own = _config("x").decoding.model_dump(mode="json")
    older = {key: value for key, value in own.items() if key != "no_repeat_ngram"}
    entry = _scores(10.0, decoding=older)["test"]
    make("a", scores={"test": {**_scores(99.0, decoding={**own, "beam": 1})["test"], "others": [entry]}})
    assert compare_runs().runs[0].scores["test"]["bleu"] == 10.0


@pytest.mark.parametrize("corpus", [3, None, [{"path": 4}], "x"])
def test_a_corpus_that_is_not_known_is_named(make, capsys, corpus):
    for seed in (1, 2):
        make(f"s{seed}", seed=seed, corpus=corpus)
    assert compare_runs().groups == []
    assert capsys.readouterr().err.count("run.json does not say its corpus") == 2


def test_a_trial_that_a_search_has_stopped_is_in_no_mean(make):
    for seed, reason in ((1, "max_epochs reached"), (2, "stopped: not among the best 2 of 6 after validation 1")):
        folder = make(f"trial-{seed}", seed=seed, finished=False)
        _write(folder, {"event": "finished", "step": 100, "seconds": 61.0, "reason": reason})
    found = compare_runs()
    assert [run.state for run in found.runs] == ["finished", "stopped"]
    assert found.groups == []
    assert found.lines[2].startswith("trial-2 (stopped)")


def test_the_score_of_the_search_of_the_config_counts(make, capsys):
    """`tmt evaluate --beam 1` of one of the runs changes no mean."""
    own = _config("x").decoding.model_dump(mode="json")
    newer = {"decoding": {**own, "beam": 1}}
    for seed in (1, 2):
        entry = _scores(10.0 * seed, decoding=own)["test"]
        scores = {"test": {**_scores(99.0, **newer)["test"], "others": [entry]}} if seed == 1 else {"test": entry}
        make(f"s{seed}", seed=seed, scores=scores)
    found = compare_runs()
    assert [run.scores["test"]["bleu"] for run in found.runs] == [10.0, 20.0]
    assert found.groups[0].scores["test"]["bleu"].mean == 15.0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("more", [{"text": "2"}, {"decoding": {"beam": 1}}, {"weights": "bfloat16"}])
def test_scores_that_do_not_compare_have_no_mean(make, more):
    own = {"text": "1", "decoding": {"beam": 5}, "weights": None}
    make("a", seed=1, scores=_scores(10.0, **own))
    make("b", seed=2, scores=_scores(20.0, **{**own, **more}))
    found = compare_runs()
    assert found.groups[0].scores == {}
    assert found.groups[0].loss.mean == 2.0
    assert len(found.notes) == 1
    assert found.to_json()["notes"] == found.notes


def test_what_is_nearly_the_same_is_not_the_same(make, capsys):
    """Settings that a table shows alike; an unknown corpus; other weights to start from."""
    make("a", seed=1, training__noam_factor=2.1392)
    make("b", seed=2, training__noam_factor=2.1388)
    assert compare_runs().groups == []
    for name, seed in (("c", 3), ("d", 4)):
        (make(name, seed=seed) / "run.json").unlink()
    assert compare_runs(["runs/c", "runs/d"]).groups == []
    assert "its corpus is unknown, so it is in no mean over seeds" in capsys.readouterr().err
    parents = {"e": (5, "1" * 64), "f": (6, "2" * 64), "g": (7, "2" * 64), "h": (8, None)}
    for name, (seed, parent) in parents.items():
        folder = make(name, seed=seed, training__start_from="runs/a", training__schedule="constant")
        facts = json.loads((folder / "run.json").read_text())
        facts[0] |= {} if parent is None else {"parent": parent}
        (folder / "run.json").write_text(json.dumps(facts))
    found = compare_runs([f"runs/{name}" for name in parents])
    assert [group.names for group in found.groups] == [["f", "g"]]
    assert found.notes == ["f, g started from other weights than e"]


def test_a_corpus_that_was_moved_has_the_same_vocabularies(make, capsys):
    for name, place in (("a", "x.tsv"), ("b", "d/x.tsv")):
        corpus = {"kind": "text", "train": place, "validation": place}
        folder = make(name, data__corpus=corpus)
        facts = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps([{**facts[0], "tokenizers": "t" * 64}]))
    found = compare_runs()
    assert found.keys == ["data.corpus.train", "data.corpus.validation"]
    assert (found.notes, capsys.readouterr().err) == ([], "")


def test_greedy_bleu_of_fewer_sentences_is_named(make):
    make("a")
    make("b", training__bleu_sentences=50)
    assert compare_runs().notes == ["greedy BLEU of b may be of another number of sentences than that of a"]


@pytest.mark.parametrize(
    "scores", ['{"test": {"bleu": NaN}}', '{"test": {"bleu": 3, "signatures": "x"}}', '{"test": {"bl']
)
def test_damaged_scores_give_no_traceback(make, capsys, scores):
    for seed in (1, 2):
        (make(f"s{seed}", seed=seed) / "model" / "scores.json").write_text(scores)
    found = compare_runs()
    assert "NaN" not in json.dumps(found.to_json())
    assert ("scores.json is damaged" in capsys.readouterr().err) == scores.endswith("bl")


def test_settings_that_change_nothing_do_not_part_runs(make):
    make("a", seed=1, runtime__threads=1)
    make("b", seed=2, runtime__threads=2)
    found = compare_runs()
    assert (found.keys, len(found.groups)) == (["seed"], 1)


def test_many_runs_and_wide_settings_stay_readable(make):
    for seed in range(1, 13):
        make(f"a-very-long-name-of-a-run-{seed}", seed=seed)
    corpus = [{"kind": "text", "train": [f"folder/file-{n}.tsv" for n in range(40)], "validation": "v.tsv"}]
    make("other", data__corpus=corpus)
    found = compare_runs()
    assert [run.name.rpartition("-")[2] for run in found.runs[:12]] == [str(n) for n in range(1, 13)]
    assert found.lines[-1].startswith("a-very-long-name-of-a-run-1 … a-very-long-name-of-a-run-12 (12)  ")
    assert max(map(len, found.lines)) < 200


def test_tables_for_a_paper(make, tmt):
    """Every figure of the table in a terminal, as Markdown, and as LaTeX that needs no change."""
    for seed in (1, 2):
        make("base_" + str(seed), scores=_scores(40.0 + seed), seed=seed)
        make("wide_" + str(seed), scores=_scores(45.0 + seed), seed=seed, model__d_ff=64, decoding__beam=3)
    report = compare_runs()
    markdown, latex = (tmt("--format", form)[1].splitlines() for form in ("markdown", "latex"))

    def tables(lines, between):
        rows = [[cell.strip() for cell in line.rstrip("\\").split(between)] for line in lines if between in line]
        return [[cell for cell in row if cell] for row in rows if not set("".join(row)) <= set(":- ")]

    cells = [re.split(" {2,}", line.replace("  -", "  \N{MINUS SIGN}")) for line in report.lines if "  " in line]
    assert len(cells) == 5 + 3 + 2, "runs, means and differences, with their headings"
    assert tables(markdown, "|") == cells
    assert [[cell.replace("\\_", "_") for cell in row] for row in tables(latex, "&")] == cells
    assert sum(line == r"\toprule" for line in latex) == 3
    assert not any("_" in line.replace(r"\_", "") for line in latex if not line.startswith("%"))
    assert markdown[markdown.index(compare_runs().lines[6]) + 1] == "", "a table of Markdown needs an empty line above"
    assert markdown[-2] == "test BLEU: 13a"
    assert latex[-1] == "% test BLEU: 13a"


def test_the_scores_to_show_are_chosen(make, tmt):
    other = {"sentences": 1000, "search": "beam 4", "bleu": 20.0, "signatures": {"bleu": "13a", "chrf": "6"}}
    make("a", scores=_scores(40.0) | {"news/dev.en": other})
    make("b", scores=_scores(41.0))
    assert tmt()[1].splitlines()[0].endswith("greedy BLEU  test BLEU  dev.en BLEU")
    _, out, _ = tmt("--test-set", "test", "--metric", "chrf", "--metric", "bleu")
    assert out.splitlines()[0].endswith("greedy BLEU  test chrF2  test BLEU")
    assert out.splitlines()[1].endswith("60.00      40.00")
    assert out.splitlines()[-2:] == ["test chrF2: 6", "test BLEU: 13a"]
    for name in ("dev.en", "news/dev.en"):
        _, out, _ = tmt("--test-set", name)
        assert out.splitlines()[-1] == "dev.en BLEU: 13a, beam 4, 1,000 sentences"
    for arguments, message in (
        (("--test-set", "tset"), "--test-set: no run has scores of tset\n  There are: test, dev.en."),
        (("--test-set", "test", "--metric", "ter"), "--metric: no run has TER here\n  Score them:  tmt evaluate --ter"),
        (("--metric", "comet"), "--metric: no metric 'comet'\n  There are: bleu, chrf, ter, chrf++."),
        (("--json", "--metric", "ter"), "--json has all scores"),
    ):
        code, out, error = tmt(*arguments)
        assert (code, out) == (2, "")
        assert message in error


@pytest.fixture
def another():
    """A metric that only the table of metrics knows."""
    with pytest.MonkeyPatch.context() as patch:
        scorer = Metric("chrF2+", lambda *_: CHRF(word_order=1), by_default=False)
        patch.setitem(METRICS, "chrf+", scorer)
        list(map(reload, (compare, evaluate)))  # their help is made when they are imported
        yield
    list(map(reload, (compare, evaluate)))


def test_a_metric_of_the_table_is_known_to_the_commands_and_their_help(make, tmt, another, tmp_path, capsys):
    for command in ("compare", "evaluate"):
        main.main([command, "--help"])
        assert f": {', '.join(METRICS)}; repeat it" in " ".join(capsys.readouterr().out.split())
    (tmp_path / "lines").write_text("a cat\n")
    scored = ["evaluate", "--hypothesis", "lines", "--reference", "lines", "--metric", "chrf+", "--json"]
    assert main.main(scored) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["chrf+"], values["chrf"], [*values["signatures"]]) == (pytest.approx(100), None, ["chrf+"])
    for name, value, signature in (("a", 60.0, "1"), ("b", 61.0, "2")):
        make(name, scores={"test": {"bleu": 40.0, "chrf+": value, "signatures": {"bleu": "13a", "chrf+": signature}}})
    _, out, error = tmt("--metric", "chrf+")
    assert out.splitlines()[0].endswith("  test chrF2+")
    assert [line.split()[-1] for line in out.splitlines()[1:3]] == ["60.00", "61.00"]
    assert "b and a have other forms of chrF2+" in error
    make("c", scores=_scores(41.0))
    _, _, error = tmt("runs/c", "--metric", "chrf+")
    assert "--metric: no run has chrF2+ here\n  Score them:  tmt evaluate --metric chrf+\n" in error


def test_scores_that_were_made_in_different_ways_have_no_signature_below(make, tmt):
    make("a", scores=_scores(40.0))
    make("b", scores=_scores(41.0, signatures={"bleu": "char", "chrf": "6"}))
    code, out, error = tmt()
    assert code == 0
    assert "test BLEU:" not in out
    assert "b and a have other forms of BLEU" in error


def _started_again(folder, **training):
    """The run went on with other values of the config, and finished."""
    config = yaml.safe_load((folder / "config.yaml").read_text())
    config["training"] |= training
    (first,) = json.loads((folder / "run.json").read_text())
    starts = [{**first, "finished": {}}, {**first, "config": config, "finished": {}}]
    (folder / "run.json").write_text(json.dumps(starts))
    (folder / "config.yaml").write_text(yaml.safe_dump(config))


def test_a_run_that_went_on_with_another_end_of_its_schedule_is_in_no_mean(make, capsys):
    """Its learning rate fell to 0 and jumped, which no other seed did."""
    cosine = {"training__schedule": "cosine", "training__max_epochs": 6}
    _started_again(make("a", seed=1, **{**cosine, "training__max_epochs": 2}), max_epochs=6)
    make("b", seed=2, **cosine)
    make("c", seed=3, **cosine)
    found = compare_runs()
    assert [group.names for group in found.groups] == [["b", "c"]]
    error = capsys.readouterr().err
    assert "a: begun for training.max_epochs 2, it went on for training.max_epochs 6, so it is in no mean" in error


def test_a_run_that_went_on_without_an_end_of_its_schedule_is_in_the_mean(make, capsys):
    """With Noam's schedule it is the same run as one that was started with all epochs."""
    _started_again(make("a", seed=1), max_epochs=6)
    make("b", seed=2, training__max_epochs=6)
    found = compare_runs()
    assert [group.names for group in found.groups] == [["a", "b"]]
    assert capsys.readouterr().err == ""


def test_a_model_that_was_averaged_after_its_training_is_in_no_mean(make, capsys):
    for seed in (1, 2, 3):
        folder = make(f"x-{seed}", seed=seed, scores=_scores(40.0 + seed))
        by = "average" if seed == 3 else "train"
        (folder / "model" / ".steps").write_text(json.dumps({"steps": [165, 1198], "by": by}))
    found = compare_runs()
    assert [group.names for group in found.groups] == [["x-1", "x-2"]]
    assert "x-3: tmt average made its model later, of steps 165, 1,198" in capsys.readouterr().err


@pytest.mark.parametrize(("average", "together"), [("none", True), ("last", False)])
def test_which_checkpoints_are_kept_counts_only_if_they_are_averaged(make, average, together):
    make("a", seed=1, training__average=average)
    make("b", seed=2, training__average=average, training__checkpoint_every=50, training__keep_last=7)
    found = compare_runs()
    assert bool(found.groups) == together
    assert ("training.keep_last" in found.keys) != together


def test_a_run_that_keeps_no_best_checkpoint_is_another_setting(make):
    """Its model can only be the last one."""
    make("a", seed=1)
    make("b", seed=2, training__keep_best=0)
    assert not compare_runs().groups


def test_runs_with_and_without_a_mean_of_checkpoints_differ_in_nothing_else(make):
    make("a")
    make("b", training__average="last")
    assert compare_runs().keys == ["training.average"]


def test_starts_that_trained_nothing_do_not_count(make):
    """It was killed before its first checkpoint, and started again with another number of epochs."""
    cosine = {"training__schedule": "cosine", "training__max_epochs": 6}
    folder = make("a", seed=1, **{**cosine, "training__max_epochs": 40})
    _started_again(folder, max_epochs=6)
    starts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps([{**one, "from_step": 0} for one in starts]))
    make("b", seed=2, **cosine)
    assert [group.names for group in compare_runs().groups] == [["a", "b"]]


def test_names_do_not_break_tables_of_markdown(make, tmp_path, tmt):
    make("x").rename(tmp_path / "runs" / "-1 *bold* | `code` <b>")
    row = tmt("--format", "markdown")[1].splitlines()[2]
    assert row.startswith(r"| -1 \*bold\* \| \`code\` \<b> ")


def test_a_form_that_does_not_exist(make):
    make("a", scores=_scores(40.0))
    report = compare_runs()
    with pytest.raises(TmtError, match="no form 'html' of tables"):
        report.written("html")
    assert report.written("text", "test", "chrf")[0].endswith("test chrF2")


def test_the_parameters_of_models(make, capsys):
    weights = {"a": torch.zeros(3, 4), "b.weight": torch.zeros(5)}
    save_file(weights, make("one") / "model" / "model.safetensors")
    make("two", finished=False)
    found = compare_runs()
    assert [run.parameters for run in found.runs] == [17, None]
    assert [re.split(" {2,}", line)[1] for line in found.lines] == ["parameters", "17", "-"]
    (make("three") / "model" / "model.safetensors").write_bytes(b"")
    assert compare_runs().runs[1].parameters is None
    assert "its parameters are not counted" in capsys.readouterr().err


def test_folders_that_are_no_runs(make, tmp_path, capsys):
    folder = make("a").rename(tmp_path / "runs" / "a\x1b[31m")
    (tmp_path / "runs" / "stray").mkdir()
    (tmp_path / "runs" / "file").write_text("")
    (folder / "model" / "model.safetensors").write_bytes(b"")
    found = compare_runs([*sorted((tmp_path / "runs").iterdir()), folder / "model"])
    assert [run.folder for run in found.runs] == [folder]
    assert "\x1b" not in found.lines[1]
    error = capsys.readouterr().err
    assert f"left out, because they are not runs: {tmp_path / 'runs' / 'file'}, {tmp_path / 'runs' / 'stray'}" in error


def test_two_runs_of_one_name_and_two_test_sets_of_one_name(make, tmp_path):
    test_sets = {f"/data/{part}/test.en": {"bleu": 1.0} for part in ("a", "b")}
    make("x/same", scores=test_sets)
    make("y/same", scores=test_sets)
    found = compare_runs([tmp_path / "runs" / "x" / "same", tmp_path / "runs" / "y" / "same"])
    assert [run.name for run in found.runs] == ["x/same", "y/same"]
    assert found.lines[0].endswith("/data/a/test.en BLEU  /data/b/test.en BLEU")


def test_what_is_no_run(make, tmp_path):
    for runs, message in (
        ((), "not a run"),
        ([], "not a run"),
        ("runs/none", "no such run folder"),
        (tmp_path, "not a run"),
    ):
        with pytest.raises(TmtError, match=message):
            compare_runs(runs)


@pytest.fixture
def tmt(monkeypatch, capsys):
    """Runs `tmt compare`: exit code, stdout and stderr."""

    def tmt(*arguments):
        monkeypatch.setattr(sys, "argv", ["tmt", "compare", *arguments])
        with pytest.raises(SystemExit) as left:
            main.run()
        return left.value.code, *capsys.readouterr()

    return tmt


def test_the_command(make, tmt):
    make("a", seed=1)
    make("b", seed=2)
    code, out, _ = tmt("runs/b", "runs/a", "runs/a/../b")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1:3]] == ["b", "a"]
    code, out, _ = tmt("--json")
    assert (code, [run["name"] for run in json.loads(out)["runs"]]) == (0, ["a", "b"])
    code, out, error = tmt("runs/none")
    assert (code, out) == (2, "")
    assert "no such run folder" in error


def test_a_run_that_was_started_again_with_more_epochs_and_killed_is_unfinished(make):
    """It has no new record yet; its model is that of the settings before."""
    folder = make("a", scores=_scores(10.0))
    (first,) = json.loads((folder / "run.json").read_text())
    first["finished"] = {"step": 100}
    for more, state in (({}, "finished"), ({"training": {"max_epochs": 2}}, "unfinished")):
        again = {"corpus": CORPUS, "config": {**first["config"], **more}}
        (folder / "run.json").write_text(json.dumps([first, again]))
        assert compare_runs().runs[0].state == state


def test_a_finished_run_without_records(make, capsys):
    folder = make("a", scores=_scores(10.0))
    (first,) = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps([{**first, "finished": {"step": 100}}]))
    (folder / "metrics.jsonl").write_text("")
    (run,) = compare_runs().runs
    assert (run.state, run.loss, run.scores["test"]["bleu"]) == ("finished", None, 10.0)
    assert "metrics.jsonl: no records" in capsys.readouterr().err


def test_a_seed_without_a_loss_is_named(make, capsys):
    for seed, loss in ((1, 2.0), (2, 2.2), (3, float("nan"))):
        make(f"a-{seed}", ((loss, 30.0, True),), seed=seed)
    found = compare_runs()
    text = "a-3: no validation loss that is a number, so the mean of the loss has only other seeds"
    assert found.groups[0].loss.runs == 2
    assert list(found.notes) == [text]
    assert capsys.readouterr().err == f"tmt: {text}\n"


DIRECTIONS = {"data": {"directions": ["ko-en", "en-ko", "en-de"], "corpus": {"kind": "phrasebook"}}}


def _scores_of_directions(first, second, other="9", **more):
    """Of a run that has translated the tests of two of its three directions."""
    own = {"decoding": {"beam": 5}, "weights": None, "sentences": 10, "search": "beam 5", **more}
    korean = {"bleu": second, "signatures": {"bleu": "tok:ko-mecab"}, "text": other}
    english = {"bleu": first, "ter": 50.0, "signatures": {"bleu": "tok:13a", "ter": "norm:no"}, "text": "8"}
    return {"test ko-en": {**english, **own}, "valid": {"bleu": 1.0}, "test en-ko": {**korean, **own}}


def test_several_directions_have_a_mean(make):
    for seed, (first, second) in {1: (20.0, 10.0), 2: (24.0, 12.0)}.items():
        make(f"s{seed}", scores=_scores_of_directions(first, second), seed=seed, **DIRECTIONS)
    found = compare_runs()
    assert list(found.runs[0].scores) == ["test ko-en", "valid", "test en-ko", "test mean"]
    assert [run.scores["test mean"]["bleu"] for run in found.runs] == [15.0, 18.0]
    assert "ter" not in found.runs[0].scores["test mean"], "one of the directions has no TER"
    spread = found.groups[0].scores["test mean"]["bleu"]
    assert (spread.mean, spread.deviation) == pytest.approx((16.5, statistics.stdev([15.0, 18.0])))
    assert "test mean BLEU" in found.lines[0]
    shown = found.written("text", test_sets=["test mean"])
    assert shown[-1] == "test mean BLEU: tok:ko-mecab; tok:13a, mean of 2 directions, 20 sentences"
    assert found.notes == []


@pytest.mark.parametrize(
    "scores",
    [
        _scores_of_directions(30.0, 15.0, other="7"),
        _scores_of_directions(30.0, 15.0, weights="bfloat16"),
        {**_scores_of_directions(30.0, 15.0), "test en-de": {"bleu": 99.0, "signatures": {"bleu": "13a"}, "text": "6"}},
    ],
)
def test_means_of_other_directions_or_sentences_do_not_compare(make, scores):
    make("s1", scores=_scores_of_directions(20.0, 10.0), seed=1, **DIRECTIONS)
    make("s2", scores=scores, seed=2, **DIRECTIONS)
    found = compare_runs()
    assert "test mean" not in found.groups[0].scores
    assert [one for one in found.notes if one.startswith("test mean: ")]


def test_a_direction_alone_has_no_mean(make):
    scores = _scores_of_directions(20.0, 10.0)
    del scores["test en-ko"]
    make("one", scores=scores, **DIRECTIONS)
    make("two", scores={"my file ko-en": {"bleu": 1.0}, "my file en-ko": {"bleu": 2.0}})
    assert [list(run.scores) for run in compare_runs().runs] == [
        ["test ko-en", "valid"],
        ["my file ko-en", "my file en-ko"],
    ]


def test_runs_of_other_code_versions_and_devices_are_named(make):
    """They stay in the mean: the reader decides."""
    first = {"git": "abc", "packages": {"torch": "2.13.0"}, "processes": 1, "device": "cpu (2 threads), float32"}
    others = [
        {"packages": {"torch": "2.13.0", "spacy": "3.8"}},
        {"git": "abc+changes", "packages": {"torch": "2.13.0", "spacy": "not installed"}},
        {"packages": {"torch": "2.12.0"}},
        {"processes": 2},
        {"device": "cuda"},
    ]
    for seed, other in enumerate(others):
        file = make(f"s{seed}", seed=seed) / "run.json"
        (start,) = json.loads(file.read_text())
        file.write_text(json.dumps([start | first | other]))
    make("older", seed=9)
    found = compare_runs()
    assert [group.names for group in found.groups] == [["older", "s0", "s1", "s2", "s3", "s4"]]
    assert found.notes == [
        "other code trained s1 than s0 (run.json: git)",
        "other versions of packages trained s2 than s0 (run.json: packages)",
        "another number of processes trained s3 than s0 (run.json: processes)",
        "another device, number of threads or number format trained s4 than s0 (run.json: device)",
    ]


def test_a_test_set_that_was_elsewhere_is_the_same_if_its_sentences_are(make):
    for seed, folder in enumerate(("/here", "/there")):
        entry = {"bleu": 10.0 + seed, "signatures": {"bleu": "13a"}, "text": "abc"}
        scores = {f"{folder}/new.en": entry, f"{folder}/other.en": {**entry, "text": folder}}
        make(f"s{seed}", seed=seed, scores=scores)
    found = compare_runs()
    assert [list(run.scores) for run in found.runs] == [
        ["/here/new.en", "/here/other.en"],
        ["/here/new.en", "/there/other.en"],
    ]
    assert found.groups[0].scores["/here/new.en"]["bleu"].mean == 10.5


def test_no_score_is_lost_where_a_run_has_two_files_of_one_name_and_equal_sentences(make):
    def entry(bleu, text):
        return {"bleu": bleu, "signatures": {"bleu": "13a"}, "text": text}

    make("c", scores={"/a/x.en": entry(10.0, "old")})
    make("k", scores={"/a/x.en": entry(20.0, "new"), "/b/x.en": entry(30.0, "old")})
    make("two", scores={"/b/x.en": entry(40.0, "old"), "/a/x.en": entry(41.0, "old")})
    found = compare_runs()
    assert [{name: one["bleu"] for name, one in run.scores.items()} for run in found.runs] == [
        {"/a/x.en": 10.0},
        {"/a/x.en": 20.0, "/b/x.en": 30.0},
        {"/b/x.en": 40.0, "/a/x.en": 41.0},
    ]
    assert "/a/x.en: k translated other sentences than c" in found.notes


def test_many_settings_of_a_corpus_stay_one_column(make):
    make("a", data__corpus={"kind": "text", "train": "a.tsv", "validation": "v.tsv"})
    make("b", data__corpus={"kind": "text", "files": "b.tsv", "weight": 2.0})
    assert compare_runs().keys == ["data.corpus"]


def test_a_direction_whose_sentences_are_unknown_makes_those_of_the_mean_unknown(make):
    """An older version did not keep their checksum."""
    for seed, other in enumerate(("9", None)):
        make(f"s{seed}", scores=_scores_of_directions(20.0, 10.0, other=other), seed=seed, **DIRECTIONS)
    found = compare_runs()
    assert found.runs[1].scores["test mean"]["text"] is None
    assert not [note for note in found.notes if "other sentences" in note]


def test_settings_of_the_only_corpus_are_columns(make):
    for pairs in (100, 200):
        make(f"p{pairs}", data__corpus={"kind": "phrasebook", "train": pairs})
    found = compare_runs()
    assert found.keys == ["data.corpus.train"]
    assert [line.split()[1] for line in found.lines] == ["train", "100", "200"]
