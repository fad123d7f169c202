"""The training state: progress, when training ends, which checkpoints become the model."""

from __future__ import annotations

import math

import pytest

from transformer_mt.config.training import TrainingConfig
from transformer_mt.data.planning import Cursor
from transformer_mt.training.ending import (
    Candidate,
    best_of,
    candidates,
    how_to_continue,
    progress,
    reason,
    reason_to_stop,
    seconds_left,
    time_is_up,
    worse_than_guessing,
)
from transformer_mt.training.running_loss import Totals
from transformer_mt.training.state import TrainState


def settings(**values: object) -> TrainingConfig:
    return TrainingConfig.model_validate({"max_epochs": 100, **values})


def test_updates_add_up_to_epochs():
    state = TrainState()
    places = [Cursor(1 + number // 3, 0, number % 3) for number in range(1, 10)]  # epochs of three updates
    for following in places[:7]:
        state.advance(following, 0.5)
    assert (state.step, state.epoch, state.update, state.latest_epoch) == (7, 3, 1, 3)
    assert state.cursor == Cursor(3, 0, 1)
    for following in places[7:]:
        state.advance(following, 0.5)
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
    state.add(1, Totals(30.0, 40.0, 10, 0.5))
    state.add(1, Totals(30.0, 40.0, 30, 0.5))
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


def test_the_time_is_up_at_any_step():
    assert time_is_up(TrainState(step=9, validated=8, seconds=31.0), settings(max_minutes=0.5))
    assert not time_is_up(TrainState(step=9, seconds=29.0), settings(max_minutes=0.5))
    assert not time_is_up(TrainState(step=9, seconds=29.0), settings())


def test_seconds_left_are_those_to_the_nearest_limit():
    state = TrainState(step=10, epoch=2, update=2, seconds=20.0)  # 2 seconds per update, 8 updates per epoch
    assert seconds_left(state, settings(max_epochs=3), 8) == pytest.approx(2 * 14)
    state.seconds += 28  # to compile in the first step
    assert seconds_left(state, settings(max_epochs=3), 8, first=30.0) == pytest.approx(2 * 14)
    state.seconds -= 28
    assert seconds_left(state, settings(max_epochs=3, max_steps=15), 8) == pytest.approx(2 * 5)
    assert seconds_left(state, settings(max_minutes=0.4), 8) == pytest.approx(4)
    assert seconds_left(state, settings(max_steps=1), 8) == 0.0


@pytest.mark.parametrize(
    ("values", "stopped", "said"),
    [
        ({"max_epochs": 4}, "max_epochs 4 reached", "to train on, repeat the command with --set training.max_epochs=8"),
        (
            {"max_epochs": None, "max_steps": 40, "schedule": "cosine"},
            "max_steps 40 reached",
            "for a longer run, start again with --fresh --set training.max_steps=80",
        ),
        (
            {"max_epochs": 4, "schedule": "cosine", "warmup_steps": 10, "decay_steps": 30},
            "max_epochs 4 reached",
            "for a longer run, start again with --fresh --set training.max_epochs=8 --set training.decay_steps=60",
        ),
        (
            {"max_epochs": None, "max_steps": 90, "max_minutes": 2.0, "schedule": "cosine"},
            "max_minutes 2 reached",
            "the learning rate has not come to its end; start again with --fresh --set training.max_steps=40",
        ),
    ],
)
def test_how_to_continue_depends_on_the_schedule(values: dict, stopped: str, said: str):
    state = TrainState(step=40, epoch=5, stopped=stopped)
    assert how_to_continue(state, settings(**values), [21]) == said


def test_a_model_that_is_worse_than_guessing_does_not_need_more_epochs():
    monitored, diverged = settings(max_epochs=2, warmup_steps=1000), TrainState(best=6.155, step=1001)
    said = worse_than_guessing(diverged, monitored, 400)
    assert said.startswith("worse than guessing, whose loss is ln 400 = 5.991: ")
    assert worse_than_guessing(TrainState(best=5.9, step=1001), monitored, 400) == ""
    assert worse_than_guessing(TrainState(best=6.155, step=1000), monitored, 400) == "", "it still warms up"
    assert worse_than_guessing(TrainState(best=6.155, step=20), settings(warmup_steps=9), 400) == "", (
        "it has just begun"
    )
    assert worse_than_guessing(TrainState(step=1001), monitored, 400) == "", "without a validation"
    assert worse_than_guessing(diverged, settings(max_epochs=2, monitor="bleu"), 400) == ""


@pytest.mark.parametrize("schedule", ["cosine", "noam"])
def test_a_longer_run_is_not_advised_if_the_first_half_was_best(schedule: str) -> None:
    state = TrainState(step=40, epoch=5, stopped="max_steps 40 reached")
    values = {"max_epochs": None, "max_steps": 40, "schedule": schedule}
    assert how_to_continue(state, settings(**values), [8, 20]).startswith("nothing was gained after step 20: ")


def test_after_a_step_that_compiled_nobody_knows_yet_how_long_the_others_take():
    recent, state = Totals(nll=3.0, smoothed=3.0, tokens=2, seconds=30.0), TrainState(step=1, seconds=30.0)
    assert progress(recent, state, settings(max_steps=5), 8, 30.0) == "loss 1.500"
    after = TrainState(step=2, seconds=31.0)
    assert progress(recent, state, settings(max_steps=5), 8, 0.0) == "loss 1.500  0 tokens/s  left 2:00"
    assert progress(recent, after, settings(max_steps=5), 8, 30.0) == "loss 1.500  0 tokens/s  left 0:03"


def test_another_number_of_processes_continues_at_the_same_batch():
    state = TrainState(update=7, world=1, plan_batch=7)
    state.rescale_world(2)
    assert (state.update, state.world) == (3, 2)  # rounded down, for the progress bar
    state.rescale_world(3)
    assert (state.update, state.cursor) == (2, Cursor(1, 0, 7))


def steps_by_name(state: TrainState, saved: list[int], **values: object) -> dict[str, list[int]]:
    return {" and ".join(one.names): one.steps for one in candidates(state, settings(**values), saved)}


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        ({"average": "none"}, {}),
        ({"average": "last", "average_checkpoints": 2}, {"mean": [40, 50]}),
        ({"average": "last", "average_checkpoints": 9}, {"mean": [20, 30, 40, 50]}),
        ({"average": "best", "average_checkpoints": 2}, {"mean": [20, 30]}),
        ({"average": "best", "average_checkpoints": 1}, {}),  # the mean of one is the best, which is there already
    ],
)
def test_the_candidates_are_the_last_the_best_and_the_configured_mean(values: dict, mean: dict):
    state = TrainState(
        step=50, ranking=[(0.5, 10), (1.0, 30), (1.5, 20), (2.0, 40)]
    )  # the checkpoint of step 10 was removed
    assert steps_by_name(state, [20, 30, 40, 50], **values) == {"last": [50], "best": [30], **mean}


def test_equal_candidates_count_once():
    state = TrainState(step=50, ranking=[(0.5, 50)])
    assert steps_by_name(state, [40, 50]) == {"last and best": [50]}
    assert steps_by_name(state, [50], average="last") == {"last and best": [50]}
    assert str(candidates(state, settings(), [50])[0]) == "last and best: step 50"


def test_a_checkpoint_of_an_interruption_is_not_averaged():
    state = TrainState(step=50, interrupted=[45])  # not removed yet
    found = steps_by_name(state, [30, 40, 45, 50], average="last", average_checkpoints=3)
    assert found == {"last": [50], "mean": [30, 40, 50]}
    stopped = TrainState(step=5, interrupted=[5])  # there by a lower max_steps
    assert steps_by_name(stopped, [5]) == {"last": [5]}


def test_an_old_best_checkpoint_is_not_one_of_the_last():
    state = TrainState(step=2000, ranking=[(1.0, 500)], recent=[1900, 2000])  # the settings did not average before
    found = steps_by_name(state, [500, 1900, 2000], average="last")
    assert found == {"last": [2000], "best": [500], "mean": [1900, 2000]}


def measured(*figures: tuple[float, float | None]) -> list[Candidate]:
    """Candidates with these losses and BLEU scores; their steps are 1, 2, ..."""
    return [Candidate(["last"], [step], loss, bleu) for step, (loss, bleu) in enumerate(figures, start=1)]


@pytest.mark.parametrize(
    ("figures", "step", "why"),
    [
        ([(2.0, 30.0), (1.9, 31.0), (1.8, 29.0)], 2, "highest validation BLEU"),
        ([(2.0, 30.0), (1.9, 30.0)], 2, "equal validation BLEU, lower loss"),
        ([(2.0, 30.0), (2.0, 30.0)], 1, "no other is better"),
        ([(2.0, None), (1.9, None)], 2, "lowest validation loss"),
        ([(2.0, None), (2.0, None)], 1, "no other is better"),
    ],
)
def test_the_best_candidate_and_why(figures: list, step: int, why: str):
    assert best_of(measured(*figures)).steps == [step]
    assert reason(measured(*figures)) == why


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
    assert steps_by_name(TrainState(step=50), [40, 50], keep_best=0) == {"last": [50]}


def test_state_survives_json():
    state = TrainState(step=3, epoch=2, best=math.inf, ranking=[(1.0, 3)], stopped="max_epochs 1 reached")
    assert TrainState.from_json(state.to_json()) == state


def test_a_window_of_losses_survives_json_and_older_states_have_none():
    state = TrainState(step=3)
    state.add(2, Totals(nll=6.0, smoothed=7.0, tokens=4, seconds=0.5))
    state.add(1, Totals(nll=1.0, smoothed=1.0, tokens=1, seconds=0.5))
    again = TrainState.from_json(state.to_json())
    assert (again.window_updates, again.window_nll, again.window_tokens) == (3, 7.0, 5)
    old = {key: value for key, value in state.to_json().items() if not key.startswith("window_")}
    assert TrainState.from_json(old).window_updates == 0
    again.clear_window()
    assert (again.window_updates, again.window_tokens, again.window_seconds) == (0, 0, 0.0)


def test_a_parent_is_in_no_mean_of_an_interrupted_run() -> None:
    state = TrainState()
    state.start_from_parent()
    assert state.regular([0]) == [0]
    state.interrupted.append(3)
    assert state.regular([3, 0]) == [3]
    assert state.regular([8, 3, 0]) == [8]
