"""`tmt synthesize`: what is translated and kept, what is never touched, and going on after a kill."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.forks import PYTHON
from transformer_mt import TmtError, Translator, load_config, synthesize, train
from transformer_mt.config.load import dump_config
from transformer_mt.config.reversal import reversed_config
from transformer_mt.config.schema import Config
from transformer_mt.data.prepared import Prepared
from transformer_mt.text.batches import texts_of_words
from transformer_mt.workflows.prepare import prepare
from transformer_mt.workflows.synthesis.plan import plan_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_plots")]

ROOT = Path(__file__).parents[2]


def values_of(numbers: Any, folder: Path, **synthesis: Any) -> dict[str, Any]:
    """A config that is trained in a second, with its data in `folder`."""
    values: dict[str, Any] = numbers.values(max_epochs=3)
    values["data"]["prepared"] = str(folder / "prepared")
    values["synthesis"] = {"teachers": 1, "shard_lines": 100, **synthesis}
    return values


def contents(*folders: Path) -> dict[Path, bytes]:
    """The bytes of all files but locks."""
    files = (file for folder in folders for file in folder.rglob("*"))
    return {file: file.read_bytes() for file in files if file.is_file() and not file.name.startswith(".")}


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_reversed_config_reads_the_same_splits_with_the_sides_exchanged(numbers: Any, here: Path):
    config = Config.model_validate(values_of(numbers, here))
    both = [
        prepare(one.model_copy(update={"name": name})) for name, one in (("a", config), ("b", reversed_config(config)))
    ]
    for split in ("validation", "test"):
        assert both[0].raw(split) == both[1].raw(split)[::-1]
    assert reversed_config(reversed_config(config)) == config


def test_settings_of_teachers_are_exchanged_with_the_sides(numbers: Any, here: Path):
    values = values_of(numbers, here, teacher=["tokenizer.source.min_frequency=7"])
    values["tokenizer"] = {side: {"kind": "whitespace", "min_frequency": 1} for side in ("source", "target")}
    forward, backward = plan_of(Config.model_validate(values), "diversify").to_train
    assert forward.config is not None
    assert backward.config is not None
    assert [one.min_frequency for one in (forward.config.source_tokenizer, forward.config.target_tokenizer)] == [7, 1]
    assert [one.min_frequency for one in (backward.config.source_tokenizer, backward.config.target_tokenizer)] == [1, 7]


def test_a_temperature_holds_for_teachers_and_for_the_final_model(numbers: Any, here: Path):
    values = values_of(numbers, here, teacher=["training.max_epochs=2"])
    values["data"]["temperature"] = 2.0
    plan = plan_of(Config.model_validate(values), "diversify")
    configs = [one.config for one in plan.to_train if one.config is not None]
    assert [one.data.temperature for one in (*configs, plan.final_config)] == [2.0, 2.0, 2.0]
    assert [corpus.weight for corpus in plan.final_config.data.corpus] == [1.0, 1.0, 1.0]


def test_diversification_adds_the_translations_of_both_sides(
    numbers: Any, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("transformer_mt.workflows.train.chance", lambda report: "by chance")
    report = synthesize(Config.model_validate(values_of(numbers, here)), "diversify")
    folder = here / "data" / "synthetic" / "numbers-diversify"
    assert report.folder.resolve() == folder
    assert report.train is not None
    assert report.train.model.resolve() == here / "runs" / "numbers-diversify" / "model"
    pairs = {language: lines(folder / f"pairs.{language}") for language in ("en", "de")}
    assert len(pairs["en"]) == 400  # of 460; the others are validation and test
    assert report.counts["text to translate"]["in validation or test"] >= 60
    for name, real in (("en-de-1", "en"), ("de-en-1", "de")):
        kept, counts = lines(folder / f"{name}.{real}"), report.counts[name]
        assert counts["read"] == 400
        assert len(kept) == counts["kept"] == len(lines(folder / f"{name}.{'de' if real == 'en' else 'en'}"))
        assert set(kept) <= set(pairs[real])  # this side was written by people
    final = load_config(report.train.run / "config.yaml")
    assert [corpus.kind for corpus in final.data.corpus] == ["tsv", "text", "text"]
    prepared = Prepared.open(here / "prepared" / "numbers-diversify")
    assert prepared.manifest.splits["validation"] == 40
    assert prepared.manifest.splits["test"] == 20
    updates = final.training.max_epochs * sum(pairs for pairs, _ in prepared.parts)
    assert abs(updates - 3 * 400) <= sum(pairs for pairs, _ in prepared.parts) / 2  # as without synthetic text
    seen = f"max_epochs {final.training.max_epochs}: it sees {updates:,} pairs, and 1,200 with the real pairs alone"
    said = capsys.readouterr().err
    assert seen in said
    scores = r"scores     of test, [^\n]*\ntest  BLEU\|[^\n]*\ntest  chrF2\|[^\n]*\n           test: by chance"
    assert len(re.findall(scores, said)) == 3, "of both teachers and the final model"
    assert not (folder / "shards").exists()
    assert json.loads((folder / "report.json").read_text("utf-8"))["held_out"] == 0


@pytest.mark.parametrize(
    ("method", "ensemble", "parts"),
    [
        ("diversify", None, {"en-de-1": [2], "en-de-2": [3], "de-en-1": [2], "de-en-2": [3]}),
        ("diversify", True, {"en-de": [2, 3], "de-en": [2, 3]}),
        ("distill", None, {"en-de": [2, 3]}),
        ("distill", False, {"en-de-1": [2], "en-de-2": [3]}),
        ("back", None, {"de-en": [2, 3]}),
        ("back", False, {"de-en-1": [2], "de-en-2": [3]}),
    ],
)
def test_models_of_a_direction_translate_together_or_each_alone(
    numbers: Any, here: Path, method: str, ensemble: bool | None, parts: dict[str, list[int]]
):
    text = {"text": ["news.de"]} if method == "back" else {}
    (here / "news.de").write_text("eins zwei drei\n", encoding="utf-8")
    plan = plan_of(Config.model_validate(values_of(numbers, here, teachers=2, ensemble=ensemble, **text)), method)
    seeds = {part.name: [one.config.seed for one in part.teachers if one.config is not None] for part in plan.parts}
    assert seeds == parts
    assert [part.backward for part in plan.parts] == [name.startswith("de-en") for name in parts]


def test_teachers_of_a_second_round_learn_from_the_translations_of_the_first(numbers: Any, here: Path):
    """Both sides exchanged for the opposite direction; given models translate in the first round only."""
    values = values_of(numbers, here, teachers=2, rounds=2, real_weight=3.0, teacher=["training.max_epochs=7"])
    plan = plan_of(Config.model_validate(values), "diversify")
    stems = [f"{stem}-{n}" for stem in ("en-de", "de-en") for n in (1, 2)]
    assert [part.name for part in plan.parts] == [*stems, *(f"round2-{one}" for one in stems)]
    assert [str(one.run) for one in plan.rounds[1].teachers] == [
        f"runs/numbers-teacher-{direction}-round2-{seed}" for direction in ("en-de", "de-en") for seed in (4, 5)
    ]
    for teacher in plan.rounds[1].teachers:
        assert teacher.config is not None
        assert teacher.config.training.max_epochs == 7
        real, *synthetic = teacher.config.data.corpus
        assert [one.weight for one in (real, *synthetic)] == [3.0, 1.0, 1.0, 1.0, 1.0]
        read = [{one.source, one.target} for corpus in synthetic for one in corpus.files]
        assert read == [{str(plan.file(stem, "en")), str(plan.file(stem, "de"))} for stem in stems]
        assert all(corpus.files[0].source.endswith(teacher.direction.source) for corpus in synthetic)
    assert len(plan.final_config.data.corpus) == 1 + 8

    runs = [str(train(one.config, one.run).run) for one in plan.rounds[0].teachers[::2] if one.config is not None]
    given = values_of(numbers, here, teachers=2, rounds=2, models=runs, ensemble=True)
    first, second = plan_of(Config.model_validate(given), "diversify").rounds
    assert [(part.name, [one.config is None for one in part.teachers]) for part in (*first.parts, *second.parts)] == [
        ("en-de", [True]),
        ("de-en", [True]),
        ("round2-en-de", [False, False]),
        ("round2-de-en", [False, False]),
    ]


def test_a_second_round_translates_the_training_pairs_again(
    numbers: Any, here: Path, capsys: pytest.CaptureFixture[str]
):
    config = Config.model_validate(values_of(numbers, here, rounds=2))
    steps = [one.step.partition(" (")[0] for one in synthesize(config, "diversify", dry_run=True).steps]
    report = synthesize(config, "diversify")
    assert report.train is not None
    said = capsys.readouterr().err
    done = [line.partition(": ")[2] for line in said.splitlines() if line.startswith("step ")]
    assert done == ["all pairs, prepared" if one == "prepare" else one for one in steps if one != "all"]
    assert [name for name, counts in report.counts.items() if counts["read"] == 400] == [
        *("en-de-1", "de-en-1", "round2-en-de-1", "round2-de-en-1")
    ]
    folder = report.folder
    assert lines(folder / "round2-en-de-1.de") != lines(folder / "en-de-1.de"), "another teacher"
    for name, learned in (("runs/numbers-teacher-de-en-round2-3", 3), ("runs/numbers-diversify", 5)):
        run = load_config(here / name / "config.yaml")
        pairs = Prepared.open(here / "prepared" / run.name).pairs_an_epoch
        assert len(run.data.corpus) == learned
        assert run.training.max_epochs == max(1, round(3 * 400 / pairs)), (
            "about as many pairs as without synthetic ones"
        )
        assert f"is trained for max_epochs {run.training.max_epochs}: it sees" in said


def test_a_teacher_of_text_that_is_gone_is_not_used(numbers: Any, here: Path):
    config = Config.model_validate(values_of(numbers, here, rounds=2))
    folder = synthesize(config, "diversify").folder
    for one in (folder, here / "runs" / "numbers-diversify"):
        shutil.rmtree(one)
    with pytest.raises(
        TmtError, match=r"this teacher was trained on other text than there is now: .*en-de-1"
    ) as raised:
        synthesize(config, "diversify", overrides="synthesis.search.method=sample")
    assert Path(str(raised.value.place)).name == "numbers-teacher-en-de-round2-3"
    shutil.rmtree(folder)
    synthesize(config, "diversify")  # writes the text again that its teachers know


def test_a_synthesis_of_a_version_without_rounds_goes_on(numbers: Any, here: Path):
    values = values_of(numbers, here)
    folder = synthesize(Config.model_validate(values), "diversify").folder
    assert "synthesis.rounds" not in json.loads((folder / "plan.json").read_text("utf-8"))
    values["synthesis"]["rounds"] = 1
    synthesize(Config.model_validate(values), "diversify")
    with pytest.raises(TmtError, match=r"synthesis\.rounds: None \| 2") as raised:
        synthesize(Config.model_validate(values), "diversify", overrides="synthesis.rounds=2")
    assert "add:  --set 'synthesis.models=[" in raised.value.remedy
    assert "remove synthesis.teachers" not in raised.value.remedy, "they are for the second round"


def test_an_ensemble_of_given_models_writes_the_text(numbers: Any, here: Path):
    """For both directions: each translation is that of `tmt translate` with several models."""
    values = values_of(numbers, here, teachers=2, shard_lines=400)
    several = {}
    for one in plan_of(Config.model_validate(values), "diversify").to_train:
        assert one.config is not None
        several.setdefault(one.direction, []).append(str(train(one.config, one.run).run))
    given = {"models": [run for runs in several.values() for run in runs], "ensemble": True}
    report = synthesize(Config.model_validate({**values, "synthesis": given}), "diversify")
    for (source, target), runs in several.items():
        sources, translations = (lines(report.folder / f"{source}-{target}.{side}") for side in (source, target))
        for models, same in ((runs, True), (runs[:1], False), (runs[1:], False)):
            answers = Translator.load(models).translate(sources)
            assert ([one.text for one in answers] == translations) == same


@pytest.mark.parametrize("dry_run", [True, False])
def test_given_models_are_loaded_before_anything_is_written(numbers: Any, here: Path, dry_run: bool):
    """Each direction, so that no translation of the first one is lost if the second one cannot go on."""
    values = values_of(numbers, here)
    forward, backward = (one.config for one in plan_of(Config.model_validate(values), "diversify").to_train)
    assert forward is not None
    assert backward is not None
    runs = [train(one, here / "runs" / one.name).run for one in (forward, backward)]
    runs.append(train(backward, here / "runs" / "other", overrides=["name=other", "tokenizer.kind=character"]).run)
    values["synthesis"] = {"models": [str(run) for run in runs], "ensemble": True}
    for message in ("vocabulary differs from that of", "the weights are damaged"):
        with pytest.raises(TmtError, match=message):
            synthesize(Config.model_validate(values), "diversify", dry_run=dry_run)
        assert not (here / "data").exists()
        assert not (here / "prepared" / "numbers").exists()
        values["synthesis"]["models"] = values["synthesis"]["models"][:2]
        weights = runs[1] / "model" / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")


def test_the_final_run_is_an_ordinary_run(numbers: Any, here: Path):
    report = synthesize(Config.model_validate(values_of(numbers, here)), "distill")
    assert report.train is not None
    again = train(report.train.run / "config.yaml", here / "again")
    one, other = (run / "model" / "model.safetensors" for run in (report.train.run, again.run))
    assert one.read_bytes() == other.read_bytes()


def test_text_of_validation_and_test_is_never_translated(numbers: Any, here: Path):
    config = Config.model_validate(values_of(numbers, here, text=["news.de"]))
    prepared = prepare(config)
    planted = [prepared.raw(split)[side][0] for split in ("validation", "test") for side in (0, 1)]
    news = [
        "eins zwei drei vier fünf sechs sieben eins",
        "",
        "sieben sechs fünf eins eins eins eins",
        "sieben sechs fünf eins eins eins eins",
    ]
    (here / "news.de").write_text("\n".join([*planted, planted[1].upper() + " !", *news]) + "\n", encoding="utf-8")
    report = synthesize(config, "back")
    counts = report.counts["text to translate"]
    assert counts == {"read": 9, "kept": 2, "in validation or test": 5, "empty line": 1, "duplicate": 1}
    assert report.held_out == 0
    folder = here / "data" / "synthetic" / "numbers-back"
    held_out = {one for split in ("validation", "test") for side in prepared.raw(split) for one in texts_of_words(side)}
    for file in folder.glob("*.??"):
        assert not held_out & set(texts_of_words(lines(file)))


def test_back_translations_have_a_tag_in_training_only(numbers: Any, here: Path):
    config = Config.model_validate(values_of(numbers, here, text=["news.de"]))
    (here / "news.de").write_text("eins zwei drei vier fünf sechs sieben eins\n", encoding="utf-8")
    report = synthesize(config, "back")
    assert report.train is not None
    real, synthetic = load_config(report.train.run / "config.yaml").data.corpus
    assert (real.tag, synthetic.tag) == (None, "<synthetic>")
    assert lines(report.train.model / "source" / "tags.txt") == ["<synthetic>"]
    source, _ = Prepared.open(here / "prepared" / "numbers-back").codecs()
    (tag,) = source.encode("", ("<synthetic>",))[:-1]
    store = {split: Prepared.open(here / "prepared" / "numbers-back").store(split) for split in ("train", "validation")}
    tagged = {split: sum(tag in store[split].source[n] for n in range(len(store[split]))) for split in store}
    assert tagged == {"train": 1, "validation": 0}


def test_filters_drop_and_count(numbers: Any, here: Path):
    config = Config.model_validate(values_of(numbers, here, text=["news.en"], min_score=-0.0001, max_ratio=1.01))
    (here / "news.en").write_text("one two three four five six seven one\nseven one two\n", encoding="utf-8")
    with pytest.raises(TmtError, match=r"no synthetic pair is left of 2 \(.*min_score \d"):
        synthesize(config, "forward")


def test_given_models_are_taken_and_must_fit(numbers: Any, here: Path):
    values = values_of(numbers, here)
    run = train(Config.model_validate({**values, "synthesis": {}}), here / "runs" / "a").run
    values["synthesis"] = {"models": [str(run)], "shard_lines": 100}
    with pytest.raises(TmtError, match="this model translates en-de; `back` needs de-en"):
        synthesize(
            Config.model_validate({**values, "synthesis": {**values["synthesis"], "text": [str(numbers.table)]}}),
            "back",
        )
    with pytest.raises(TmtError, match="`diversify` needs models of both directions; none translates de-en"):
        synthesize(Config.model_validate(values), "diversify")
    twice = {**values["synthesis"], "models": [str(run), str(run / "model")]}
    with pytest.raises(TmtError, match="names this model twice"):
        synthesize(Config.model_validate({**values, "synthesis": twice}), "distill")
    report = synthesize(Config.model_validate(values), "distill")
    assert list(report.counts) == ["text to translate", "en-de", "all pairs, prepared"]
    assert sorted(one.name for one in (here / "runs").iterdir()) == ["a", "numbers-distill"]


def test_a_given_model_that_has_seen_the_test_is_named(numbers: Any, here: Path, capsys: pytest.CaptureFixture[str]):
    values = values_of(numbers, here)
    other = values_of(numbers, here)  # another split of the same corpus
    other["data"]["corpus"] = {**other["data"]["corpus"], "split": {"validation": 40, "test": 20, "seed": 2}}
    for name, own in (("same", values), ("other", other)):
        own = {**own, "name": name, "synthesis": {}, "training": {**own["training"], "max_epochs": 30}}
        run = train(Config.model_validate(own)).run
        capsys.readouterr()
        config = Config.model_validate({**values, "name": f"by-{name}", "synthesis": {"models": [str(run)]}})
        synthesize(config, "distill")
        assert ("sentences of validation or test sets" in capsys.readouterr().err) == (name == "other")


def test_a_sentence_of_the_test_in_a_synthetic_file_is_found(numbers: Any, here: Path):
    config = Config.model_validate(values_of(numbers, here))
    report = synthesize(config, "distill")
    with (report.folder / "en-de.de").open("a", encoding="utf-8") as file:
        file.write(f"{prepare(config).raw('test')[1][0]} !\n")
    with pytest.raises(TmtError, match="this file was changed: 1 line of it also in validation or test sets"):
        synthesize(config, "distill")


def test_a_dry_run_lists_the_steps_and_trains_nothing(numbers: Any, here: Path):
    report = synthesize(Config.model_validate(values_of(numbers, here, teachers=2)), "diversify", dry_run=True)
    assert [one.step for one in report.steps] == [
        "text to translate",
        *("train numbers-teacher-en-de-2", "train numbers-teacher-en-de-3"),
        *("train numbers-teacher-de-en-2", "train numbers-teacher-de-en-3"),
        *("translate en-de-1 (4 shards)", "translate en-de-2 (4 shards)"),
        *("translate de-en-1 (4 shards)", "translate de-en-2 (4 shards)"),
        *("prepare", "train numbers-diversify", "all"),
    ]
    assert all(one.seconds is not None for one in report.steps)
    assert not (here / "runs").exists()
    assert not (here / "data").exists()


def test_the_estimate_counts_pairs_as_often_as_they_are_seen(numbers: Any, here: Path):
    values = values_of(numbers, here, epochs=3, real_weight=4.0, synthetic_weight=0.5)
    report = synthesize(Config.model_validate(values), "diversify", dry_run=True)
    seconds = {one.step: one.seconds or 0.0 for one in report.steps}
    teacher = seconds["train numbers-teacher-en-de-2"]  # all have 3 epochs
    assert teacher > 0
    assert seconds["train numbers-diversify"] == pytest.approx((4.0 + 2 * 0.5) * teacher)


def test_changed_settings_and_files_are_noticed(numbers: Any, here: Path):
    (here / "news.en").write_text("one two three four five six seven one\n", encoding="utf-8")
    values = values_of(numbers, here, text=["news.en"])
    synthesize(Config.model_validate(values), "forward")
    before = contents(here / "data" / "synthetic", here / "prepared", here / "runs")
    changed = Config.model_validate({**values, "synthesis": {**values["synthesis"], "max_ratio": 2.0}})
    with pytest.raises(TmtError, match=r"other settings or files[^$]*synthesis\.max_ratio: None \| 2\.0"):
        synthesize(changed, "forward")
    cleaning = {**values["data"], "cleaning": {"max_characters": 30}}  # it would give other prepared data
    with pytest.raises(TmtError, match=r"other settings or files[^$]*max_characters") as caught:
        synthesize(Config.model_validate({**values, "data": cleaning}), "forward", dry_run=True)
    assert "synthesis.models=[runs/numbers-teacher-en-de-2]" in caught.value.remedy.replace("\\", "/")
    (here / "news.en").write_text("one one\n", encoding="utf-8")
    with pytest.raises(TmtError, match=r"other settings or files[^$]*file news\.en"):
        synthesize(Config.model_validate(values), "forward")
    assert contents(here / "data" / "synthetic", here / "prepared", here / "runs") == before


def test_another_model_to_start_from_is_noticed_until_it_is_not_read_again(numbers: Any, here: Path):
    values = values_of(numbers, here, teacher=["training.start_from=other"], teachers=1)
    for name in ("parent", "other"):
        train(Config.model_validate(values), here / name)
    training = {**values["training"], "start_from": "parent"}
    config = Config.model_validate({**values, "training": training, "name": "child"})
    report = synthesize(config, "distill")
    assert report.train is not None
    plan = here / "data" / "synthetic" / "child-distill" / "plan.json"
    before = json.loads(plan.read_text(encoding="utf-8"))
    assert {key for key in before if key.startswith("model ")} == {"model parent", "model other"}
    shutil.rmtree(here / "parent")  # all runs have begun
    assert synthesize(config, "distill").train is not None
    shutil.rmtree(report.train.run)
    train(Config.model_validate(values), here / "parent", overrides=["training.max_epochs=1"])
    with pytest.raises(TmtError, match=r"other settings or files[^$]*model parent"):
        synthesize(config, "distill")
    older = {key: value for key, value in before.items() if not key.startswith("model ")}
    plan.write_text(json.dumps(older), encoding="utf-8")
    assert synthesize(config, "distill").train is not None


def test_with_a_shared_tokenizer_teachers_of_both_directions_start_from_one_model(numbers: Any, here: Path):
    values = values_of(numbers, here)
    shared = {"kind": "sentencepiece", "vocab_size": 60, "shared": True}
    for name, tokenizer in (("one", shared), ("two", values["tokenizer"])):
        train(Config.model_validate({**values, "name": name, "tokenizer": tokenizer}), here / name)
    child = {**values, "name": "child", "tokenizer": shared, "training": {**values["training"], "start_from": "one"}}
    report = synthesize(Config.model_validate(child), "diversify")
    assert report.train is not None
    for run in ("child-teacher-en-de-2", "child-teacher-de-en-2", "child-diversify"):
        assert load_config(here / "runs" / run / "config.yaml").training.start_from == "one"
        start = load_file(here / "runs" / run / "checkpoints" / "step-0000000" / "model.safetensors")
        parent = load_file(here / "one" / "model" / "model.safetensors")
        assert all(torch.equal(start[name], parent[name]) for name in parent)
    two = {**child, "tokenizer": values["tokenizer"], "training": {**values["training"], "start_from": "two"}}
    with pytest.raises(TmtError, match="no model of the opposite direction can start from it"):
        plan_of(Config.model_validate(two), "diversify")


def test_a_model_to_start_from_without_weights_is_one_message(numbers: Any, here: Path):
    values = values_of(numbers, here)
    train(Config.model_validate(values), here / "parent")
    (here / "parent" / "model" / "model.safetensors").unlink()
    training = {**values["training"], "start_from": "parent"}
    with pytest.raises(TmtError, match="the file with the weights is missing"):
        synthesize(Config.model_validate({**values, "training": training, "name": "child"}), "distill")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_no_text(numbers: Any, here: Path):
    os.mkfifo(here / "news.en")
    with pytest.raises(TmtError, match=r"news\.en: a pipe can be read only once"):
        synthesize(Config.model_validate(values_of(numbers, here, text=["news.en"])), "forward")


def test_the_reports_of_new_data_are_shown(numbers: Any, here: Path, capsys: pytest.CaptureFixture[str]):
    config = Config.model_validate(values_of(numbers, here))
    synthesize(config, "distill")
    first = capsys.readouterr().err
    assert re.findall(r"^pairs +(\d+) train", first, re.M) == ["400", "400", "731"], (
        "real, of the teacher, of the final"
    )
    synthesize(config, "distill")
    assert "pairs      " not in capsys.readouterr().err


def test_a_training_that_must_begin_again_says_how(numbers: Any, here: Path, monkeypatch: pytest.MonkeyPatch):
    def never_finite(*_: object) -> float:
        return math.nan

    monkeypatch.setattr("transformer_mt.training.validation.mean_nll", never_finite)
    with pytest.raises(TmtError, match="not a finite number") as error:
        synthesize(Config.model_validate(values_of(numbers, here)), "distill")
    run = Path("runs", "numbers-teacher-en-de-2")
    assert error.value.remedy.endswith(f"has no --fresh: move {run} away, and run the same command again.")


def test_a_teacher_of_other_settings_is_not_used(numbers: Any, here: Path):
    values = values_of(numbers, here)
    synthesize(Config.model_validate(values), "distill")
    before = contents(here)
    teacher = {**values["synthesis"], "teacher": ["training.max_epochs=2"]}
    for dry_run in (True, False):
        with pytest.raises(TmtError, match=r"other settings[^$]*training\.max_epochs: 3 \| 2") as caught:
            synthesize(Config.model_validate({**values, "synthesis": teacher}), "diversify", dry_run=dry_run)
        assert Path(caught.value.place).name == "numbers-teacher-en-de-2"
        assert contents(here) == before


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("training.max_epoch=20", "unknown key 'training.max_epoch'; did you mean 'max_epochs'"),
        ("training.max_epochs=no", "must be a whole number"),
        ("model.d_model=3", "d_model 3 is not divisible"),
        ("training.max_epochs", "not of the form key=value"),
        ("training.max_epochs=[", "not valid YAML"),
    ],
)
def test_a_wrong_key_of_teachers_is_said_to_be_theirs(numbers: Any, here: Path, key: str, said: str):
    values = values_of(numbers, here, teacher=[key])
    before = contents(here)
    with pytest.raises(TmtError) as caught:
        synthesize(Config.model_validate(values), "distill")
    message = str(caught.value)
    assert message.startswith("synthesis.teacher: ")
    assert said in message
    assert not [word for word in ("--set", "command line") if word in message]
    assert contents(here) == before


def test_a_wrong_key_of_teachers_is_shown_as_it_was_written(numbers: Any, here: Path):
    with pytest.raises(TmtError, match=r"^synthesis\.teacher: unknown key '--set training") as caught:
        synthesize(Config.model_validate(values_of(numbers, here, teacher=["--set training.max_epochs=2"])), "distill")
    assert caught.value.remedy.startswith("Fix this key in synthesis.teacher;")


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("folder", ["runs/numbers-distill", "runs/numbers-teacher-en-de-2", "prepared/numbers-distill"])
def test_a_folder_with_something_else_is_refused_at_once(numbers: Any, here: Path, folder: str, dry_run: bool):
    (here / folder).mkdir(parents=True)
    (here / folder / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(TmtError) as caught:
        synthesize(Config.model_validate(values_of(numbers, here)), "distill", dry_run=dry_run)
    assert Path(caught.value.place).name == Path(folder).name
    assert "--run-dir" not in caught.value.remedy
    assert [file for file in contents(here) if file.name != numbers.table.name] == [here / folder / "notes.txt"]


def test_a_text_without_use_can_be_mended(numbers: Any, here: Path):
    config = Config.model_validate(values_of(numbers, here, text="news.en"))
    (here / "news.en").write_text("one two\n", encoding="utf-16")
    with pytest.raises(TmtError, match="UTF-16") as caught:
        synthesize(config, "forward")
    assert "data.corpus" not in caught.value.remedy
    (here / "news.en").write_text("\n\n", encoding="utf-8")
    with pytest.raises(TmtError, match=r"nothing is left to translate of 2 lines \(empty line 2\)"):
        synthesize(config, "forward")
    assert not (here / "runs").exists()
    (here / "news.en").write_text("one two three four five six seven one\n", encoding="utf-8")
    assert synthesize(config, "forward").counts["text to translate"] == {"read": 1, "kept": 1}


def test_damaged_files_are_named_with_what_to_delete(numbers: Any, here: Path, monkeypatch: pytest.MonkeyPatch):
    config = Config.model_validate(values_of(numbers, here))

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("transformer_mt.workflows.synthesize.write_pairs", interrupted)
        with pytest.raises(TmtError, match="interrupted"):
            synthesize(config, "distill")
    folder = here / "data" / "synthetic" / "numbers-distill"

    def refused(file: str, damage: Callable[[bytes], bytes], delete: str) -> None:
        (folder / file).write_bytes(damage(kept := (folder / file).read_bytes()))
        with pytest.raises(TmtError, match="the file is damaged") as caught:
            synthesize(config, "distill")
        assert Path(caught.value.place).resolve() == folder / file
        named = caught.value.remedy.removeprefix("Delete ").partition(", and run")[0]
        assert Path(named).resolve() == folder / delete
        (folder / file).write_bytes(kept)

    shard = "shards/en-de/000001.jsonl"
    refused("plan.json", lambda _: b"[]", ".")
    refused("pairs.json", lambda _: b"", "pairs.json")
    refused(shard, lambda rows: rows[: rows.rindex(b"{")], shard)
    refused(shard, lambda rows: rows.replace(b'"text"', b'"test"'), shard)
    (folder / shard).unlink()
    assert synthesize(config, "distill").counts["en-de"]["read"] == 400
    for damage in (lambda text: text.partition(b"\n")[2], lambda text: b"\xff" + text):
        refused("en-de.de", damage, "en-de.json")
    pairs = (folder / "en-de.de").read_bytes()
    (folder / "en-de.de").unlink()
    synthesize(config, "distill")
    assert (folder / "en-de.de").read_bytes() == pairs


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["synthesis.teacher=[data.target=fr]"], "'data.target' is the same for teachers and the final model"),
        (["synthesis.teacher=[seed=3]"], "'seed' is the same for teachers"),
        (["synthesis.teacher=name=other"], "'name' is the same for teachers"),
        (["synthesis.teacher=[synthesis.epochs=3]"], "'synthesis.epochs' is the same for teachers"),
        (["synthesis.tag=<unk>"], "<unk> is a mark of every vocabulary"),
        ([f"seed={2**63 - 3}"], "the teachers need the seeds up to 9223372036854775808"),
    ],
)
def test_settings_that_cannot_work_are_refused(numbers: Any, here: Path, overrides: list[str], message: str):
    config = Config.model_validate(values_of(numbers, here, teachers=3))
    with pytest.raises(TmtError, match=re.escape(message)):
        synthesize(config, "diversify", overrides=overrides)
    assert not (here / "prepared").exists()


@pytest.mark.parametrize(
    ("method", "synthesis", "message"),
    [
        ("babble", {}, "unknown method 'babble'"),
        ("back", {}, "`back` needs text to translate"),
        ("diversify", {"text": ["news.de"]}, "`diversify` reads no other text"),
        ("distill", {"rounds": 2}, "`distill` has one round"),
        ("forward", {"text": ["missing.en"]}, "missing.en"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_trained(
    numbers: Any, here: Path, method: str, synthesis: dict[str, Any], message: str
):
    with pytest.raises(TmtError, match=message):
        synthesize(Config.model_validate(values_of(numbers, here, **synthesis)), method)
    assert not (here / "runs").exists()
    assert not (here / "prepared").exists()


def test_a_final_config_that_is_not_valid_is_refused_at_once(numbers: Any, here: Path):
    values = values_of(numbers, here, real_weight=60.0)
    values["data"]["corpus"] = {**values["data"]["corpus"], "weight": 2.0}
    for one in ({**values}, {**values_of(numbers, here), "name": "n" * 95}):
        with pytest.raises(TmtError, match=r"config of this run would not be valid: (data\.corpus.*weight|name)"):
            synthesize(Config.model_validate(one), "diversify")


def test_configs_without_the_section_are_written_as_before(numbers: Any):
    assert "synthesis" not in dump_config(Config.model_validate(numbers.values()))


PROGRAM = """
import json, os, signal, sys

from transformer_mt.cli import main
import matplotlib.backends.backend_agg, matplotlib.figure, sacrebleu, torch._dynamo  # imported once for all attempts
import transformer_mt.workflows.synthesize as synthesize
import transformer_mt.workflows.synthesis.records as records
import transformer_mt.workflows.synthesis.translating as translating
from transformer_mt.training.optimizer import Optimizer

config, = sys.argv[1:]


def die_at(module, name, call):
    # the process kills itself at the n-th call of a function
    own, calls = getattr(module, name), iter(range(1, 10**6))

    def killing(*arguments, **options):
        if next(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return own(*arguments, **options)

    setattr(module, name, killing)


def attempt(folder, *critical):
    pid = os.fork()
    if pid == 0:
        os.makedirs(folder, exist_ok=True)
        os.chdir(folder)
        output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1), os.dup2(output, 2)
        if critical:
            die_at(*critical)
        os._exit(main.main(["synthesize", "diversify", "--config", config]))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


CRITICAL = [
    (records, "replace_text", 1),  # the pairs are written, their counts are not
    (Optimizer, "update", 9),  # in the middle of the first teacher
    (synthesize, "train_in", 2),  # between two teachers
    (synthesize, "translate_shards", 1),  # after the last teacher
    (translating, "_write_shard", 3),  # two shards are written
    (translating, "replace_text", 1),  # a shard is translated, but not written
    (records, "replace_text", 1),  # all shards of the first part; its pairs are written, their counts are not
    (translating.shutil, "rmtree", 1),  # its counts are written, its shards still there
    (synthesize, "prepare_with", 2),  # everything of the first round is translated
    (Optimizer, "update", 9),  # in the middle of the first teacher of the second round
    (synthesize, "translate_shards", 1),  # after its last teacher
    (synthesize, "prepare_with", 2),  # everything is translated
    (Optimizer, "update", 9),  # in the middle of the final training
    (synthesize, "replace_text", 1),  # before the report
]
whole = attempt("whole")
killed = [attempt("hit", *critical) for critical in CRITICAL]
print(json.dumps({"whole": whole, "killed": killed, "resumed": attempt("hit")}))
"""


def digests(folder: Path) -> dict[str, str]:
    """The checksums of all synthetic text and of the weights of all models."""
    files = [*(folder / "data" / "synthetic").rglob("*"), *(folder / "runs").glob("*/model/model.safetensors")]
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.is_file() and file.name not in (".lock", "report.json")  # the report has the seconds of the training
    }


@pytest.mark.timeout(900)
def test_a_synthesis_that_is_killed_anywhere_ends_with_the_same_bytes(numbers: Any, tmp_path: Path):
    values = values_of(numbers, Path(), rounds=2)
    values["training"] |= {"checkpoint_every": 3}
    values["data"]["prepared"] = "prepared"
    config = tmp_path / "numbers.yaml"
    config.write_text(json.dumps(values), encoding="utf-8")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [*PYTHON, "-c", PROGRAM, str(config)],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    codes = json.loads(done.stdout)
    output = (tmp_path / "hit" / "output").read_text(encoding="utf-8")
    assert (codes["whole"], codes["resumed"]) == (0, 0), output
    assert codes["killed"] == [-9] * 14, output
    whole = digests(tmp_path / "whole")
    written = {f"data/synthetic/numbers-diversify/{part}.de" for part in ("en-de-1", "round2-de-en-1")}
    assert {"runs/numbers-diversify/model/model.safetensors", *written} <= {*whole}
    assert digests(tmp_path / "hit") == whole
