"""`training.start_from`: a run that begins with the weights and tokenizers of another model."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import transformer_mt as tmt
from tests.forks import PYTHON, executable
from transformer_mt.config.load import load_config
from transformer_mt.decoding.model_directory import load_model_directory
from transformer_mt.errors import TmtError
from transformer_mt.evaluation.scores import score
from transformer_mt.reporting.history import read_history
from transformer_mt.training.validation import Validation
from transformer_mt.workflows.data_remarks import remarks
from transformer_mt.workflows.data_report import report_lines, short_report

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_plots")]

ROOT = Path(__file__).parents[2]
MORE_WORDS = (("eight", "acht"), ("nine", "neun"), ("ten", "zehn"))
SETTINGS = {"batch_tokens": 256, "schedule": "constant", "learning_rate": 0.003, "warmup_steps": 0, "max_steps": 6}


@pytest.fixture(scope="module")
def place(numbers: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two trained models of one epoch: of words, and of pieces with tied embeddings; and a new table."""
    folder = tmp_path_factory.mktemp("parents")
    values = numbers.values(max_epochs=1)
    values["data"]["prepared"] = str(folder / "prepared")
    for name, changes in (
        ("words", {}),
        (
            "pieces",
            {
                "tokenizer": {"kind": "sentencepiece", "vocab_size": 60, "shared": True},
                "model": {**values["model"], "tie_embeddings": "all"},
            },
        ),
    ):
        tmt.train(_written(folder / f"{name}.yaml", {**values, "name": name, **changes}), folder / "runs" / name)
    rows = [line.split("\t") for line in numbers.table.read_text(encoding="utf-8").splitlines()[:200]]
    for number, row in enumerate(rows):
        source, target = MORE_WORDS[number % 3]
        row[0], row[1] = f"{row[0]} {source}", f"{row[1]} {target}"
    (folder / "new.tsv").write_text("\n".join("\t".join(row) for row in rows) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def work(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it as the current folder."""
    shutil.copytree(place, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def _written(file: Path, values: dict[str, Any]) -> Path:
    file.write_text(json.dumps(values), encoding="utf-8")  # JSON is YAML
    return file


def child(parent: str = "runs/words", name: str = "child", **changes: Any) -> Path:
    """A config for the new table that leaves out tokenizer and model, unless they are among the changes."""
    training = {**SETTINGS, "start_from": parent, "bleu_sentences": 0, **changes.pop("training", {})}
    corpus = {"kind": "tsv", "files": "new.tsv", "split": {"validation": 30, "test": 20}}
    values = {
        "name": name,
        "data": {"source": "en", "target": "de", "corpus": corpus, "workers": 1, "prepared": "prepared"},
        "training": training,
        "decoding": {"beam": 1, "max_length_offset": 5},
        "runtime": {"device": "cpu", "threads": 1},
    }
    return _written(Path(f"{name}.yaml"), {**values, **changes})


def weights(folder: str) -> dict[str, Tensor]:
    return load_file(Path(folder) / "model.safetensors")


def same_bytes(one: Tensor, other: Tensor) -> bool:
    return one.dtype == other.dtype and one.numpy().tobytes() == other.numpy().tobytes()


def validations(run: str) -> list[dict[str, Any]]:
    return [record for record in read_history(Path(run) / "metrics.jsonl") if record["event"] == "validation"]


def test_a_run_begins_with_the_parent_and_validates_it_first(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmt.train(child(training={"validate_every": 3}))
    first, second, *_ = validations("runs/child")
    assert (first["step"], first["train_loss"], second["step"]) == (0, None, 3)
    parent, start = weights("runs/words/model"), weights("runs/child/checkpoints/step-0000000")
    assert parent.keys() == start.keys()
    assert all(same_bytes(parent[name], start[name]) for name in parent)
    assert not any(same_bytes(parent[name], one) for name, one in weights("runs/child/model").items())
    for side in ("source", "target"):
        files = [Path(run, "model", side, "vocabulary.txt").read_bytes() for run in ("runs/words", "runs/child")]
        assert files[0] == files[1]
    told = capsys.readouterr().err
    assert "tokenizers those of runs/words\n" in told
    assert "parent     weights and tokenizers of runs/words; step 0 is this model\n" in told
    # the loss of step 0 is that of the parent on the new validation split
    split = Path("prepared/child/validation")
    sources, references = ((split / f"{side}.txt").read_text("utf-8").splitlines() for side in ("source", "target"))
    loss = tmt.load("runs/words").reference_loss(sources, references)
    assert loss.nats / loss.tokens == pytest.approx(first["loss"], abs=1e-4)


def test_tags_are_new_rows_and_the_rows_of_the_parent_keep_their_bits(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = {"kind": "tsv", "files": "new.tsv", "split": {"validation": 30, "test": 20}, "languages": ["en", "de"]}
    data = {"directions": ["en-de"], "corpus": corpus, "workers": 1, "prepared": "prepared"}
    tmt.train(child(data=data, training={"max_epochs": None, "max_steps": 1}))
    parent, start = weights("runs/words/model"), weights("runs/child/checkpoints/step-0000000")
    grown = {name for name, one in parent.items() if one.shape != start[name].shape}
    assert grown == {"source_embedding.tokens.weight"}
    assert all(same_bytes(one, start[name][: len(one)]) for name, one in parent.items())
    assert len(start["source_embedding.tokens.weight"]) == len(parent["source_embedding.tokens.weight"]) + 1
    assert tmt.load("runs/child").source.tags == ("<2de>",)
    assert "tokenizers those of runs/words\n" in capsys.readouterr().err, "a tag is no token of the corpus"


@pytest.mark.parametrize("several", [True, False])
def test_a_parent_without_the_tags_of_directions_is_not_scored_with_its_own_tokens(
    work: Path, several: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A parent without the tag of a corpus is: validation sentences do not have it."""
    corpus = {"kind": "tsv", "files": "new.tsv", "split": {"validation": 30, "test": 20}}
    languages: dict[str, Any] = {"source": "en", "target": "de", "corpus": {**corpus, "tag": "<made>"}}
    if several:
        languages = {"directions": ["en-de", "de-en"], "corpus": {**corpus, "languages": ["en", "de"]}}
    config = child(
        "runs/pieces",
        data={**languages, "workers": 1, "prepared": "prepared"},
        tokenizer={"extend": 9},
        training={"bleu_sentences": 4, "max_steps": 2, "learning_rate": 3.0},
    )
    report = tmt.train(config)
    assert [0] in [one.steps for one in report.compared]
    assert ("parent without new tokens" in capsys.readouterr().err) is not several
    tags = ("<2de>", "<2en>") if several else ("<made>",)
    assert tmt.load("runs/child").source.tags == tags


def test_what_the_config_leaves_out_comes_from_the_parent(work: Path) -> None:
    parent = load_config("runs/words/model/config.yaml")
    config = load_config(child(model={"dropout": 0.3}))
    assert config.model == parent.model.model_copy(update={"dropout": 0.3})
    assert config.tokenizer == parent.tokenizer
    assert load_config(child("runs/words/model")).model == parent.model


def test_each_side_of_a_tokenizer_and_a_table_of_positions_are_inherited(work: Path) -> None:
    values = load_config("runs/words/model/config.yaml").model_dump(mode="json")
    sides = {"source": {"kind": "whitespace", "min_frequency": 3}, "target": {"kind": "character", "extend": 6}}
    model = {**values["model"], "positions": "learned", "max_positions": None}
    parent = {**values, "tokenizer": sides, "model": model, "data": {**values["data"], "max_length": 50}}
    Path("runs/other/model").mkdir(parents=True)
    _written(Path("runs/other/model/config.yaml"), parent)
    config = load_config(child("runs/other", tokenizer={"target": {"extend": 2}}), ["data.max_length=40"])
    assert (config.source_tokenizer.kind, config.target_tokenizer.kind) == ("whitespace", "character")
    assert (config.source_tokenizer.extend, config.target_tokenizer.extend) == (0, 2)
    assert (config.model.positions, config.max_positions) == ("learned", 50)
    with pytest.raises(TmtError, match=r"data\.max_length 128 is more than model\.max_positions 50"):
        load_config(child("runs/other"))  # the table has no rows for longer sentences


def test_keys_of_a_tokenizer_hold_for_both_sides_of_a_parent_with_two(work: Path) -> None:
    values = load_config("runs/words/model/config.yaml").model_dump(mode="json")
    kinds = {"source": {"kind": "whitespace", "min_frequency": 3}, "target": {"kind": "character"}}
    Path("runs/other/model").mkdir(parents=True)
    _written(Path("runs/other/model/config.yaml"), {**values, "tokenizer": kinds})
    config = load_config(child("runs/other", tokenizer={"extend": 10}))
    assert (config.source_tokenizer.kind, config.target_tokenizer.kind) == ("whitespace", "character")
    assert (config.source_tokenizer.extend, config.target_tokenizer.extend) == (10, 10)
    with pytest.raises(TmtError) as error:
        load_config(child("runs/other", tokenizer={"extend": 10, "target": {"extend": 2}}))
    assert "unknown key 'tokenizer.extend'" in str(error.value)


def test_a_parent_with_one_tokenizer_has_no_sides(work: Path) -> None:
    config = child("runs/pieces", tokenizer={"target": {"extend": 10}})
    with pytest.raises(TmtError, match=r"'tokenizer.target': the model in runs/pieces has one tokenizer") as error:
        load_config(config)
    assert error.value.place == "child.yaml:1"


def test_a_parent_with_directions_is_not_trained_without_its_tags(work: Path) -> None:
    corpus = {"kind": "tsv", "files": "new.tsv", "split": {"validation": 30, "test": 20}, "languages": ["en", "de"]}
    data = {"directions": ["en-de", "de-en"], "corpus": corpus, "workers": 1, "prepared": "prepared"}
    tmt.train(child("runs/pieces", data=data, training={"max_epochs": None, "max_steps": 1}))
    with pytest.raises(TmtError, match="runs/child has directions, so it reads a tag") as error:
        tmt.train(child("runs/child", name="one"))
    assert "directions: [en-de]" in error.value.remedy
    one = {**data, "directions": ["en-de"]}
    tmt.train(child("runs/child", name="one", data=one, training={"max_epochs": None, "max_steps": 1}))


def test_a_missing_parent_is_one_message(work: Path) -> None:
    with pytest.raises(TmtError, match="there is no model in runs/wrods") as error:
        load_config(child("runs/wrods"))
    assert error.value.place == "child.yaml:1"
    with pytest.raises(TmtError, match="no such model folder"):
        tmt.train(child("runs/wrods", model={"d_model": 16}, tokenizer={"kind": "whitespace"}))


def test_an_export_is_no_parent(work: Path) -> None:
    shutil.copytree("runs/words/model", "exported")
    Path("exported/model.safetensors").rename("exported/model.bin")
    with pytest.raises(TmtError, match="this is an export for CTranslate2, and here a model is needed"):
        tmt.train(child("exported", name="of-an-export"))
    assert not Path("prepared/of-an-export").exists(), "nothing was prepared"


def test_what_does_not_fit_is_refused_with_a_table(work: Path) -> None:
    config = child(model={"d_model": 32, "dropout": 0.4}, tokenizer={"kind": "character"})
    with pytest.raises(TmtError) as error:
        tmt.train(config)
    rows = [line.split() for line in str(error.value.message).splitlines()[1:]]
    assert rows == [
        ["key", "model", "config"],
        ["tokenizer.kind", "whitespace", "character"],
        ["model.d_model", "16", "32"],
    ]
    assert "Remove these keys" in error.value.remedy
    assert not Path("runs/child").exists()
    assert not Path("prepared/child").exists()
    # the shapes are equal here, but not what is computed with them
    with pytest.raises(TmtError, match=r"model\.n_heads +2 +4"):
        tmt.train(child(model={"n_heads": 4}))


def test_the_languages_must_be_those_of_the_parent(work: Path) -> None:
    config = child()
    values = json.loads(config.read_text(encoding="utf-8"))
    values["data"].update(source="de", target="en")
    with pytest.raises(TmtError, match=r"data\.source +en +de") as error:
        tmt.prepare(_written(config, values))
    assert "translates en-de: choose a model for de-en, or one of the opposite direction" in error.value.remedy
    with pytest.raises(TmtError, match=r"data\.source +en +fr"):
        tmt.prepare(child("runs/pieces", data={**values["data"], "source": "fr", "target": "de"}))


def _opposite(parent: str, **changes: Any) -> Path:
    corpus = {"kind": "tsv", "files": "new.tsv", "split": {"validation": 30, "test": 20}}
    exchanged = {**corpus, "source_column": 1, "target_column": 0}
    data = {"source": "de", "target": "en", "corpus": exchanged, "workers": 1, "prepared": "prepared", **changes}
    return child(parent, data={key: value for key, value in data.items() if value is not None})


def test_with_a_shared_tokenizer_a_model_starts_the_opposite_direction(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmt.prepare(_opposite("runs/pieces")).report
    assert report.parent is not None
    assert report.parent.seen["validation"]["source"] == 0, "the new sentences end with new words"
    tmt.train(_opposite("runs/pieces"))
    told = capsys.readouterr().err
    assert "weights and tokenizers of runs/pieces, which translates en-de; step 0 is this model\n" in told
    parent, start = weights("runs/pieces/model"), weights("runs/child/checkpoints/step-0000000")
    assert parent.keys() == start.keys()
    assert all(same_bytes(parent[name], start[name]) for name in parent)
    # what was read as a source is written now
    sources, references = ["fünf sechs"], ["five six"]
    before, after = (tmt.load(run).reference_loss(sources, references) for run in ("runs/pieces", "runs/child"))
    assert after.nats < before.nats
    again = tmt.train(_opposite("runs/pieces"))  # a finished run is opened again
    assert tmt.load(again.run).config.data.direction == "de-en"


def test_a_parent_that_translates_nothing_of_it_does_not_become_the_model(work: Path) -> None:
    """It would win by copied names and numbers over a model that has hardly learned anything."""
    nothing = {"learning_rate": 1e-9, "max_steps": 2, "bleu_sentences": 5}
    config = _opposite("runs/pieces")
    report = tmt.train(config, overrides=[f"training.{key}={value}" for key, value in nothing.items()])
    assert [0] not in [one.steps for one in report.compared]
    assert report.shipped == [2]
    same = tmt.train(child("runs/pieces", "same", training=nothing))
    assert [0] in [one.steps for one in same.compared], "a parent of the same languages is a candidate"


def test_a_tokenizer_does_not_read_the_language_of_the_other_side(work: Path) -> None:
    corpus = {"kind": "tsv", "files": "new.tsv", "split": {"validation": 30, "test": 20}, "languages": ["en", "de"]}
    for directions in (["de-en"], ["en-de", "de-en"]):
        config = _opposite("runs/words", source=None, target=None, corpus=corpus, directions=directions)
        with pytest.raises(TmtError, match="the source tokenizer of runs/words has learned en, not de"):
            tmt.prepare(config)
    assert not Path("prepared/child").exists()
    tmt.prepare(_opposite("runs/pieces", source=None, target=None, corpus=corpus, directions=["de-en", "en-de"]))


def test_a_begun_run_does_not_take_another_parent(work: Path) -> None:
    tmt.train(child())
    before = Path("runs/child/model/model.safetensors").read_bytes()
    shutil.copytree("runs/words", "runs/copy")
    with pytest.raises(TmtError, match=r"training\.start_from: runs/words \| runs/copy") as error:
        tmt.train(child("runs/copy"))
    assert "reads training.start_from only at its start" in error.value.remedy
    assert Path("runs/child/model/model.safetensors").read_bytes() == before


@pytest.mark.parametrize("fresh", [False, True])
def test_a_run_does_not_start_from_itself(work: Path, fresh: bool) -> None:
    shutil.copytree("runs/words", "runs/child")
    with pytest.raises(TmtError, match=r"would start from its own model|another config") as error:
        tmt.train(child("runs/child"), fresh=fresh)
    assert "another name or --run-dir" in error.value.remedy or "cannot start from its own model" in error.value.remedy
    assert "--fresh" not in error.value.remedy
    assert Path("runs/child/model/model.safetensors").exists()


OPTIMIZERS: list[dict[str, Any]] = [
    {"optimizer": "adam", "weight_decay": 0.1, "ema_decay": 0.9},
    {"optimizer": "adamw", "weight_decay": 0.1, "average": "last", "average_checkpoints": 3, "clip_norm": 0.5},
    {"optimizer": "muon", "weight_decay": 0.1},
]


@pytest.mark.parametrize(
    ("options", "runtime"),
    [*((one, "float32") for one in OPTIMIZERS), (OPTIMIZERS[0], "bfloat16")],
    ids=["adam", "adamw", "muon", "bfloat16"],
)
def test_frozen_parts_stay_the_same_to_the_bit(work: Path, options: dict[str, Any], runtime: str) -> None:
    options = {**options, "freeze": ["encoder", "embeddings"], "validate_every": 2, "learning_rate": 0.03}
    settings = {"device": "cpu", "threads": 1, "weights": runtime}
    start = weights("runs/words/model")
    for name in start:
        if name.startswith("encoder.") and name.endswith("bias"):
            start[name][0] = -0.0  # equal to zero, with other bits
    save_file(start, "runs/words/model/model.safetensors")
    for limit in (4, 6):  # the second call resumes
        tmt.train(child(training={**options, "max_steps": limit}, runtime=settings))
    parent = weights("runs/words/model")
    frozen = {name for name in parent if name.startswith(("encoder.", "source_embedding.", "target_embedding."))}
    assert 0 < len(frozen) < len(parent)
    for folder in ("runs/child/model", "runs/child/checkpoints/step-0000004", "runs/child/checkpoints/step-0000006"):
        trained = weights(folder)
        assert {name for name in parent if same_bytes(parent[name], trained[name])} == frozen, folder
    average = Path("runs/child/checkpoints/step-0000006/average.safetensors")
    assert average.exists() == ("ema_decay" in options)
    if average.exists():
        assert all(same_bytes(parent[name], load_file(average)[name]) for name in frozen)


def test_unknown_parts_are_one_message_before_the_data_is_prepared(work: Path) -> None:
    with pytest.raises(TmtError, match=r"no part 'encodr'; did you mean 'encoder'.*no part 'head'") as error:
        tmt.train(child(training={"freeze": ["encodr", "decoder", "head"]}))
    for part in ("embeddings", "source_embedding", "generator", "decoder.layers.0"):
        assert part in error.value.remedy
    assert not Path("prepared/child").exists()


def test_new_tags_must_not_be_frozen(work: Path) -> None:
    """They would stay equal, so the model could not tell its directions apart."""
    corpus = {"kind": "tsv", "files": "new.tsv", "split": {"validation": 30, "test": 20}, "languages": ["en", "de"]}
    data = {"directions": ["en-de"], "corpus": corpus, "workers": 1, "prepared": "prepared"}
    config = child(data=data, training={"freeze": ["embeddings"]})
    with pytest.raises(TmtError, match="new tokens add rows to source_embedding"):
        tmt.train(config)
    tmt.train(config, overrides="training.freeze=[target_embedding]")


def test_new_tokens_must_not_be_frozen(work: Path) -> None:
    config = child("runs/pieces", tokenizer={"extend": 9}, training={"freeze": ["generator"]})
    with pytest.raises(TmtError, match=r"new tokens add rows to source_embedding"):
        tmt.train(config)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"training": {"start_from": None, "freeze": ["encoder"]}}, "freeze needs start_from"),
        ({"training": {"start_from": None}, "extend": 5}, "extend needs training.start_from"),
    ],
)
def test_keys_without_a_parent_are_refused(work: Path, changes: dict[str, Any], problem: str) -> None:
    tokenizer = {"kind": "whitespace", "extend": changes.pop("extend", 0)}
    with pytest.raises(TmtError, match=problem):
        load_config(child(tokenizer=tokenizer, **changes))


def test_a_parent_that_is_better_stays_the_model(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmt.train(child(training={"learning_rate": 3.0, "bleu_sentences": 5, "validate_every": 3}))
    parent, shipped = weights("runs/words/model"), weights("runs/child/model")
    assert all(same_bytes(parent[name], shipped[name]) for name in parent)
    assert report.shipped == [0]
    assert [one.names for one in report.compared][-1] == ["parent"]
    assert "(the parent: no checkpoint of this run is better" in capsys.readouterr().err


def test_a_parent_that_is_better_with_its_own_tokens_is_named(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    training = {"learning_rate": 3.0, "bleu_sentences": 5, "start_from": "runs/long"}
    tmt.train("pieces.yaml", "runs/long", overrides=["training.max_epochs=30", "training.learning_rate=0.01"])
    tmt.train(child("runs/long", tokenizer={"extend": 9}, training=training))
    told = capsys.readouterr().err
    own = re.search(r"parent without new tokens +BLEU +([\d.]+)", told)
    assert own is not None
    split = Path("prepared/child/validation")
    sources, references = ((split / f"{side}.txt").read_text("utf-8").splitlines() for side in ("source", "target"))
    texts = [one.text for one in tmt.load("runs/long", beam=1).translate(sources, split=False)]
    assert float(own[1]) == pytest.approx(score(texts, references, "de", ["bleu"])["bleu"].value, abs=0.02)
    better = float(own[1]) > max(map(float, re.findall(r"step \d+ +BLEU +([\d.]+)", told)))
    assert better == ("note       runs/long scores higher with its own tokens" in told)


def test_the_parent_is_in_no_mean(work: Path) -> None:
    options = {"average": "last", "average_checkpoints": 5, "validate_every": 3, "keep_best": 2}
    report = tmt.train(child(training=options))
    assert sorted(one.steps for one in report.compared) == [[0], [3, 6], [6]]


PROGRAM = """
import os, signal, sys
import transformer_mt as tmt
from transformer_mt.training.optimizer import Optimizer
update = Optimizer.update
def dying(self, step, rate):
    if step == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    update(self, step, rate)
Optimizer.update = dying
tmt.train("child.yaml", "runs/killed")
"""


def test_a_killed_run_continues_exactly_without_its_parent(work: Path) -> None:
    config = child(training={"checkpoint_every": 2, "freeze": ["encoder"]}, tokenizer={"extend": 4})
    values = json.loads(config.read_text(encoding="utf-8"))
    values["training"]["ema_decay"] = 0.9
    _written(config, values)
    tmt.train(config, "runs/whole")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*PYTHON, "-c", PROGRAM], env=environment, capture_output=True, timeout=100)
    assert done.returncode == -9, done.stderr
    shutil.rmtree("runs/words")
    shutil.rmtree("prepared/child")  # its tokenizers are those that the run has kept
    tmt.train(config, "runs/killed")
    models = [Path(run, "model", "model.safetensors").read_bytes() for run in ("runs/whole", "runs/killed")]
    assert models[0] == models[1]
    assert validations("runs/killed")[0]["step"] == 0
    assert [one["loss"] for one in validations("runs/killed")] == [one["loss"] for one in validations("runs/whole")]


def test_a_run_killed_in_its_first_validation_begins_again(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Validation, "evaluate", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            tmt.train(child())
    # Until then it has no weights, so it takes those, and the past, of the model that is there now.
    Path("runs/words/model/trained_on.safetensors").unlink()
    tmt.train(child())
    assert validations("runs/child")[0]["step"] == 0
    parent, start = weights("runs/words/model"), weights("runs/child/checkpoints/step-0000000")
    assert all(same_bytes(parent[name], start[name]) for name in parent)
    assert not Path("runs/child/parent/trained_on.safetensors").exists()


def test_new_words_get_rows_and_old_rows_keep_their_values(work: Path) -> None:
    tmt.train(child(tokenizer={"extend": 4}, training={"validate_every": 3}))
    parent, start = weights("runs/words/model"), weights("runs/child/checkpoints/step-0000000")
    codecs = load_model_directory(Path("runs/words/model"))
    sizes = {"source": len(codecs.source), "target": len(codecs.target)}
    tables = {"source_embedding.tokens.weight": "source", "target_embedding.tokens.weight": "target"}
    for name, side in {**tables, "generator.weight": "target", "generator.bias": "target"}.items():
        old = sizes[side]
        assert len(parent[name]) == old
        assert len(start[name]) == old + 3  # eight, nine and ten
        assert same_bytes(parent[name], start[name][:old])
        mean = parent[name].mean(dim=0)
        torch.testing.assert_close(start[name][old:], mean.expand_as(start[name][old:]))
    lines = Path("runs/child/model/source/vocabulary.txt").read_text(encoding="utf-8").splitlines()
    assert set(lines[sizes["source"] :]) == {"eight", "nine", "ten"}
    assert tmt.load("runs/child").translate("eight nine").text is not None


def test_new_pieces_begin_as_the_mean_of_the_pieces_that_spell_them(work: Path, capsys: Any) -> None:
    tmt.train(child("runs/pieces", tokenizer={"extend": 7}, training={"max_steps": 1}))
    assert "tokenizers those of runs/pieces, with 7 new tokens of this corpus\n" in capsys.readouterr().err
    parent, start = weights("runs/pieces/model"), weights("runs/child/checkpoints/step-0000000")
    assert len(start["source_embedding.tokens.weight"]) == 67
    old, new = (load_model_directory(Path(run, "model")).source for run in ("runs/pieces", "runs/child"))
    assert new.vocabulary.tokens[:60] == old.vocabulary.tokens
    for number, piece in enumerate(new.vocabulary.tokens[60:], start=60):
        parts = old.segmenter.tokenizer.parts(piece)
        assert "".join(parts) in (piece, "")  # a letter that is new
        rows = old.vocabulary.encode(parts) if parts else slice(None)
        for name in ("source_embedding.tokens.weight", "generator.bias"):
            assert same_bytes(parent[name], start[name][:60])
            torch.testing.assert_close(start[name][number], parent[name][rows].mean(dim=0))
    # a model that started from this one starts with all its tokens, and adds none unless it is asked to
    config = load_config(child("runs/child", name="grandchild"))
    assert not config.extends_vocabulary
    assert tmt.prepare(config).report.vocabulary == {"source": 67, "target": 67}


def test_data_is_prepared_again_with_the_tokenizers_of_another_parent(work: Path) -> None:
    assert tmt.prepare(child()).is_new
    assert not tmt.prepare(child()).is_new
    shutil.copytree("runs/words", "runs/moved")
    assert not tmt.prepare(child("runs/moved")).is_new  # the same model in another place
    assert tmt.prepare(child("runs/pieces")).report.vocabulary == {"source": 60, "target": 60}
    values = json.loads(child().read_text(encoding="utf-8"))
    del values["training"]["start_from"]
    own = _written(Path("child.yaml"), {**values, "tokenizer": {"kind": "whitespace", "min_frequency": 1}})
    assert tmt.prepare(own).report.parent is None


def test_sentences_that_the_parent_was_trained_on_are_reported(work: Path, numbers: Any) -> None:
    config = child()
    values = json.loads(config.read_text(encoding="utf-8"))
    trained = numbers.table.read_text(encoding="utf-8").splitlines()
    validation = Path("prepared/words/validation/source.txt").read_text(encoding="utf-8").splitlines()
    seen = [line for line in trained if line.split("\t")[0] not in validation][:5]
    seen = [f"{seen[0].upper()}  !", *seen[1:]]  # case, spaces and punctuation do not matter
    Path("test.tsv").write_text("\n".join([*seen, "eight\tacht"]) + "\n", encoding="utf-8")
    values["data"]["corpus"] = {"kind": "tsv", "train": "new.tsv", "validation": "new.tsv", "test": {"six": "test.tsv"}}
    values["data"]["cleaning"] = {"leaks": "off"}
    report = tmt.prepare(_written(config, values)).report
    assert report.parent is not None
    assert report.parent.seen["six"]["source"] >= 4
    (remark,) = [
        one for one in remarks(report) if "was trained on the same sentences" in one.text and " six:" in one.text
    ]
    assert f"{report.parent.seen['six']['source']} sources" in remark.text


def test_an_unknown_past_is_reported_and_handed_down(work: Path) -> None:
    Path("runs/words/model/trained_on.safetensors").unlink()
    tmt.train(child(training={"max_steps": 1}))
    report = tmt.prepare(child()).report
    lines = "\n".join([*report_lines(report), *short_report(report)])
    assert lines.count("what runs/words was trained on is unknown: sentences of validation, test may have") == 2
    again = tmt.prepare(child("runs/child", name="grandchild")).report
    assert again.parent is not None
    assert (again.parent.known, again.parent.complete) == (True, False)
    assert "what runs/child started from is unknown" in "\n".join(report_lines(again))


def test_a_model_knows_what_its_parent_was_trained_on(work: Path) -> None:
    tmt.train(child(training={"max_steps": 1}))
    sizes = [
        len(load_file(Path(run, "model/trained_on.safetensors"))["source"]) for run in ("runs/words", "runs/child")
    ]
    alone = len(load_file("prepared/child/trained_on.safetensors")["source"])
    assert sizes[1] == sizes[0] + alone  # no sentence is in both
    assert Path("runs/child/model/trained_on.safetensors").stat().st_size < 16 * (sum(sizes) + 20)


def test_weights_do_not_open_with_another_vocabulary(work: Path) -> None:
    file = Path("runs/words/model/source/vocabulary.txt")
    lines = file.read_text(encoding="utf-8").splitlines()
    lines[4], lines[5] = lines[5], lines[4]  # of the same size, with other meanings
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(TmtError, match="not the file that the weights beside it were trained with"):
        tmt.load("runs/words")
    with pytest.raises(TmtError, match="not the file that the weights beside it were trained with"):
        tmt.train(child())


def test_a_model_of_an_older_version_opens(work: Path) -> None:
    file = Path("runs/words/model/model.safetensors")
    save_file(load_file(file), file)  # without the digest
    Path("runs/words/model/trained_on.safetensors").unlink()
    assert tmt.load("runs/words").translate("one").text is not None
    tmt.train(child(training={"max_steps": 1}))


@pytest.mark.parametrize("kind", ["words", "pieces"])  # the main process sends the parent to the other
def test_frozen_parts_stay_the_same_in_two_processes(kind: str, work: Path) -> None:
    config = child(
        f"runs/{kind}", training={"freeze": ["decoder.layers.0.self_attention", "embeddings"], "max_steps": 3}
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "transformer_mt.cli.main", "train", "--config", str(config)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHON_EXEC": executable()}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=160)
    assert done.returncode == 0, done.stderr
    parent, trained = weights(f"runs/{kind}/model"), weights("runs/child/checkpoints/step-0000003")
    starts = ("decoder.layers.0.self_attention.", *(["generator.weight"] if kind == "pieces" else []))  # tied
    frozen = {name for name in parent if "_embedding." in name or name.startswith(starts)}
    assert {name for name in parent if same_bytes(parent[name], trained[name])} == frozen
