"""The training state: progress, when training ends, which checkpoints become the model."""

from __future__ import annotations

import math

import pytest

from transformer_mt.config.training import TrainingConfig
from transformer_mt.training.ending import final_steps, reason_to_stop, seconds_left
from transformer_mt.training.state import TrainState


def settings(**values: object) -> TrainingConfig:
    return TrainingConfig.model_validate({"max_epochs": 100, **values})


def test_updates_add_up_to_epochs():
    state = TrainState()
    for _ in range(7):
        state.advance(3, 0.5)
    assert (state.step, state.epoch, state.update, state.latest_epoch) == (7, 3, 1, 3)
    state.advance(3, 0.5)
    state.advance(3, 0.5)
    assert (state.epoch, state.update, state.latest_epoch) == (4, 0, 3)
    assert state.seconds == state.recent_seconds == 4.5


def test_the_best_value_and_validations_without_improvement_are_recorded():
    state, config = TrainState(), settings(keep_best=2)
    marks = []
    for step, loss in enumerate([3.0, 2.0, 2.5, 2.0, 1.0], start=1):
        state.step = step
        marks.append(state.record_validation(loss, None, config))
    assert marks == [True, True, False, False, True]
    assert (state.best, state.stale, state.validated) == (1.0, 0, 5)
    assert state.ranking == [(1.0, 5), (2.0, 2)]  # of equal ones the earlier


def test_higher_bleu_is_better():
    state, config = TrainState(), settings(monitor="bleu", keep_best=1)
    for step, (loss, bleu) in enumerate([(3.0, 10.0), (2.0, 30.0), (1.0, 20.0)], start=1):
        state.step = step
        state.record_validation(loss, bleu, config)
    assert state.ranking == [(-30.0, 2)]
    assert state.stale == 1


def test_recent_loss_covers_the_updates_since_the_last_validation():
    state = TrainState()
    assert state.recent_loss is None
    state.add_tokens(10, 30.0)
    state.add_tokens(30, 30.0)
    assert state.recent_loss == 1.5
    state.record_validation(1.0, None, settings())
    assert state.recent_loss is None
    assert state.tokens == 40


@pytest.mark.parametrize(
    ("values", "state", "reason"),
    [
        ({}, TrainState(step=5, epoch=100), ""),
        ({}, TrainState(step=5, epoch=101), "max_epochs 100 reached"),
        ({"max_steps": 2000}, TrainState(step=2000), "max_steps 2,000 reached"),
        ({"max_steps": 2000}, TrainState(step=1999), ""),
        ({"patience": 2}, TrainState(step=9, validated=9, stale=2), "patience 2 exhausted"),
        ({"patience": 2}, TrainState(step=9, validated=9, stale=1), ""),
        ({"patience": 2}, TrainState(step=10, validated=9, stale=2), ""),
        ({"max_minutes": 0.5}, TrainState(step=9, validated=9, seconds=30.0), "max_minutes 0.5 reached"),
        ({"max_minutes": 0.5}, TrainState(step=9, validated=8, seconds=31.0), ""),
        ({"max_minutes": 0.5, "patience": 1}, TrainState(), ""),
    ],
)
def test_reasons_to_stop(values: dict, state: TrainState, reason: str):
    stopped = reason_to_stop(state, settings(**values))
    assert stopped.startswith(reason) if reason else not stopped


def test_seconds_left_are_those_to_the_nearest_limit():
    state = TrainState(step=10, epoch=2, update=2, seconds=20.0)  # 2 seconds per update, 8 updates per epoch
    assert seconds_left(state, settings(max_epochs=3), 8) == pytest.approx(2 * 14)
    assert seconds_left(state, settings(max_epochs=3, max_steps=15), 8) == pytest.approx(2 * 5)
    assert seconds_left(state, settings(max_minutes=0.4), 8) == pytest.approx(4)
    assert seconds_left(state, settings(max_steps=1), 8) == 0.0


def test_another_number_of_processes_continues_at_the_same_position_or_before_it():
    state = TrainState(update=7, world=1)
    state.rescale_world(2)
    assert (state.update, state.world) == (3, 2)  # six batches are done; the seventh is repeated
    state.rescale_world(3)
    assert state.update == 2


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ({"average": "none"}, [30]),
        ({"average": "last", "average_checkpoints": 2}, [40, 50]),
        ({"average": "last", "average_checkpoints": 9}, [20, 30, 40, 50]),
        ({"average": "best", "average_checkpoints": 2}, [30, 20]),
    ],
)
def test_which_checkpoints_become_the_model(values: dict, steps: list[int]):
    state = TrainState(
        step=50, ranking=[(0.5, 10), (1.0, 30), (1.5, 20), (2.0, 40)]
    )  # the checkpoint of step 10 was removed
    assert final_steps(state, settings(**values), [20, 30, 40, 50]) == steps


def test_a_checkpoint_of_an_interruption_is_not_averaged():
    state = TrainState(step=50, interrupted=[45])  # not removed yet
    assert final_steps(state, settings(average="last", average_checkpoints=3), [30, 40, 45, 50]) == [30, 40, 50]
    assert final_steps(TrainState(step=5, interrupted=[5]), settings(), [5]) == [
        5
    ]  # stopped there by a lower max_steps


def test_an_old_best_checkpoint_is_not_one_of_the_last():
    state = TrainState(step=2000, ranking=[(1.0, 500)], recent=[1900, 2000])  # the settings did not average before
    assert final_steps(state, settings(average="last"), [500, 1900, 2000]) == [1900, 2000]


def test_the_last_checkpoints_are_the_recorded_ones():
    state, steps = TrainState(interrupted=[20]), []
    for state.step in (10, 20, 30, 30, 40):
        state.record_checkpoint(settings(keep_last=2))
        steps.append(state.latest([10, 20, 30, 40]))
    assert steps == [[10], [10], [10, 30], [10, 30], [30, 40]]
    state.step = 50
    state.record_checkpoint(settings(keep_last=3))
    assert state.latest([30, 40, 50]) == [30, 40, 50]


def test_without_a_ranking_the_newest_becomes_the_model():
    assert final_steps(TrainState(step=50), settings(keep_best=0), [40, 50]) == [50]


def test_state_survives_json():
    state = TrainState(step=3, epoch=2, best=math.inf, ranking=[(1.0, 3)], stopped="max_epochs 1 reached")
    assert TrainState.from_json(state.to_json()) == state
