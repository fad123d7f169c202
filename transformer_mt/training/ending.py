"""When training ends, and which checkpoints become the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from transformer_mt.config.choices import chosen
from transformer_mt.config.training import TrainingConfig
from transformer_mt.errors import number_of
from transformer_mt.reporting.table import duration
from transformer_mt.training.running_loss import Totals
from transformer_mt.training.schedules.base import FEW_UPDATES, ends_with
from transformer_mt.training.state import TrainState

PARENT = "parent"  # a candidate: the model that training started from


def reason_to_stop(state: TrainState, config: TrainingConfig) -> str:
    """Why training ends, or "" if it continues. The reason starts with the config key of the limit."""
    if config.max_steps is not None and state.step >= config.max_steps:
        return f"max_steps {config.max_steps:,} reached"
    if config.max_epochs is not None and state.epoch > config.max_epochs:
        return f"max_epochs {config.max_epochs} reached"
    if state.validated != state.step or not state.step:
        return ""  # the limits below end training only right after a validation
    if config.patience is not None and state.stale >= config.patience:
        return f"patience {config.patience} exhausted: no improvement in {number_of(state.stale, 'validation')}"
    if time_is_up(state, config):
        return f"max_minutes {config.max_minutes:g} reached"
    return ""


def seconds_left(state: TrainState, config: TrainingConfig, updates: int, first: float = 0.0) -> float:
    """Seconds to the nearest limit at the mean speed so far.

    updates: optimizer steps in an epoch; first: seconds of a first step that compiled, or 0
    """
    pace, left = (state.seconds - first) / max(1, state.step - (first > 0)), []
    if config.max_steps is not None:
        left.append((config.max_steps - state.step) * pace)
    if config.max_epochs is not None:
        left.append(((config.max_epochs - state.epoch + 1) * updates - state.update) * pace)
    if config.max_minutes is not None:
        left.append(60 * config.max_minutes - state.seconds)
    return max(0.0, min(left))


def progress(recent: Totals, state: TrainState, config: TrainingConfig, updates: int, first: float) -> str:
    """The loss and the speed of recent updates, and the time left.

    first: seconds of a first step that compiled, after which nobody knows yet how long the others take; or 0
    """
    loss = f"loss {recent.nll / max(1, recent.tokens):.3f}"
    if first and state.step < 2:
        return loss
    left = duration(seconds_left(state, config, updates, first))
    return f"{loss}  {recent.tokens_per_second:,.0f} tokens/s  left {left}"


def time_is_up(state: TrainState, config: TrainingConfig) -> bool:
    """Whether `max_minutes` has passed: training then validates, and ends."""
    return config.max_minutes is not None and state.seconds >= 60 * config.max_minutes


@dataclass(frozen=True)
class Candidate:
    """Checkpoints that may become the model: one, or several for their mean.

    names: what these steps are: last, best, mean, parent
    loss, bleu: on the validation split; None if not measured
    """

    names: list[str]
    steps: list[int]
    loss: float | None = None
    bleu: float | None = None

    def __str__(self) -> str:
        """Such as `last and best: step 1,057` or `mean of 5`."""
        if len(self.steps) > 1:
            return f"{' and '.join(self.names)} of {len(self.steps)}"
        return f"{' and '.join(self.names)}: step {self.steps[0]:,}"


def candidates(state: TrainState, config: TrainingConfig, saved: Sequence[int]) -> list[Candidate]:
    """The last checkpoint, the best, the mean that the config configures, and the parent; equal ones once.

    saved: their steps; the checkpoint of step 0 is the model that training started from, if there is one
    """
    latest, best = state.latest(saved), [step for _, step in state.ranking if step in state.regular(saved)]
    averaged = {"none": [], "last": latest[-config.average_checkpoints :], "best": best[: config.average_checkpoints]}
    found: dict[tuple[int, ...], list[str]] = {}
    parent = [0] if 0 in saved else []
    kinds = ("last", latest[-1:]), ("best", best[:1]), ("mean", averaged[config.average]), (PARENT, parent)
    for name, steps in kinds:
        if steps:
            found.setdefault(tuple(sorted(steps)), []).append(name)
    # the mean of a single checkpoint is that checkpoint
    return [Candidate([one for one in names if one != "mean"] or names, list(steps)) for steps, names in found.items()]


def best_of(measured: Sequence[Candidate]) -> Candidate:
    """The candidate with the highest BLEU; if that is equal or not measured, the one with the lowest loss.

    If that is equal too, the first: the last checkpoint, which has seen the most data.
    """
    return min(measured, key=lambda one: (-one.bleu if one.bleu is not None else 0.0, one.loss or 0.0))


def reason(measured: Sequence[Candidate]) -> str:
    """Why `best_of` takes the one it takes, in a few words; of at least two."""
    best = best_of(measured)
    others = [one for one in measured if one is not best]
    equal = [one for one in others if one.bleu == best.bleu]
    if not equal:
        return "highest validation BLEU"
    if any(one.loss == best.loss for one in equal):
        return "no other is better"
    return "lowest validation loss" if best.bleu is None else "equal validation BLEU, lower loss"


def how_to_continue(state: TrainState, settings: TrainingConfig, steps: Sequence[int]) -> str:
    """What to do for a longer training, when this one has reached a limit. steps: of the checkpoints of its model"""
    limit, end = state.stopped.split(" ")[0], ends_with(settings)
    reached = {"max_steps": state.step, "max_epochs": state.latest_epoch}
    limits = [limit, *(key for key, done in reached.items() if done >= (getattr(settings, key) or math.inf))]
    decays = "decay_steps" in chosen("schedule", settings.schedule)[0].keys and settings.decay_steps
    if decays and state.step >= decays:
        end = limit
        limits.append("decay_steps")
    longer = {key: 2 * max(getattr(settings, key), reached.get(key, 0)) for key in limits}
    more = " ".join(f"--set training.{key}={value}" for key, value in longer.items())
    if limit == "max_minutes" and limit != end and end:
        shorter = f"--set training.{end}={reached[end]}"
        return f"the learning rate has not come to its end; start again with --fresh {shorter}"
    if max(steps) <= state.step / 2:
        return f"nothing was gained after step {max(steps):,}: more pairs or more dropout may help, more updates hardly"
    if limit == end:  # its learning rate has come to its end
        return f"for a longer run, start again with --fresh {more}"
    return f"to train on, repeat the command with {more}"


def worse_than_guessing(state: TrainState, settings: TrainingConfig, tokens: int) -> str:
    """What to do if no validation was better than giving each of the target's tokens the same probability.

    Empty for a training that has just begun: random weights are worse than that, too.
    """
    guessing, is_young = math.log(tokens), state.step <= max(settings.warmup_steps, FEW_UPDATES)
    if settings.monitor != "loss" or is_young or not guessing < state.best < math.inf:
        return ""
    guess = f"ln {tokens:,} = {guessing:.3f}"
    return f"worse than guessing, whose loss is {guess}: lower training.learning_rate, or warm up longer"
