"""Schedules against the formula of the paper, and against those of PyTorch."""

from __future__ import annotations

import math
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.config.choices import CHOICES, choice
from transformer_mt.config.training import TrainingConfig
from transformer_mt.training.schedules.base import length_notes, make_schedule, schedule_notes
from transformer_mt.training.schedules.constant import constant
from transformer_mt.training.schedules.cosine import cosine
from transformer_mt.training.schedules.inverse_sqrt import inverse_sqrt
from transformer_mt.training.schedules.noam import noam
from transformer_mt.training.schedules.plateau import plateau_after


@pytest.mark.parametrize(
    ("d_model", "warmup", "step", "rate"),
    [
        (512, 4000, 1, 1.7469e-7),  # calculated by hand from equation 3
        (512, 4000, 4000, 6.9877e-4),  # the peak of the paper's base model
        (512, 4000, 100_000, 1.3975e-4),
        (1024, 4000, 4000, 4.9411e-4),
        (512, 8000, 8000, 4.9411e-4),
    ],
)
def test_noam_gives_the_values_of_equation_3(d_model: int, warmup: int, step: int, rate: float):
    assert noam(step, d_model, warmup) == pytest.approx(rate, rel=1e-4)


def test_noam_peaks_where_warmup_ends():
    rates = [noam(step, 256, 50) for step in range(1, 200)]
    assert rates.index(max(rates)) + 1 == 50
    assert max(rates) == pytest.approx((256 * 50) ** -0.5)
    assert noam(7, 256, 50, factor=2.0) == pytest.approx(2 * noam(7, 256, 50))


@given(step=st.integers(1, 10_000), warmup=st.integers(1, 4000))
def test_inverse_sqrt_is_noam_with_a_configured_peak(step: int, warmup: int):
    assert inverse_sqrt(step, (64 * warmup) ** -0.5, warmup) == pytest.approx(noam(step, 64, warmup))


def test_cosine_is_pytorch_s_cosine_annealing():
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.5)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40, eta_min=0.01)
    for step in range(41):
        assert cosine(10 + step, 0.5, 0.01, 10, 50) == pytest.approx(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    assert cosine(5, 0.5, 0.01, 10, 50) == pytest.approx(0.25)
    assert cosine(1000, 0.5, 0.01, 10, 50) == pytest.approx(0.01)


def test_constant_warms_up_and_stays():
    assert [constant(step, 0.1, 4) for step in (1, 2, 4, 5, 1000)] == pytest.approx([0.025, 0.05, 0.1, 0.1, 0.1])
    assert constant(1, 0.1, 0) == 0.1


def test_a_key_says_which_schedules_read_it():
    """A schedule that lists a key in `keys` stands in the description of the key."""
    fields = TrainingConfig.model_fields
    readers: dict[str, list[str]] = {}
    for name in CHOICES["schedule"]:
        for key in choice("schedule", name).keys:
            readers.setdefault(key, []).append(name)
    named = {key: (fields[key].description or "").partition(":")[0] for key in readers}
    assert named == {key: ", ".join(names) for key, names in readers.items()}, "change config/training.py"


@given(
    losses=st.lists(st.floats(0.5, 2.0) | st.sampled_from([1.0, 0.99995, 0.9999]), min_size=1, max_size=60),
    patience=st.integers(0, 4),
)
def test_plateau_is_pytorch_s_reduce_on_plateau(losses: list[float], patience: int):
    config = TrainingConfig(
        max_epochs=1, schedule="plateau", warmup_steps=0, learning_rate=0.1, min_learning_rate=0.002,
        plateau_factor=0.5, plateau_patience=patience,
    )  # fmt: skip
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=patience, min_lr=0.002)
    plateau, stale, best = 1.0, 0, math.inf
    for loss in losses:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scheduler.step(loss)
        plateau, stale, best = plateau_after(plateau, stale, best, loss, config)
        assert make_schedule(config, 64, 100).rate(9, plateau) == pytest.approx(optimizer.param_groups[0]["lr"])


@pytest.mark.parametrize(
    ("settings", "rate"),
    [
        ({"schedule": "noam", "warmup_steps": 100, "noam_factor": 2.0}, 2 * noam(10, 64, 100)),
        ({"schedule": "inverse_sqrt", "warmup_steps": 100}, 1e-4),
        ({"schedule": "inverse_sqrt", "warmup_steps": 0, "learning_rate": 0.01}, 0.01 / math.sqrt(10)),
        ({"schedule": "cosine", "warmup_steps": 0, "decay_steps": 10, "learning_rate": 0.2}, 0.0),
        ({"schedule": "constant", "warmup_steps": 20, "learning_rate": 0.2}, 0.1),
    ],
)
def test_the_config_chooses_schedule_and_peak(settings: dict[str, object], rate: float):
    config = TrainingConfig.model_validate({"max_epochs": 1, **settings})
    assert make_schedule(config, 64, 100).rate(10) == pytest.approx(rate, abs=1e-12)


@pytest.mark.parametrize(
    ("limits", "last"),
    [
        ({"max_epochs": 3}, 300),
        ({"max_steps": 70}, 70),
        ({"max_epochs": 3, "max_steps": 70}, 70),
        ({"max_epochs": 3, "max_steps": 700}, 700),
        ({"max_epochs": 3, "decay_steps": 50}, 50),
    ],
)
def test_a_cosine_ends_with_training_unless_decay_steps_is_set(limits: dict[str, int], last: int):
    settings = {"schedule": "cosine", "warmup_steps": 0, "learning_rate": 0.2, "min_learning_rate": 0.05, **limits}
    schedule = make_schedule(TrainingConfig.model_validate(settings), 64, epoch_updates=100)
    assert schedule.rate(last) == pytest.approx(0.05)
    assert schedule.rate(last // 2) == pytest.approx(0.125)


def test_a_schedule_that_does_not_fit_the_training_is_noted():
    cosine, noam = (TrainingConfig(schedule=kind, warmup_steps=300, max_epochs=3) for kind in ("cosine", "noam"))
    for config in (cosine, noam):
        (note,) = schedule_notes(config, 100)
        assert "only rises: training ends with update 300, and training.warmup_steps is 300" in note
        (note,) = schedule_notes(config, 101)
        assert "rises for 300 of 303 updates (99 %)" in note
        assert note.endswith("--set training.warmup_steps=30")
        assert schedule_notes(config, 300) == []
        assert "rises for 300 of 897 updates" in schedule_notes(config, 299)[0]
    (note,) = schedule_notes(cosine.model_copy(update={"max_steps": 70}), 101)
    assert "ends with update 70," in note
    unknown = TrainingConfig(schedule="plateau", max_minutes=3)
    assert schedule_notes(unknown, 100) == [], "its last update is unknown"


def test_a_training_of_few_updates_is_noted_unless_it_begins_with_a_model():
    config = TrainingConfig(max_epochs=10)
    (note,) = length_notes(config, 49)
    assert note.startswith("490 updates in all")
    assert note.endswith("raise training.max_epochs or lower training.batch_tokens")
    assert length_notes(config, 50) == []
    assert length_notes(config.model_copy(update={"start_from": "runs/parent"}), 49) == []
    (note,) = length_notes(TrainingConfig(max_epochs=10, max_steps=20), 1_000)
    assert note.startswith("20 updates in all")
    assert note.endswith("raise training.max_steps")
    assert length_notes(TrainingConfig(max_minutes=3), 1) == [], "their number is unknown"


def test_a_schedule_that_does_not_come_to_its_end_is_noted():
    config = TrainingConfig(schedule="cosine", warmup_steps=10, max_epochs=5, max_steps=100_000)
    (note,) = schedule_notes(config, 400)
    assert note.startswith("training ends with update 2,000 and the schedule with update 100,000, so the learning rate")
    assert schedule_notes(config.model_copy(update={"max_epochs": 250}), 400) == []
    (note,) = schedule_notes(config.model_copy(update={"max_steps": None, "decay_steps": 2_001}), 400)
    assert "the schedule with update 2,001" in note


def test_updates_with_the_learning_rate_0_are_noted():
    config = TrainingConfig(schedule="cosine", warmup_steps=10, max_epochs=4, decay_steps=150)
    (note,) = schedule_notes(config, 100)
    assert note.startswith("the schedule ends with update 150, and the 250 updates after it have the learning rate 0")
    assert schedule_notes(config.model_copy(update={"min_learning_rate": 1e-5}), 100) == []
    (note,) = schedule_notes(config.model_copy(update={"max_epochs": None, "max_minutes": 5, "max_steps": None}), 100)
    assert "all updates after it" in note


def test_the_warmup_of_a_plateau_begins_below_the_least_learning_rate():
    settings = {"schedule": "plateau", "warmup_steps": 10, "learning_rate": 0.01, "min_learning_rate": 0.005}
    settings["max_epochs"] = 3
    schedule = make_schedule(TrainingConfig.model_validate(settings), 64, epoch_updates=100)
    assert [schedule.rate(step) for step in (1, 4, 10)] == pytest.approx([0.001, 0.004, 0.01])
    assert schedule.rate(11, reduction=0.1) == 0.005


@pytest.mark.parametrize(
    ("schedule", "key", "value"),
    [
        ("noam", "min_learning_rate", 0.1),
        ("noam", "decay_steps", 70),
        ("cosine", "noam_factor", 2.0),
        ("constant", "min_learning_rate", 1e-5),
        ("inverse_sqrt", "plateau_patience", 3),
    ],
)
def test_a_key_that_the_schedule_does_not_read_is_noted(schedule: str, key: str, value: float):
    config = TrainingConfig.model_validate({"schedule": schedule, "warmup_steps": 10, "max_epochs": 9, key: value})
    assert schedule_notes(config, 400) == [f"training.{key} has no effect with this training.schedule"]


def test_the_papers_schedule_reads_its_factor():
    config = TrainingConfig(schedule="noam", warmup_steps=10, max_epochs=9, noam_factor=2.0)
    assert schedule_notes(config, 400) == []


@pytest.mark.parametrize("key", ["min_learning_rate", "plateau_factor", "plateau_patience"])
def test_a_key_that_the_schedule_reads_is_not_noted(key: str):
    values = {"min_learning_rate": 1e-5, "plateau_factor": 0.5, "plateau_patience": 3}
    config = TrainingConfig.model_validate(
        {"schedule": "plateau", "warmup_steps": 10, "max_epochs": 9, key: values[key]}
    )
    assert schedule_notes(config, 400) == []


def test_a_limit_of_time_does_not_shorten_a_schedule_without_a_note():
    config = TrainingConfig(schedule="cosine", warmup_steps=10, max_epochs=30, max_minutes=5)
    (note,) = schedule_notes(config, 100)
    assert "if training.max_minutes 5 ends the training before training.max_epochs" in note
    open_ended = config.model_copy(update={"schedule": "inverse_sqrt"})
    assert schedule_notes(open_ended, 100) == []
