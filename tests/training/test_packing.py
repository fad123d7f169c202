"""Training on streams: it learns as well as on padded batches, resumes exactly, and splits a batch without memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from transformer_mt.training.validation import mean_nll

pytestmark = pytest.mark.slow


def weights(trainer: Any) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in trainer.model.named_parameters()}


def validation_loss(trainer: Any) -> float:
    trainer.model.eval()
    return mean_nll(trainer.model, trainer.validation.store, 4096, trainer.machine)


def test_it_learns_the_same_as_from_padded_batches_of_the_same_pairs(
    numbers: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"max_steps": 60, "max_epochs": None, "learning_rate": 0.01, "epsilon": 1e-6}
    streams = numbers.trainer(tmp_path / "streams", {"dropout": 0.0}, packing=True, **options)
    rows = numbers.trainer(tmp_path / "rows", {"dropout": 0.0}, **options)
    rows.batches.plan = streams.batches.plan
    rows.batches.planner.plan = streams.batches.plan
    before, losses = validation_loss(streams), []
    for trainer in (streams, rows):
        trainer.model.train()
        trainer.train()
        losses.append(validation_loss(trainer))
    assert losses[0] < 0.6 * before
    assert losses[0] == pytest.approx(losses[1], rel=0.01)
    assert streams.state.tokens == rows.state.tokens
    assert "streams of 256 source tokens and" in capsys.readouterr().err


def test_a_resumed_run_equals_an_uninterrupted_one(numbers: Any, tmp_path: Path) -> None:
    options = {"packing": True, "checkpoint_every": 7, "accumulate": 2, "r_drop": 1.0}
    whole = numbers.trainer(tmp_path / "whole", {"positions": "rotary"}, max_steps=18, **options)
    whole.train()
    for steps in (7, 18):
        trainer = numbers.trainer(tmp_path / "parts", {"positions": "rotary"}, max_steps=steps, **options)
        trainer.train()
    assert all(torch.equal(weight, weights(trainer)[name]) for name, weight in weights(whole).items())


def test_out_of_memory_splits_a_stream(numbers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"packing": True, "max_steps": 6, "epsilon": 1e-3}  # as in the test of padded batches
    whole = numbers.trainer(tmp_path / "whole", {"dropout": 0.0}, **settings)
    whole.train()
    split = numbers.trainer(tmp_path / "split", {"dropout": 0.0}, **settings)
    forward, lengths = split.gradients.step.forward, []

    def limited(source_BS: Tensor, *others: Any) -> Any:
        if source_BS.shape[1] > 100:
            raise torch.OutOfMemoryError("CUDA out of memory")
        lengths.append(source_BS.shape[1])
        return forward(source_BS, *others)

    monkeypatch.setattr(split.gradients.step, "forward", limited)
    monkeypatch.setattr(split.validation, "evaluate", whole.validation.evaluate)
    split.train()
    assert split.gradients.parts == 4
    assert max(lengths) <= 100
    for name, weight in weights(whole).items():
        assert_close(weights(split)[name], weight, rtol=1e-3, atol=1e-5)
