"""Training on epochs in windows, with batches made ready ahead: resumed exactly, and ended without a thread left."""

from __future__ import annotations

import functools
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_mt.data.batching import Batches
from transformer_mt.errors import TmtError
from transformer_mt.training.state import TrainState
from transformer_mt.workflows import batches

pytestmark = pytest.mark.slow


@pytest.fixture
def windowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The 400 pairs of the corpus in five windows."""
    monkeypatch.setattr(batches, "Batches", functools.partial(Batches, window=80))


def weights(trainer: Any) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in trainer.model.named_parameters()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def batch_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("batches-")]


def interrupt_at(trainer: Any, step: int) -> None:
    """Press Ctrl-C in this step."""
    add_up = trainer.gradients.add_up

    def interrupted(*arguments: Any) -> Any:
        if trainer.state.step + 1 == step:
            os.kill(os.getpid(), signal.SIGINT)
        return add_up(*arguments)

    trainer.gradients.add_up = interrupted


@pytest.mark.usefixtures("windowed")
@pytest.mark.parametrize("options", [{}, {"packing": True}, {"accumulate": 3}])
@pytest.mark.parametrize("prefetch", [0, 5])
def test_a_resumed_run_equals_an_uninterrupted_one(
    numbers: Any, tmp_path: Path, options: dict[str, Any], prefetch: int
) -> None:
    options = {"schedule": "cosine", "max_epochs": 2, **options}
    whole = numbers.trainer(tmp_path / "whole", **options)
    assert whole.batches.windows == 5
    state = whole.train()
    assert state.tokens == 2 * int(whole.batches.store.target.lengths.sum()), "every pair once an epoch"
    for step in (3, 8, 0):
        trainer = numbers.trainer(tmp_path / "parts", runtime={"prefetch": prefetch}, **options)
        interrupt_at(trainer, step)
        if step:
            with pytest.raises(TmtError, match=f"interrupted at step {step}"):
                trainer.train()
        else:
            trainer.train()
    assert same(weights(whole), weights(trainer))
    assert batch_threads() == []


@pytest.mark.usefixtures("windowed")
def test_a_cosine_ends_with_the_last_epoch_although_its_updates_are_estimated(numbers: Any, tmp_path: Path) -> None:
    rates = list[float]()
    options = {"learning_rate": 0.01, "min_learning_rate": 0.001, "schedule": "cosine", "batch_tokens": 64}
    trainer = numbers.trainer(tmp_path, max_epochs=3, **options)
    update = trainer.optimizer.update
    trainer.optimizer.update = lambda step, rate: rates.append(rate) or update(step, rate)
    trainer.train()
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx(0.001, rel=0.02)


def test_training_with_batches_made_ready_ahead_is_the_same(numbers: Any, tmp_path: Path) -> None:
    found = []
    for prefetch in (0, 1, 7):
        trainer = numbers.trainer(tmp_path / str(prefetch), runtime={"prefetch": prefetch}, max_epochs=2)
        trainer.train()
        found.append(weights(trainer))
    assert same(found[0], found[1])
    assert same(found[0], found[2])
    assert batch_threads() == []


def test_an_interruption_ends_the_threads_and_saves(numbers: Any, tmp_path: Path) -> None:
    trainer = numbers.trainer(tmp_path, runtime={"prefetch": 4}, max_epochs=9)
    add_up, seen = trainer.gradients.add_up, list[int]()

    def interrupted(*arguments: Any) -> Any:
        seen.append(len(batch_threads()))
        if len(seen) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return add_up(*arguments)

    trainer.gradients.add_up = interrupted
    with pytest.raises(TmtError, match="interrupted at step 3; everything is saved"):
        trainer.train()
    assert seen[-1] >= 1
    assert batch_threads() == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), torch.OutOfMemoryError("CUDA out of memory"), OSError("disk")])
def test_every_end_of_training_ends_the_threads(numbers: Any, tmp_path: Path, error: BaseException) -> None:
    trainer = numbers.trainer(tmp_path, runtime={"prefetch": 4}, max_epochs=9)

    def fail(*_: Any) -> Any:
        raise error

    trainer.optimizer.update = fail
    with pytest.raises((KeyboardInterrupt, TmtError, OSError)):
        trainer.train()
    assert batch_threads() == []


def test_a_time_limit_ends_the_threads(numbers: Any, tmp_path: Path) -> None:
    trainer = numbers.trainer(tmp_path, runtime={"prefetch": 4}, max_epochs=None, max_minutes=0.001)
    assert trainer.train().stopped.startswith("max_minutes")
    assert batch_threads() == []


def test_damaged_data_is_reported_from_the_thread(numbers: Any, tmp_path: Path) -> None:
    trainer = numbers.trainer(tmp_path, runtime={"prefetch": 4}, max_epochs=2)

    def damaged(*_: Any) -> Any:
        raise TmtError("prepared data is damaged: an id is not in the vocabulary", place="train")

    trainer.batches.at = damaged
    with pytest.raises(TmtError, match="an id is not in the vocabulary"):
        trainer.train()
    assert batch_threads() == []


def without_place(self: TrainState) -> dict[str, Any]:
    """The state as older versions wrote it."""
    return {key: value for key, value in to_json(self).items() if not key.startswith("plan_")}


to_json = TrainState.to_json


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_checkpoint_of_an_older_version_goes_on_exactly(
    numbers: Any, tmp_path: Path, accumulate: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The corpus has one window, so the batches are the same."""
    options = {"accumulate": accumulate, "max_epochs": 2}
    whole = numbers.trainer(tmp_path / "whole", **options)
    whole.train()
    monkeypatch.setattr(TrainState, "to_json", without_place)
    older = numbers.trainer(tmp_path / "parts", **options)
    interrupt_at(older, 3)
    with pytest.raises(TmtError, match="interrupted at step 3"):
        older.train()
    monkeypatch.undo()
    resumed = numbers.trainer(tmp_path / "parts", **options)
    resumed.train()
    assert same(weights(whole), weights(resumed))


def test_a_large_corpus_of_an_older_version_goes_on_after_the_same_share_of_the_epoch(
    numbers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Older versions planned whole epochs, so some pairs come twice; that is said, and training ends as planned."""
    monkeypatch.setattr(TrainState, "to_json", without_place)
    older = numbers.trainer(tmp_path, batch_tokens=64, max_epochs=3)
    interrupt_at(older, older.epoch_updates + older.epoch_updates // 2)
    with pytest.raises(TmtError, match="interrupted"):
        older.train()
    monkeypatch.undo()
    monkeypatch.setattr(batches, "Batches", functools.partial(Batches, window=80))
    resumed = numbers.trainer(tmp_path, batch_tokens=64, max_epochs=3)
    assert resumed._resume()
    assert resumed.state.cursor[:2] == (2, 2), "in the middle of the second epoch"
    state = resumed.train()
    said = capfd.readouterr().err
    assert "in the rest of epoch 2, some pairs come twice and others not at all" in said
    assert state.stopped == "max_epochs 3 reached"
    assert state.step == pytest.approx(3 * resumed.epoch_updates, rel=0.1)
