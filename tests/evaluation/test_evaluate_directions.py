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
from transformer_mt.evaluation.scores import score
from transformer_mt.kernels.build import build_model
from transformer_mt.runtime.weights import named_weights
from transformer_mt.workflows.engines import load_model
from transformer_mt.workflows.evaluate import evaluate, evaluate_directions, evaluate_splits

pytestmark = pytest.mark.slow
DIRECTIONS = ["ko-en", "en-ko", "de-en"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained model with its prepared data."""
    folder = tmp_path_factory.mktemp("many")
    config = Config.model_validate(
        {
            "name": "many",
            "data": {
                "directions": DIRECTIONS,
                "corpus": {"kind": "phrasebook", "train": 40, "validation": 6, "test": 8},
                "prepared": str(folder / "prepared"),
                "workers": 1,
            },
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


def test_a_baseline_is_compared_in_each_direction(folder: Path) -> None:
    reports = evaluate_directions(folder, metrics=["chrf"], baseline=folder)
    assert all(one.comparison["chrf"].baseline == one.comparison["chrf"].system for one in reports.values())


def test_the_scores_at_the_end_of_a_training_are_of_each_direction(folder: Path) -> None:
    names = [name for name, _ in evaluate_splits(folder, ["validation"], "cpu")]
    assert names == [f"validation {name}" for name in DIRECTIONS]


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
