"""The training loop: what it saves, when it validates and stops, what the options do, and the errors."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_mt.errors import InterruptionError, TmtError
from transformer_mt.runtime.device import Machine
from transformer_mt.runtime.distributed import World
from transformer_mt.text.vocabulary import BOS
from transformer_mt.training import agreement
from transformer_mt.training import trainer as training
from transformer_mt.training.ending import candidates
from transformer_mt.training.optimizer import Optimizer
from transformer_mt.training.run_directory import FinalModel
from transformer_mt.training.schedules.cosine import cosine
from transformer_mt.training.state import TrainState
from transformer_mt.training.validation import BleuResult, Sample, ValidationResult, mean_nll
from transformer_mt.workflows.average import average

pytestmark = pytest.mark.slow


def weights(trainer: Any) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in trainer.model.named_parameters()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def records(run: Path, event: str) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [record for record in map(json.loads, lines) if record["event"] == event]


def fake_losses(trainer: Any, *losses: float) -> None:
    """Make validation return these losses, one after the other."""
    found = iter(losses)
    trainer.validation.evaluate = lambda model: ValidationResult(next(found))


def test_it_learns(numbers: Any, tmp_path: Path):
    trainer = numbers.trainer(tmp_path, max_epochs=4, learning_rate=0.01)
    state = trainer.train()
    found = [record["loss"] for record in records(tmp_path, "validation")]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.9 * found[0]
    assert state.stopped == "max_epochs 4 reached"
    assert state.tokens == 4 * int(trainer.batches.store.target.lengths.sum())


@pytest.mark.parametrize("steps_of_epoch_1", [11, 5, 22])
def test_a_cosine_ends_with_the_last_epoch_after_a_change_of_processes(
    steps_of_epoch_1: int, numbers: Any, tmp_path: Path
):
    """An epoch has 11 updates with one process, 5 with two, and 22 with half of the batch size."""
    trainer = numbers.trainer(tmp_path, max_epochs=2, schedule="cosine", learning_rate=0.01, min_learning_rate=0.001)
    trainer.state = TrainState(step=steps_of_epoch_1, epoch=2)
    trainer.train()
    rates = [record["learning_rate"] for record in records(tmp_path, "step")]
    assert rates[-1] == pytest.approx(0.001)
    assert all(0.001 < rate <= cosine(12, 0.01, 0.001, 0, 22) for rate in rates[:-1])


def test_the_plan_of_an_epoch_is_made_once(numbers: Any, tmp_path: Path):
    trainer, planned = numbers.trainer(tmp_path, max_epochs=3, schedule="cosine"), []
    make_plan = trainer.batches.planner._make_plan
    trainer.batches.planner._make_plan = lambda epoch, window: planned.append(epoch) or make_plan(epoch, window)
    trainer.train()
    assert planned == [2, 3]  # the trainer has already planned epoch 1, for the length of the schedule


def test_metrics_are_well_formed(numbers: Any, tmp_path: Path):
    trainer = numbers.trainer(tmp_path, max_steps=45, max_epochs=None)
    trainer.train()
    steps = records(tmp_path, "step")
    assert [record["step"] for record in steps] == [20, 40, 45]
    assert [record["updates"] for record in steps] == [20, 20, 5], "also if an epoch has ended in between"
    assert [record["epoch"] for record in steps] == [2, 4, 5]
    for record in steps:
        assert 0 < record["loss"] < 4
        assert record["smoothed_loss"] > 0
        assert record["learning_rate"] == 0.003
        assert record["tokens_per_second"] > 0
    validations = records(tmp_path, "validation")
    assert [record["step"] for record in validations] == [11, 22, 33, 44, 45]
    assert [record["epoch"] for record in validations] == [1, 2, 3, 4, 5]
    assert {record["search"] for record in validations} == {"greedy"}
    assert validations[0]["train_loss"] > validations[1]["train_loss"] > steps[1]["loss"]


def test_a_window_of_losses_goes_on_after_a_restart(numbers: Any, tmp_path: Path):
    """Epochs have 11 updates: the run stops in the middle of a window."""
    whole = numbers.trainer(tmp_path / "whole", max_epochs=4)
    whole.train()
    for epochs in (1, 3, 4):
        numbers.trainer(tmp_path / "parts", max_epochs=epochs).train()
    one, other = (
        {record["step"]: record["loss"] for record in records(tmp_path / name, "step")} for name in ("whole", "parts")
    )
    assert list(one) == [20, 40, 44]
    assert list(other) == [11, 20, 33, 40, 44], "a run that ends writes what it has"
    means = [(11 * other[11] + 9 * other[20]) / 20, (13 * other[33] + 7 * other[40]) / 20]
    assert [one[20], one[40]] == pytest.approx(means, abs=0.05)  # of updates with different numbers of tokens
    assert one[44] == pytest.approx(other[44])


def test_the_same_seed_gives_the_same_model_to_the_bit(numbers: Any, tmp_path: Path):
    runs = [numbers.trainer(tmp_path / name, max_epochs=1) for name in ("one", "other")]
    for trainer in runs:
        trainer.train()
    assert same(*map(weights, runs))


def test_another_seed_gives_another_model(numbers: Any, tmp_path: Path, monkeypatch):
    one = numbers.trainer(tmp_path / "one", max_steps=3)
    one.train()
    values = numbers.values
    monkeypatch.setattr(numbers, "values", lambda **training: {**values(**training), "seed": 2})
    other = numbers.trainer(tmp_path / "other", max_steps=3)
    other.train()
    assert not same(weights(one), weights(other))


def test_validations_and_checkpoints_happen_when_due(numbers: Any, tmp_path: Path):
    trainer = numbers.trainer(tmp_path, max_steps=14, validate_every=6, checkpoint_every=4, keep_last=9)
    trainer.train()
    assert [record["step"] for record in records(tmp_path, "validation")] == [6, 12, 14]
    assert trainer.run.checkpoints.steps() == [4, 6, 8, 12, 14]


def test_updates_can_use_the_memory_that_a_validation_needed(numbers: Any, tmp_path: Path, monkeypatch):
    """PyTorch cannot use the memory of graphs for anything else, even if nothing else is left."""
    trainer = numbers.trainer(tmp_path / "run", max_steps=4, validate_every=2)
    happened, evaluate, update = list[str](), trainer.validation.evaluate, trainer.optimizer.update
    trainer.validation.evaluate = lambda model: happened.append("validation") or evaluate(model)
    trainer.optimizer.update = lambda *given: happened.append("update") or update(*given)
    monkeypatch.setattr(training, "give_back_memory", lambda: happened.append("given back"))
    trainer.train()
    assert happened == ["update", "update", "validation", "given back"] * 2


def test_the_best_and_the_last_checkpoints_are_kept(numbers: Any, tmp_path: Path):
    trainer = numbers.trainer(tmp_path, max_steps=8, validate_every=1, keep_last=2, keep_best=3)
    fake_losses(trainer, 3.0, 1.0, 4.0, 1.5, 9.0, 2.0, 2.6, 5.0)
    trainer.train()
    assert trainer.run.checkpoints.steps() == [2, 4, 6, 7, 8]


def test_patience_ends_training(numbers: Any, tmp_path: Path):
    trainer = numbers.trainer(tmp_path, max_epochs=50, validate_every=2, patience=3)
    fake_losses(trainer, 3.0, 2.0, 2.5, 2.5, 2.0, 1.0)
    state = trainer.train()
    assert state.step == 10
    assert state.stopped.startswith("patience 3 exhausted")
    assert trainer.run.checkpoints.read(10).state.stopped == state.stopped


def test_patience_counts_bleu_if_bleu_is_monitored(numbers: Any, tmp_path: Path, capsys):
    scores = iter([1.0, 5.0, 4.0, 3.0])
    trainer = numbers.trainer(tmp_path, max_epochs=50, validate_every=2, patience=2, monitor="bleu", bleu_sentences=1)
    trainer.validation.bleu_of = lambda model: BleuResult(next(scores), [Sample("a b", "e f", "c d")])
    assert trainer.train().step == 8
    assert [record["bleu"] for record in records(tmp_path, "validation")] == [1.0, 5.0, 4.0, 3.0]
    assert records(tmp_path, "validation")[0]["samples"] == [
        {"source": "a b", "translation": "e f", "reference": "c d"}
    ]
    assert "a b  ->  e f   (c d)" in capsys.readouterr().err


def test_max_minutes_ends_training_at_once_with_a_validation(numbers: Any, tmp_path: Path):
    trainer = numbers.trainer(tmp_path, max_epochs=None, max_minutes=1e-6, validate_every=300)
    state = trainer.train()
    assert (state.step, state.validated, state.stopped) == (2, 2, "max_minutes 1e-06 reached")
    assert trainer.run.checkpoints.steps() == [2]


def test_the_main_process_decides_about_max_minutes(numbers: Any, tmp_path: Path, monkeypatch):
    """Clocks differ: if each process decided, one could end while the others wait for it."""
    trainer = numbers.trainer(tmp_path, max_epochs=None, max_steps=9, max_minutes=1e-6, validate_every=3)
    from_main = World.from_main

    def slower_clock(self: World, make: Any, doing: str = "") -> Any:
        result = from_main(self, make, doing)
        return "" if str(result).startswith("max_minutes") else result

    monkeypatch.setattr(World, "from_main", slower_clock)
    assert trainer.train().stopped == "max_steps 9 reached"


def test_plateau_lowers_the_learning_rate(numbers: Any, tmp_path: Path):
    trainer = numbers.trainer(
        tmp_path,
        max_epochs=9,
        max_steps=40,
        schedule="plateau",
        plateau_patience=0,
        plateau_factor=0.5,
        validate_every=10,
    )
    fake_losses(trainer, 2.0, 2.0, 1.0, 1.0)
    trainer.train()
    rates = {record["step"]: record["learning_rate"] for record in records(tmp_path, "step")}
    assert [rates[step] for step in (20, 40)] == pytest.approx([0.003, 0.0015])


def test_clipping_bounds_the_gradient(numbers: Any, tmp_path: Path, monkeypatch):
    norms = []
    trainer = numbers.trainer(tmp_path, max_steps=2, clip_norm=0.01)
    step = trainer.optimizer.parts[0].step

    def recording_step(*arguments: Any, **options: Any) -> Any:
        norms.append(torch.stack([parameter.grad.norm() for parameter in trainer.model.parameters()]).norm().item())
        return step(*arguments, **options)

    monkeypatch.setattr(trainer.optimizer.parts[0], "step", recording_step)
    trainer.train()
    assert norms == pytest.approx([0.01, 0.01], rel=1e-3)


def test_muon_updates_the_matrices_of_the_layers_and_adamw_the_rest(numbers: Any, tmp_path: Path):
    """Updates of Muon have equal singular values; the first update of Adam changes each number by the rate."""
    trainer = numbers.trainer(tmp_path, optimizer="muon")
    before, rate = weights(trainer), 1e-3
    (trainer.gradients.step(*trainer.batches.update(1, 0)[0])).smoothed.backward()
    trainer.optimizer.update(1, rate)
    for name, weight in weights(trainer).items():
        change = weight - before[name]
        if ".layers." in name and weight.ndim == 2:
            values = torch.linalg.svdvals(change) / (rate * 0.2 * max(weight.shape) ** 0.5)
            assert values.max() < 1.3
            assert values.mean() > 0.7
        else:
            assert change.abs().max() == pytest.approx(rate, rel=0.01)


def test_muon_updates_of_queries_keys_and_values_have_equal_size(numbers: Any, tmp_path: Path):
    trainer = numbers.trainer(tmp_path, optimizer="muon")
    weight = trainer.model.decoder.layers[0].cross_attention.query_key_value.weight
    weight.grad = torch.randn_like(weight)
    weight.grad[: len(weight) // 3] *= 1e-3
    before = weight.detach().clone()
    trainer.optimizer.update(1, 1e-3)
    sizes = [part.norm().item() for part in (weight.detach() - before).chunk(3)]
    assert sizes == pytest.approx([sizes[0]] * 3, rel=0.1)


def test_muon_refuses_float16(numbers: Any, tmp_path: Path):
    """Loss scaling would have to skip the step of two optimizers together."""
    trainer = numbers.trainer(tmp_path, optimizer="muon")
    with pytest.raises(TmtError, match="muon does not support float16"):
        Optimizer(trainer.model, trainer.settings, Machine(torch.device("cpu"), torch.float16))


def test_the_moving_average_is_validated_and_becomes_the_model(numbers: Any, tmp_path: Path):
    trainer = numbers.trainer(tmp_path, max_steps=30, max_epochs=None, ema_decay=0.9, validate_every=10)
    expected, validated = None, []

    def evaluate(model: Any) -> ValidationResult:
        validated.append(model.generator.weight.detach().clone())
        return ValidationResult(1.0)

    trainer.validation.evaluate = evaluate
    update = trainer.optimizer.update

    def update_and_average(step: int, rate: float) -> None:
        nonlocal expected
        expected = trainer.model.generator.weight.detach().clone() if expected is None else expected
        update(step, rate)
        decay = min(0.9, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * trainer.model.generator.weight.detach()

    trainer.optimizer.update = update_and_average
    trainer.train()
    torch.testing.assert_close(validated[-1], expected)
    assert not torch.equal(validated[-1], trainer.model.generator.weight)  # training continues without averaging
    mean = trainer.run.checkpoints.mean_weights([30])["generator.weight"]
    torch.testing.assert_close(mean, expected)


def test_r_drop_pulls_two_passes_together(numbers: Any, tmp_path: Path):
    """With R-Drop the two dropout passes of a batch have more similar predictions."""

    def divergence(weight: float) -> float:
        trainer = numbers.trainer(
            tmp_path / f"{weight}", {"dropout": 0.3}, max_epochs=3, r_drop=weight, learning_rate=0.01
        )
        trainer.train()
        batch = trainer.batches.update(1, 0)[0]
        step = trainer.gradients.step
        step.r_drop = 1.0
        torch.manual_seed(1)
        together = step(*batch).smoothed
        step.r_drop = 1e-9
        torch.manual_seed(1)
        return (together - step(*batch).smoothed).item() / batch.tokens

    assert 0 < divergence(5.0) < 0.5 * divergence(1e-6)


def test_r_drop_without_dropout_changes_nothing(numbers: Any, tmp_path: Path):
    """Without dropout both passes are equal."""
    trainer = numbers.trainer(tmp_path, {"dropout": 0.0}, r_drop=5.0)
    batch = trainer.batches.update(1, 0)[0]
    with_it = trainer.gradients.step(*batch)
    trainer.gradients.step.r_drop = 0.0
    without = trainer.gradients.step(*batch)
    torch.testing.assert_close(with_it.smoothed, without.smoothed)
    torch.testing.assert_close(with_it.nll, without.nll)


def test_validation_uses_neither_dropout_nor_smoothing(numbers: Any, tmp_path: Path):
    trainer = numbers.trainer(tmp_path, {"dropout": 0.5}, label_smoothing=0.3)
    found = [trainer.validation.evaluate(trainer.model).loss for _ in range(2)]
    assert found[0] == found[1]
    assert trainer.model.training
    store, total, count = trainer.validation.store, 0.0, 0
    trainer.model.eval()
    for number in range(len(store)):
        source, target = torch.tensor([store.source[number]]), torch.tensor([store.target[number]])
        read = torch.cat([torch.tensor([[BOS]]), target[:, :-1]], dim=1)
        logits = trainer.model.generate_logits(trainer.model(source, read))
        total += torch.nn.functional.cross_entropy(logits[0], target[0], reduction="sum").item()
        count += target.numel()
    assert found[0] == pytest.approx(total / count, rel=1e-5)


# ---------------------------------------------------------------- errors


def break_loss(trainer: Any, step: int) -> None:
    """Make the loss of one step NaN."""
    forward, calls = trainer.gradients.step.forward, iter(range(1, 10_000))

    def broken(*batch: Tensor) -> Any:
        loss = forward(*batch)
        return loss._replace(smoothed=loss.smoothed * float("nan")) if next(calls) == step else loss

    trainer.gradients.step.forward = broken


def test_processes_share_validation_to_the_bit(numbers: Any, tmp_path: Path):
    """Three processes, here threads, get the same loss as a single process."""
    trainer, shares, together = numbers.trainer(tmp_path), {}, threading.Barrier(3)

    class OneOfThree(World):
        def gather(self, value: Any) -> list[Any]:
            shares[self.rank] = value
            together.wait(timeout=60)
            return [shares[rank] for rank in range(3)]

    def loss(world: World) -> float:
        machine = replace(trainer.machine, world=world)
        return mean_nll(trainer.model.eval(), trainer.validation.store, 30, machine)

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(loss, (OneOfThree(rank, 3) for rank in range(3)))) == [loss(World())] * 3
    assert all(len(share.result) > 1 for share in shares.values())


def test_a_loss_that_is_not_finite_is_reported_with_step_and_batch(numbers: Any, tmp_path: Path):
    trainer = numbers.trainer(tmp_path, max_epochs=3, checkpoint_every=5)
    break_loss(trainer, 14)
    with pytest.raises(TmtError, match="the loss is not a finite number at step 14, update 3 of epoch 2") as failure:
        trainer.train()
    assert failure.value.exit_code == 2
    assert "The last good checkpoint is" in failure.value.remedy
    assert trainer.run.checkpoints.steps() == [10, 11]
    saved = trainer.run.checkpoints.read(11)
    assert all(torch.isfinite(weight).all() for weight in saved.weights.values())


def test_a_loss_that_is_read_every_20_steps_still_names_the_right_step(numbers: Any, tmp_path: Path, monkeypatch):
    trainer = numbers.trainer(tmp_path, max_epochs=3)
    monkeypatch.setattr(trainer, "_require_finite", lambda table, own=trainer._require_finite: None)
    break_loss(trainer, 14)
    position = None

    def check(table: list[float]) -> None:
        nonlocal position
        position = position or trainer.losses.first_non_finite(table)
        if position and len(trainer.losses) == 9:  # at step 20
            raise TmtError("not finite")

    monkeypatch.setattr(trainer, "_require_finite", check)
    with pytest.raises(TmtError, match="not finite"):
        trainer.train()
    assert position is not None
    assert (position.step, position.epoch, position.update) == (14, 2, 3)


def test_weights_that_are_not_finite_are_never_saved(numbers: Any, tmp_path: Path):
    trainer = numbers.trainer(tmp_path, max_steps=8, checkpoint_every=4)
    update = trainer.optimizer.update

    def make_infinite(step: int, rate: float) -> None:
        update(step, rate)
        if step == 8:  # after the loss of the last step was checked
            trainer.model.generator.weight.data[0, 0] = float("inf")

    trainer.optimizer.update = make_infinite
    fake_losses(trainer, 1.0)
    with pytest.raises(TmtError, match="the weights are not finite numbers at step 8"):
        trainer.train()
    assert trainer.run.checkpoints.steps() == [4]


def test_a_validation_loss_that_is_not_finite_ends_training(numbers: Any, tmp_path: Path):
    trainer = numbers.trainer(tmp_path, max_steps=8, validate_every=4)
    fake_losses(trainer, 1.0, float("nan"))
    with pytest.raises(TmtError, match="the validation loss is not a finite number at step 8"):
        trainer.train()
    assert trainer.run.checkpoints.steps() == [4]


# ---------------------------------------------------------------- interrupted and resumed


def interrupt_at(trainer: Any, step: int, kind: int) -> None:
    update = trainer.optimizer.update

    def interrupting(number: int, rate: float) -> None:
        if number == step:
            os.kill(os.getpid(), kind)
        update(number, rate)

    trainer.optimizer.update = interrupting


MANY_OPTIONS = {
    "ema_decay": 0.9,
    "accumulate": 2,
    "r_drop": 1.0,
    "clip_norm": 1.0,
    "schedule": "plateau",
}


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
@pytest.mark.parametrize(
    "options",
    [{}, {**MANY_OPTIONS, "optimizer": "adamw", "weight_decay": 0.01}, {"optimizer": "muon", "clip_norm": 1.0}],
)
def test_an_interrupted_and_resumed_run_equals_an_uninterrupted_one(
    numbers: Any, tmp_path: Path, kind: int, options: dict, capfd
):
    whole = numbers.trainer(tmp_path / "whole", max_epochs=3, **options)
    whole.train()
    for step in (4, 9):
        interrupted = numbers.trainer(tmp_path / "interrupted", max_epochs=3, **options)
        interrupt_at(interrupted, step, kind)
        with pytest.raises(
            InterruptionError, match=r"interrupted at step \d+; everything is saved in .*step-00000"
        ) as failure:
            interrupted.train()
        assert failure.value.exit_code == 130
        assert "Run the same command to continue from there" in failure.value.remedy
        assert "stopping after this step" in capfd.readouterr().err
    resumed = numbers.trainer(tmp_path / "interrupted", max_epochs=3, **options)
    state = resumed.train()
    assert same(weights(whole), weights(resumed))
    assert (state.step, state.tokens, state.best) == (whole.state.step, whole.state.tokens, whole.state.best)
    assert [record["step"] for record in records(tmp_path / "interrupted", "resumed")] == [4, 9]
    assert "resumed at step 9 (epoch" in capfd.readouterr().err
    curves = [
        {r["step"]: r["loss"] for r in records(tmp_path / name, "validation")} for name in ("whole", "interrupted")
    ]
    assert curves[0] == curves[1]


def test_a_run_that_a_limit_ends_where_it_was_interrupted_validates_its_last_updates(numbers: Any, tmp_path: Path):
    interrupted = numbers.trainer(tmp_path, max_epochs=3)
    interrupt_at(interrupted, 15, signal.SIGINT)
    with pytest.raises(TmtError, match="interrupted at step 15;"):
        interrupted.train()
    ended = numbers.trainer(tmp_path, max_epochs=3, max_steps=15)
    state = ended.train()
    assert (state.stopped, state.validated, state.interrupted) == ("max_steps 15 reached", 15, [])
    assert candidates(state, ended.settings, ended.run.checkpoints.steps())[0].steps == [15]
    assert [record["step"] for record in records(tmp_path, "validation")] == [11, 15]
    again = numbers.trainer(tmp_path, max_epochs=3, max_steps=15)
    assert again.train().step == 15
    assert len(records(tmp_path, "validation")) == 2


def test_a_finished_run_with_a_smaller_limit_keeps_its_checkpoints(numbers: Any, tmp_path: Path):
    """Its model may be their mean. A run that was killed before it finished removes what it would have removed."""
    numbers.trainer(tmp_path, max_epochs=3, keep_last=3).train()
    again = numbers.trainer(tmp_path, max_epochs=3, keep_last=1)
    again.run.record_finish(33, FinalModel([11, 22, 33], "train"))
    again.train()
    assert again.run.checkpoints.steps() == [11, 22, 33]
    again.run.record_finish(22, FinalModel([11, 22], "train"))
    killed = numbers.trainer(tmp_path, max_epochs=3, keep_last=1, keep_best=1)
    killed.train()
    assert killed.run.checkpoints.steps() == [33]


def test_a_checkpoint_of_an_interruption_is_never_one_of_the_last(numbers: Any, tmp_path: Path):
    """It is not averaged, and does not count for `keep_last`."""
    options = {"max_steps": 16, "validate_every": 4, "average": "last", "average_checkpoints": 3}
    for step in (5, 9, 10, 14):
        interrupted = numbers.trainer(tmp_path, **options)
        interrupt_at(interrupted, step, signal.SIGTERM)
        with pytest.raises(TmtError, match=f"interrupted at step {step};"):
            interrupted.train()
        assert step in interrupted.run.checkpoints.steps()
    assert average(tmp_path, last=2).steps == [8, 12]
    resumed = numbers.trainer(tmp_path, **options)
    state = resumed.train()
    assert resumed.run.checkpoints.steps() == [8, 12, 16]
    assert state.interrupted == [5, 9, 10, 14]


def test_a_run_without_recorded_last_checkpoints_continues(numbers: Any, tmp_path: Path, monkeypatch):
    options = {"validate_every": 4, "average": "last", "average_checkpoints": 3}
    monkeypatch.setattr(TrainState, "record_checkpoint", lambda state, config: None)
    numbers.trainer(tmp_path, max_steps=8, **options).train()
    monkeypatch.undo()
    state = numbers.trainer(tmp_path, max_steps=12, **options).train()
    assert state.recent == [4, 8, 12]


def test_the_progress_bar_continues_after_a_validation_within_an_epoch(numbers: Any, tmp_path: Path, monkeypatch):
    trainer, bars = numbers.trainer(tmp_path, max_epochs=2, validate_every=4), []  # 11 updates an epoch
    monkeypatch.setattr(trainer.events, "start_epoch", lambda epoch, updates, done: bars.append((epoch, done)))
    trainer.train()
    assert bars == [(1, 0), (1, 4), (1, 8), (2, 0), (2, 1), (2, 5), (2, 9)]


def killed_at(trainer: Any, step: int) -> None:
    """Train, and end as after `kill -9` in this step: nothing more is saved."""
    update = trainer.optimizer.update

    def dying(number: int, rate: float) -> None:
        if number == step:
            raise KeyError("killed")
        update(number, rate)

    trainer.optimizer.update = dying
    with pytest.raises(KeyError, match="killed"):
        trainer.train()


def test_a_long_epoch_saves_checkpoints_by_the_clock_and_a_killed_run_continues_exactly(
    numbers: Any, tmp_path: Path, monkeypatch
):
    """An epoch has 11 updates. A checkpoint is due whenever the last one is 30 minutes old."""
    options = {"max_epochs": 3, "ema_decay": 0.9, "average": "last", "average_checkpoints": 2}
    whole = numbers.trainer(tmp_path / "whole", **options)
    whole.train()
    assert whole.state.interrupted == []
    monkeypatch.setattr(agreement, "SAVE_SECONDS", 0.0)
    for step, saved in ((5, [3, 4]), (15, [11, 14])):
        killed = numbers.trainer(tmp_path / "killed", **options)
        killed_at(killed, step)
        assert killed.run.checkpoints.steps()[-2:] == saved
    resumed = numbers.trainer(tmp_path / "killed", **options)
    state = resumed.train()
    assert records(tmp_path / "killed", "resumed")[-1]["step"] == 14
    assert same(weights(whole), weights(resumed))
    assert resumed.run.checkpoints.steps() == whole.run.checkpoints.steps() == [22, 33]
    assert (state.best, state.recent, state.ranking) == (whole.state.best, whole.state.recent, whole.state.ranking)


def test_validations_may_come_more_often_in_a_run_that_goes_on(numbers: Any, tmp_path: Path):
    whole = numbers.trainer(tmp_path / "whole", max_epochs=2)
    whole.train()
    interrupted = numbers.trainer(tmp_path / "changed", max_epochs=2)
    interrupt_at(interrupted, 5, signal.SIGTERM)
    with pytest.raises(TmtError, match="interrupted at step 5;"):
        interrupted.train()
    changed = numbers.trainer(tmp_path / "changed", max_epochs=2, validate_every=4)
    changed.train()
    assert [record["step"] for record in records(tmp_path / "changed", "validation")] == [8, 12, 16, 20, 22]
    assert same(weights(whole), weights(changed))


def test_a_checkpoint_is_saved_once_in_each_interval_of_the_clock(numbers: Any, tmp_path: Path, monkeypatch):
    clock = itertools.count()  # a "second" for each look at it; an update has several
    monkeypatch.setattr(agreement.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(agreement, "SAVE_SECONDS", 60.0)
    trainer = numbers.trainer(tmp_path, max_epochs=None, max_steps=60, validate_every=1000)
    trainer.train()
    looks = next(clock)
    assert looks > 300
    assert looks // 80 <= len(trainer.state.interrupted) <= looks // 60


def test_checkpoint_every_replaces_the_clock(numbers: Any, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(agreement, "SAVE_SECONDS", 0.0)
    trainer = numbers.trainer(tmp_path, max_epochs=1, checkpoint_every=4)
    trainer.train()
    assert trainer.state.interrupted == []


def test_a_damaged_checkpoint_is_never_one_of_the_last(numbers: Any, tmp_path: Path):
    options = {"validate_every": 4, "average": "last", "average_checkpoints": 3}
    interrupted = numbers.trainer(tmp_path, max_steps=16, **options)
    interrupt_at(interrupted, 14, signal.SIGTERM)
    with pytest.raises(TmtError, match="interrupted at step 14;"):
        interrupted.train()
    (interrupted.run.checkpoints.path(14) / "model.safetensors").write_bytes(b"damaged")
    resumed = numbers.trainer(tmp_path, max_steps=16, **options)
    resumed.train()
    assert resumed.run.checkpoints.steps() == [8, 12, 16]


@pytest.mark.parametrize("validate_every", [None, 4])
def test_a_signal_during_a_validation_ends_it_at_once_and_it_follows(numbers: Any, tmp_path: Path, validate_every):
    """Validations may take longer than the patience of a scheduler."""
    options = {"max_epochs": 2, "validate_every": validate_every, "ema_decay": 0.9}
    whole = numbers.trainer(tmp_path / "whole", **options)
    whole.train()
    step, ended = validate_every or 11, []
    stopped = numbers.trainer(tmp_path / "stopped", **options)
    evaluate = stopped.validation.evaluate

    def interrupted(model: Any) -> ValidationResult:
        os.kill(os.getpid(), signal.SIGTERM)
        ended.append(evaluate(model))
        return ended[-1]

    stopped.validation.evaluate = interrupted
    with pytest.raises(TmtError, match=f"interrupted at step {step}; everything is saved"):
        stopped.train()
    assert not ended
    resumed, bars = numbers.trainer(tmp_path / "stopped", **options), []
    resumed.events.start_epoch = lambda epoch, updates, done: bars.append((epoch, done))
    state = resumed.train()
    assert same(weights(whole), weights(resumed))
    assert (state.best, state.interrupted, state.recent) == (whole.state.best, [], whole.state.recent)
    assert bars[0] == ((1, 4) if validate_every else (2, 0))
    assert len(bars) == len(set(bars))
    found = [
        [(r["step"], r["loss"], r["train_loss"]) for r in records(tmp_path / name, "validation")]
        for name in ("whole", "stopped")
    ]
    assert found[0] == found[1]


def test_a_signal_in_the_update_before_a_validation_puts_it_off(numbers: Any, tmp_path: Path):
    trainer = numbers.trainer(tmp_path, max_epochs=9)
    interrupt_at(trainer, 11, signal.SIGTERM)
    with pytest.raises(TmtError, match="interrupted at step 11;"):
        trainer.train()
    assert trainer.state.validated == 0
    assert not records(tmp_path, "validation")


def test_signal_handlers_are_restored(numbers: Any, tmp_path: Path):
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    numbers.trainer(tmp_path, max_steps=1).train()
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_a_second_ctrl_c_quits_immediately(numbers: Any, tmp_path: Path):
    trainer = numbers.trainer(tmp_path, max_steps=5)
    update = trainer.optimizer.update

    def twice(number: int, rate: float) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        update(number, rate)

    trainer.optimizer.update = twice
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert trainer.run.checkpoints.steps() == []


def test_a_damaged_checkpoint_is_reported_and_training_continues_from_the_one_before(
    numbers: Any, tmp_path: Path, capsys
):
    whole = numbers.trainer(tmp_path, max_steps=20, checkpoint_every=5, keep_last=1, keep_best=0)
    whole.settings = whole.settings.model_copy(update={"keep_last": 3})
    whole.train()
    newest = whole.run.checkpoints.path(20) / "model.safetensors"
    newest.write_bytes(newest.read_bytes()[:-9])
    resumed = numbers.trainer(tmp_path, max_steps=20, checkpoint_every=5, keep_last=1, keep_best=0)
    capsys.readouterr()
    resumed.train()
    err = capsys.readouterr().err
    assert f"{newest} is damaged (its checksum differs); using the checkpoint before it" in err
    assert "resumed at step 15" in err
    assert same(weights(whole), weights(resumed))
    assert resumed.run.checkpoints.undamaged() == ([20], [])


def test_a_run_with_only_damaged_checkpoints_is_not_overwritten(numbers: Any, tmp_path: Path):
    numbers.trainer(tmp_path, max_steps=10, checkpoint_every=5, keep_last=2).train()
    states = sorted(tmp_path.glob("checkpoints/*/state.json"))
    for state in states:
        state.write_text("{}")
    with pytest.raises(TmtError, match="every checkpoint of this run is damaged") as failure:
        numbers.trainer(tmp_path, max_steps=10).train()
    assert "--fresh" in failure.value.remedy
    assert sorted(tmp_path.glob("checkpoints/*/state.json")) == states


def test_running_out_of_memory_on_a_cpu_is_reported_without_a_traceback(numbers: Any, tmp_path: Path, monkeypatch):
    trainer = numbers.trainer(tmp_path, max_epochs=1)
    monkeypatch.setattr(trainer.gradients.step, "forward", lambda *batch: torch.empty(2**60))
    with pytest.raises(TmtError, match="out of memory") as failure:
        trainer.train()
    assert "training.batch_tokens" in failure.value.remedy


def test_a_finished_run_says_so_and_more_epochs_continue_it(numbers: Any, tmp_path: Path, capsys):
    whole = numbers.trainer(tmp_path / "whole", max_epochs=3)
    whole.train()
    numbers.trainer(tmp_path / "parts", max_epochs=2).train()
    capsys.readouterr()
    again = numbers.trainer(tmp_path / "parts", max_epochs=2)
    assert again.train().stopped == "max_epochs 2 reached"
    assert "training is already complete" in capsys.readouterr().err
    more = numbers.trainer(tmp_path / "parts", max_epochs=3)
    assert more.train().step == 33
    assert same(weights(whole), weights(more))
