"""`tmt evaluate` of a model for several directions: a row for each, with the BLEU of its target language."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import transformer_mt as tmt
from transformer_mt.cli import main
from transformer_mt.config.load import load_config
from transformer_mt.config.schema import Config
from transformer_mt.data.prepare import prepare
from transformer_mt.data.prepared import open_prepared
from transformer_mt.decoding.choosing import Wanted
from transformer_mt.decoding.model_directory import save_model_directory
from transformer_mt.errors import TmtError
from transformer_mt.evaluation.report import directions_as_text
from transformer_mt.evaluation.scores import score
from transformer_mt.kernels.build import build_model
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.device import Machine
from transformer_mt.runtime.weights import named_weights
from transformer_mt.workflows.candidates import Scorer
from transformer_mt.workflows.engines import load_model
from transformer_mt.workflows.evaluate import evaluate, evaluate_directions, evaluate_splits

pytestmark = pytest.mark.slow
DIRECTIONS = ["ko-en", "en-ko", "de-en"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained model with its prepared data."""
    folder = tmp_path_factory.mktemp("many")
    return _saved(folder, DIRECTIONS, {"kind": "phrasebook", "train": 40, "validation": 6, "test": 8})


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `folder`, of Chinese and English."""
    folder = tmp_path_factory.mktemp("chinese")
    lines = (
        f"{sign}先生有一只猫。\tMr {'abcdefghijklmnopqrst'[number]} has a cat.\n"
        for number, sign in enumerate("王李张刘陈杨黄赵周吴徐孙马朱胡郭何高林罗")
    )
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    corpus = {"kind": "tsv", "files": str(folder / "pairs.tsv"), "languages": ["zh", "en"]}
    return _saved(folder, ["zh-en", "en-zh"], {**corpus, "split": {"validation": 4, "test": 4}})


def _saved(folder: Path, directions: list[str], corpus: dict[str, Any] | list[dict[str, Any]]) -> Path:
    config = Config.model_validate(
        {
            "name": "many",
            "data": {"directions": directions, "corpus": corpus, "prepared": str(folder / "prepared"), "workers": 1},
            "tokenizer": {"kind": "character", "shared": True, "min_frequency": 1},
            "model": {"d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1, "decoder_layers": 1},
            "training": {"max_epochs": 1},
            "decoding": {"beam": 1, "max_length_ratio": 0.3, "max_length_offset": 2},
        }
    )
    codecs = prepare(config).codecs()
    torch.manual_seed(1)
    save_model_directory(folder / "model", config, named_weights(build_model(config, *map(len, codecs))), codecs)
    return folder / "model"


def test_each_direction_is_scored_on_its_own_pairs(folder: Path) -> None:
    reports = evaluate_directions(folder, metrics=["chrf"])
    assert list(reports) == DIRECTIONS
    model, prepared = load_model([folder]), open_prepared(load_config(folder / "config.yaml"))
    sources, references = prepared.raw("test")
    for number, (name, report) in enumerate(reports.items()):
        source, target = name.split("-")
        own = slice(8 * number, 8 * number + 8)
        assert (report.name, report.sentences) == (f"test {name}", 8)
        texts = [one.text for one in model.translate(sources[own], source=source, to=target, split=False)]
        assert report.scores["chrf"] == score(texts, references[own], target, ["chrf"])["chrf"]
    assert {*json.loads((folder / "scores.json").read_text())} >= {f"test {name}" for name in DIRECTIONS}
    assert list(evaluate_directions(folder, metrics=["chrf"], wanted=Wanted("en"))) == ["ko-en", "de-en"]


def test_bleu_is_tokenised_as_each_target_language_needs(chinese: Path) -> None:
    reports = evaluate_directions(chinese, metrics=["bleu"], tokenized=True)
    assert "tok:13a" in reports["zh-en"].scores["bleu"].signature
    assert "tok:zh" in reports["en-zh"].scores["bleu"].signature
    signatures = directions_as_text(reports).splitlines()
    assert any("BLEU|" in line and "tok:zh" in line and line.endswith("(en-zh)") for line in signatures)


def test_bleu_in_training_is_tokenised_as_each_target_language_needs(
    chinese: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_config(chinese / "config.yaml")
    prepared = open_prepared(config)
    references = prepared.raw("validation")[1]
    shorter = lambda _, places: [references[place][:-1] for place in places]  # noqa: E731
    monkeypatch.setattr(Scorer, "_translating_ids", lambda *_: shorter)
    bleu_of = Scorer(config, prepared, Machine(torch.device("cpu"), torch.float32)).greedy().bleu_of
    assert bleu_of is not None
    found = bleu_of(Transformer.__new__(Transformer)).by_direction
    own = [place for place, line in enumerate(references) if "有一只猫" in line]
    texts = [references[place] for place in own]
    assert found["en-zh"] == score([text[:-1] for text in texts], texts, "zh", ["bleu"])["bleu"].value
    assert found["en-zh"] > 50, "one token between spaces would have a BLEU of 0"


def test_papers_forms_of_bleu_have_their_columns(folder: Path) -> None:
    reports = evaluate_directions(folder, metrics=["bleu"], tokenized=True)
    title, *rows = directions_as_text(reports).splitlines()[1:6]
    assert title.split() == ["direction", "sentences", "BLEU", "lower-cased", "as", "in", "papers", "loss"]
    for row, one in zip(rows, reports.values(), strict=False):
        assert one.lowercased is not None
        assert one.literature is not None
        assert row.split()[3:5] == [f"{one.lowercased.value:.2f}", f"{one.literature.value:.2f}"]


def test_a_file_belongs_to_one_direction(folder: Path, tmp_path: Path) -> None:
    (file := tmp_path / "lines").write_text("abc\n" * 8)
    hypothesis, published = tmt.TestFiles(hypothesis=file), tmt.TestFiles(tokenized=file)
    cases: list[tuple[str, dict[str, Any]]] = [
        ("--hypothesis", {"files": hypothesis}),
        ("--baseline with a file", {"baseline": file}),
        ("--tokenized-reference", {"files": published}),
        ("--language", {"language": "ko"}),
    ]
    for option, given in cases:
        with pytest.raises(TmtError, match=f"{option} needs one direction, and several fit: ko-en, en-ko, de-en"):
            evaluate_directions(folder, metrics=["chrf"], **given)
        with pytest.raises(TmtError, match=f"{option} needs one direction, and several fit: ko-en, de-en"):
            evaluate_directions(folder, metrics=["chrf"], wanted=Wanted("en"), **given)
    assert list(evaluate_directions(folder, metrics=["chrf"], files=hypothesis, wanted=Wanted("ko"))) == ["en-ko"]
    with pytest.raises(TmtError, match="the target language is ko, not en"):
        evaluate_directions(folder, metrics=["chrf"], language="en", wanted=Wanted("ko"))
    assert list(evaluate_directions(folder, metrics=["chrf"], language="kor", wanted=Wanted("ko"))) == ["en-ko"]


def test_own_files_are_scored_and_kept_by_direction(folder: Path, tmp_path: Path) -> None:
    (file := tmp_path / "lines").write_text("abc\n")
    files = tmt.TestFiles(file, file)
    for source in ("ko", "de"):
        evaluate(folder, files=files, metrics=["chrf"], wanted=Wanted("en", source))
    stored = json.loads((folder / "scores.json").read_text())
    assert {*stored} >= {f"{file} ko-en", f"{file} de-en"}


def test_a_target_counts_without_a_model(folder: Path, tmp_path: Path) -> None:
    (file := tmp_path / "lines").write_text("这只猫很小。\n")
    files = tmt.TestFiles(reference=file, hypothesis=file)
    assert "tok:zh" in evaluate(files=files, wanted=Wanted("zh")).scores["bleu"].signature
    for wanted, message in (
        (Wanted("chinese"), "'chinese' is not an ISO 639 code"),
        (Wanted("zh", "english"), "'english' is not an ISO 639 code"),
        (Wanted(None, "en"), "without a model, a source language says nothing"),
    ):
        with pytest.raises(TmtError, match=message):
            evaluate(files=files, wanted=wanted)
    with pytest.raises(TmtError, match="the target language is zh, not en"):
        evaluate(files=files, wanted=Wanted("zh"), language="en")
    files = tmt.TestFiles(file, file, file)
    report = evaluate(files=files, baseline=folder, metrics=["chrf"], wanted=Wanted("ko", "en"))
    assert report.comparison["chrf"].system == 100
    with pytest.raises(TmtError, match="this baseline translates ko-en, en-ko, de-en, not en-zh"):
        evaluate(files=files, baseline=folder, wanted=Wanted("zh", "en"))


def test_a_baseline_has_the_same_sources_or_is_zero_shot(folder: Path, chinese: Path, tmp_path: Path) -> None:
    (file := tmp_path / "lines").write_text("abc\n")
    files = tmt.TestFiles(file, file)
    with pytest.raises(TmtError, match="this baseline translates zh-en, en-zh, not ko-en, en-ko, de-en") as caught:
        evaluate(folder, files=files, baseline=chinese, wanted=Wanted("en"))
    assert "--from" not in caught.value.remedy, "no direction is in both"
    for wanted in (Wanted("en"), Wanted("ko", "de", zero_shot=True)):
        report = evaluate(folder, files=files, baseline=folder, metrics=["chrf"], wanted=wanted)
        assert report.comparison["chrf"].baseline == report.comparison["chrf"].system


def test_a_baseline_that_lacks_a_direction_is_refused_before_anything_is_translated(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformer_mt.workflows.evaluate.translated", lambda *_, **__: pytest.fail("for nothing"))
    baseline = _saved(tmp_path, ["ko-en"], {"kind": "phrasebook", "train": 40, "validation": 6, "test": 8})
    with pytest.raises(TmtError, match="this baseline translates ko-en, not en-ko") as caught:
        evaluate_directions(folder, metrics=["chrf"], baseline=baseline)
    assert "or choose --to en --from ko" in caught.value.remedy


def test_a_baseline_is_compared_in_each_direction(folder: Path) -> None:
    reports = evaluate_directions(folder, metrics=["chrf"], baseline=folder)
    assert all(one.comparison["chrf"].baseline == one.comparison["chrf"].system for one in reports.values())


def test_the_scores_at_the_end_of_a_training_are_of_each_direction(folder: Path) -> None:
    names = [name for name, _ in evaluate_splits(folder, ["validation"], "cpu")]
    assert names == [f"validation {name}" for name in DIRECTIONS]


def test_directions_that_a_test_set_lacks_are_named_and_the_others_scored(tmp_path: Path, capsys: Any) -> None:
    corpora = []
    for languages, split in (
        (["ko", "en"], {"validation": 4, "test": 4}),
        (["de", "en"], {"validation": 4, "test": 0}),
    ):
        file = tmp_path / f"{languages[0]}.tsv"
        letters = "abcdefghijklmnopqrst"
        file.write_text("".join(f"{languages[0]} {one}{one}\t{one} {one}\n" for one in letters), encoding="utf-8")
        corpora.append({"kind": "tsv", "files": str(file), "languages": languages, "split": split})
    model = _saved(tmp_path, DIRECTIONS, corpora)
    capsys.readouterr()
    assert [name for name, _ in evaluate_splits(model, ["test"], "cpu")] == ["test ko-en", "test en-ko"]
    assert "test has no pairs of de-en: not scored" in capsys.readouterr().err
    assert list(evaluate_directions(model, metrics=["chrf"])) == ["ko-en", "en-ko"]
    assert "not scored" in capsys.readouterr().err
    assert list(evaluate_directions(model, metrics=["chrf"], split="validation")) == DIRECTIONS
    with pytest.raises(TmtError, match="test has no pairs of de-en"):
        evaluate_directions(model, metrics=["chrf"], wanted=Wanted("en", "de"))


def test_files_and_single_reports_need_a_direction(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("abc\n")
    files = tmt.TestFiles(tmp_path / "a", tmp_path / "a")
    for work in (evaluate, evaluate_directions):
        with pytest.raises(TmtError, match="several directions: ko-en, en-ko, de-en"):
            work(folder, files=files)
    assert evaluate(folder, files=files, wanted=Wanted("ko")).sentences == 1
    with pytest.raises(TmtError, match="not trained for de-ko"):
        evaluate(folder, files=files, wanted=Wanted("ko", "de"))
    assert evaluate(folder, files=files, wanted=Wanted("ko", "de", zero_shot=True)).sentences == 1


def test_a_picture_and_a_single_report_are_of_one_direction(folder: Path) -> None:
    with pytest.raises(TmtError, match="several fit: ko-en, de-en") as caught:
        evaluate(folder, split="validation", wanted=Wanted("en"))
    assert "--to en --from ko" in caught.value.remedy
    with pytest.raises(TmtError, match="several fit: ko-en, en-ko, de-en"):
        evaluate_directions(folder, split="validation", several=False)


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_the_command_prints_a_row_for_each_direction(
    folder: Path, more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["tmt", "evaluate", "--model", str(folder), "--chrf", "--split", "validation", *more]
    )
    with pytest.raises(SystemExit) as left:
        main.run()
    out: Any = capsys.readouterr().out
    assert left.value.code == 0
    if more:
        found = json.loads(out)
        values = [one["chrf"] for one in found["directions"].values()]
        assert found["mean"]["chrf"] == pytest.approx(sum(values) / 3)
        return
    rows = [line.split()[0] for line in out.splitlines() if line.strip()]
    assert rows[2:6] == [*DIRECTIONS, "mean"]
