"""What `tmt evaluate` says of scores that mean little: sentences of the training, exchanged files, empty lines."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import transformer_mt as tmt
from transformer_mt.config.runs import TRAINED_ON
from transformer_mt.config.schema import Config
from transformer_mt.data import trained_on
from transformer_mt.data.trained_on import TrainedOn
from transformer_mt.evaluation.report import as_json, as_text
from transformer_mt.phrasebook import generate
from transformer_mt.text.batches import keys_of_pairs
from transformer_mt.workflows import test_sets
from transformer_mt.workflows.doubts import note_empty, note_other_language, note_seen

PAIRS = [("A cab.", "Ein Taxi!"), ("the bed", "das Bett"), ("a dad", "ein Papa"), ("a cafe", "ein Café")]


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    """A model that was trained on PAIRS."""
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    keys = keys_of_pairs(*map(list, zip(*PAIRS, strict=True)))
    (folder / TRAINED_ON).write_bytes(TrainedOn.of_blocks([keys]).to_bytes())
    return folder


@pytest.fixture
def untrained(tiny_model: Path, tmp_path: Path) -> Path:
    """A copy, because scores are stored in the folder of a model, and other tests have the same one."""
    return shutil.copytree(tiny_model, tmp_path / "untrained")


def _files(folder: Path, pairs: list[tuple[str, str]]) -> test_sets.TestFiles:
    for name, lines in zip(("test.en", "test.de"), zip(*pairs, strict=True), strict=True):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return test_sets.TestFiles(folder / "test.en", folder / "test.de")


def test_pairs_of_the_training_are_counted_without_case_and_punctuation(model: Path, tmp_path: Path, capsys: Any):
    files = _files(tmp_path, [("a CAB", "Ein Taxi."), ("the bed", "das Beet"), ("a face", "ein Café"), ("fad", "neu")])
    tmt.evaluate(model, files=files, metrics="bleu")
    error = capsys.readouterr().err
    assert f"{model}: trained on both sentences of 1 of the 4 pairs of {files.reference}, perhaps apart" in error


def test_new_pairs_and_translations_of_others_are_not_doubted(model: Path, tmp_path: Path, capsys: Any):
    files = _files(tmp_path, [("a fad", "neu"), ("a face", "ein Gesicht")])
    tmt.evaluate(model, files=files, metrics="bleu")
    tmt.evaluate(model, files=test_sets.TestFiles(*_paths(files), files.reference), metrics="bleu")
    assert "trained on" not in capsys.readouterr().err


def _paths(files: test_sets.TestFiles) -> tuple[Path, Path]:
    assert files.source is not None
    assert files.reference is not None
    return files.source, files.reference


def test_a_baseline_and_each_model_of_an_ensemble_may_have_seen_the_test(
    model: Path, untrained: Path, tmp_path: Path, capsys: Any
):
    files = _files(tmp_path, PAIRS)
    tmt.evaluate(untrained, files=files, metrics="bleu", baseline=model)
    assert capsys.readouterr().err.count("trained on both sentences of 4 of the 4 pairs") == 1
    tmt.evaluate([untrained, model], files=files, metrics="bleu")
    assert capsys.readouterr().err.count(f"{model}: trained on both sentences of 4 of the 4 pairs") == 1


def test_of_a_large_corpus_the_part_that_is_known_is_named(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any):
    pairs = [(f"sentence {number}", f"Satz {number}") for number in range(400)]
    sides = [list(side) for side in zip(*pairs, strict=True)]
    keys = keys_of_pairs(*sides)
    monkeypatch.setattr(trained_on, "MOST", 200)  # half of the hashes
    (model / TRAINED_ON).write_bytes(TrainedOn.of_blocks([keys]).to_bytes())
    limit = min(np.sort(keys[side])[199] for side in ("source", "target"))
    checked = int(((keys["source"] <= limit) & (keys["target"] <= limit)).sum())
    assert 50 < checked < 150
    note_seen(model, "test", *sides)
    assert f"both sentences of {checked} of the {checked} pairs of test that can be checked" in capsys.readouterr().err
    note_seen(model, "test", [f"new {one}" for one in sides[0]], sides[1])
    assert capsys.readouterr().err == ""


def test_a_damaged_record_of_the_training_is_told_and_the_model_scored(model: Path, tmp_path: Path, capsys: Any):
    (model / TRAINED_ON).write_bytes(b"damaged")
    assert tmt.evaluate(model, files=_files(tmp_path, PAIRS), metrics="bleu").scores
    assert "whether this model was trained on the test set is not known" in capsys.readouterr().err


def test_a_model_beside_itself_is_doubted_once(model: Path, tmp_path: Path, capsys: Any):
    tmt.evaluate(model, files=_files(tmp_path, PAIRS), metrics="bleu", baseline=model)
    assert capsys.readouterr().err.count("trained on both sentences") == 1


def test_exchanged_files_are_named(capsys: Any):
    ko, en = (list(side) for side in zip(*generate("ko", "en", "test", 40, 1), strict=True))
    de, _ = (list(side) for side in zip(*generate("de", "en", "test", 40, 1), strict=True))
    for lines, language in ((ko, "ko"), (en, "en"), (de, "de"), (["OK", "MP3"], "ko"), ([], "en"), (en, "")):
        note_other_language("file", lines, language)
    note_other_language("file", [*ko, *en[:20]], "ko")  # fewer than half of them
    assert capsys.readouterr().err == ""
    note_other_language("file", en, "ko")
    assert "file: 40 sentences of 40 seem to be en, not ko: is this the right file?" in capsys.readouterr().err
    note_other_language("file", [*en * 13, *ko * 30], "ko")  # the first 500 lines, and later one in 47
    assert "file: 501 sentences of 523 seem to be en" in capsys.readouterr().err
    note_other_language("file", de, "en")
    assert "seem to be de, not en" in capsys.readouterr().err
    note_other_language("file", ["예", "네", "아니요"], "en")
    assert "3 sentences of 3 seem to be in another script than en has" in capsys.readouterr().err


def test_evaluate_looks_at_the_languages_of_both_files(untrained: Path, tmp_path: Path, capsys: Any):
    pairs = list(generate("en", "de", "test", 20, 1))
    files = _files(tmp_path, [(german, english) for english, german in pairs])
    tmt.evaluate(untrained, files=files, metrics="bleu")
    error = capsys.readouterr().err
    assert f"{files.source}: " in error
    assert "seem to be de, not en" in error
    assert f"{files.reference}: " in error
    assert "seem to be en, not de" in error


def test_empty_lines_are_counted(untrained: Path, tmp_path: Path, capsys: Any):
    files = _files(tmp_path, [("a fad", "neu"), ("", "ein Gesicht"), ("bed", " "), ("cab", "")])
    tmt.evaluate(untrained, files=files, metrics="bleu")
    error = capsys.readouterr().err
    assert f"{files.source}: 1 of 4 source lines is empty, the first on line 2" in error
    assert f"{files.reference}: 2 of 4 reference lines are empty, the first on line 3" in error
    note_empty(Path("file"), ["a"])
    assert capsys.readouterr().err == ""


def test_scores_say_how_many_pairs_of_the_test_files_were_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)

    def table(name: str, rows: list[tuple[str, str]]) -> str:
        Path(f"{name}.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in rows))
        return f"{name}.tsv"

    pairs = [(f"{letter} {other}", f"{letter.upper()} {other.upper()}") for letter in "abcdef" for other in "abcdef"]
    test = [*pairs[:4], ("", "A"), ("b", " "), *pairs[4:8], ("", "")]
    corpus = {
        "kind": "tsv",
        "train": table("train", pairs[8:]),
        "validation": table("valid", pairs[:8]),
        "test": {"news": table("news", test), "whole": table("whole", pairs[:8])},
    }
    config = {
        "name": "left",
        "data": {"source": "de", "target": "en", "corpus": corpus, "workers": 1, "cleaning": {"language": "off"}},
        "tokenizer": {"kind": "whitespace", "min_frequency": 1},
        "model": {"d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1, "decoder_layers": 1},
        "training": {"max_epochs": 1, "bleu_sentences": 0},
        "runtime": {"device": "cpu"},
    }
    tmt.train(Config.model_validate(config))
    run = Path("runs/left")
    fact = "8 of 11 sentences of news (3 were left out when it was prepared)"
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count(fact) == 1
    assert "whole: 8" not in printed.out + printed.err
    found = tmt.evaluate(run, split="news", metrics="bleu")
    assert fact in as_text(found)
    assert as_json(found)["left_out"] == 3
    whole = tmt.evaluate(run, split="whole", metrics="bleu")
    assert "8 sentences of whole · " in as_text(whole)
    assert as_json(whole)["left_out"] is None
    stored = json.loads((run / "model" / "scores.json").read_text())
    assert (stored["news"]["left_out"], "left_out" in stored["whole"]) == (3, False)
