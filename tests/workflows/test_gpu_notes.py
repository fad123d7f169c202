"""What `tmt train` says about a slow training on a CUDA GPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from transformer_mt.config.schema import Config
from transformer_mt.workflows import gpu_notes as notes_module
from transformer_mt.workflows.gpu_notes import gpu_notes

GPU = torch.device("cuda")


def config_of(compiled: Any = "auto", **training: Any) -> Config:
    return Config.model_validate(
        {
            "name": "notes",
            "data": {"source": "en", "target": "de", "corpus": {"kind": "phrasebook"}},
            "tokenizer": {"kind": "character"},
            "training": {"max_epochs": 1, "packing": "batch_sentences" not in training, **training},
            "runtime": {"compile": compiled},
        }
    )


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes_module, "compiler_problem", lambda device: "")


def test_a_cpu_gets_no_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes_module, "compiler_problem", lambda device: "no compiler")
    assert gpu_notes(config_of(), torch.device("cpu"), 100_000) == []


def test_small_batches_of_a_large_corpus_are_noted_with_what_to_change() -> None:
    (note,) = gpu_notes(config_of(compiled=False), GPU, 10_000)
    assert "batches of 4,096 tokens are small" in note
    assert "--set training.batch_tokens=32768" in note
    assert "warmup_steps divided by 8" in note
    assert "learning_rate up to 2.8 times as high" in note


@pytest.mark.parametrize(
    ("training", "updates"),
    [({}, 1000), ({"batch_tokens": 25_000}, 10_000), ({"batch_sentences": 64}, 10_000)],
)
def test_small_corpora_large_batches_and_batches_of_sentences_are_not_noted(training: dict[str, int], updates: int):
    assert gpu_notes(config_of(compiled=False, **training), GPU, updates) == []


@pytest.mark.parametrize(
    ("model", "training", "noted"),
    [
        ({}, {}, 1),
        ({"attention": "handmade"}, {}, 0),
        ({"attention_dropout": 0.1}, {}, 0),
        ({}, {"r_drop": 1.0}, 0),
        ({}, {"batch_sentences": 64}, 0),
    ],
)
def test_padded_rows_are_noted_if_streams_are_faster(
    model: dict[str, Any], training: dict[str, Any], noted: int
) -> None:
    config = config_of(packing=False, **training)
    notes = gpu_notes(config.model_copy(update={"model": config.model.model_copy(update=model)}), GPU, 100)
    assert ["--set training.packing=true" in note for note in notes] == [False] + [True] * noted


@pytest.mark.parametrize("compiled", ["auto", True])
def test_compiling_is_noted_because_the_first_update_takes_long(compiled: Any) -> None:
    (note,) = gpu_notes(config_of(compiled), GPU, 100)
    assert "runtime.compile: false starts at once" in note


def test_a_missing_compiler_is_noted_unless_compiling_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes_module, "compiler_problem", lambda device: "Cannot find a working triton installation")
    (note,) = gpu_notes(config_of(), GPU, 100)
    assert note.startswith("not compiled, so training is slower: Cannot find a working triton installation.")
    assert gpu_notes(config_of(compiled=False), GPU, 100) == []
