"""The base class of the schedules. Imports nothing heavy, because checking a config imports the schedules."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from transformer_mt.config.choices import CHOICES, choice, chosen
from transformer_mt.errors import number_of

if TYPE_CHECKING:
    from transformer_mt.config.section import Section
    from transformer_mt.config.training import TrainingConfig

DEFAULT_PEAK = 1e-3
FEW_UPDATES = 500  # of a whole training; docs/log.md
LONG_WARMUP = 1 / 3  # of all updates; up to about that, no loss of BLEU was measured (docs/log.md)


class Schedule(ABC):
    """The learning rate as a pure function of the step, counted from 1.

    Options:          the schedule's own keys, if it has any: `schedule: {kind: NAME, ...}`
    keys:             of `training`, that it reads and not all schedules read
    reads_validation: whether the rate depends on the validations, so that a run has to go on with the same ones
    """

    Options: ClassVar[type[Section] | None] = None
    keys: ClassVar[tuple[str, ...]] = ()
    reads_validation: ClassVar[bool] = False

    def __init__(self, training: TrainingConfig, d_model: int, epoch_updates: int, options: Any = None) -> None:
        """epoch_updates: optimizer steps in an epoch."""
        self.training, self.d_model, self.epoch_updates, self.options = training, d_model, epoch_updates, options
        self.peak, self.warmup = training.learning_rate or DEFAULT_PEAK, training.warmup_steps

    @classmethod
    def problems(cls, training: TrainingConfig) -> list[str]:
        """The contradictions in these settings, one sentence each, with the names of the keys."""
        peak = training.learning_rate or DEFAULT_PEAK
        if "min_learning_rate" in cls.keys and training.min_learning_rate > peak:
            return [f"min_learning_rate is above the peak, a learning_rate of {peak:g}"]
        return []

    @classmethod
    def ends_with(cls, training: TrainingConfig) -> str:
        """The key of the limit that ends training and schedule together; "" if the schedule does not depend on it."""
        return ""

    @classmethod
    def last_step(cls, training: TrainingConfig, epoch_updates: int) -> int | None:
        """The update with which the schedule comes to its end; None if it has none."""
        return None

    @abstractmethod
    def rate(self, step: int, reduction: float = 1.0) -> float:
        """The learning rate of a step. reduction: product of all reductions after the loss stopped falling."""


def make_schedule(training: TrainingConfig, d_model: int, epoch_updates: int) -> Schedule:
    """The schedule that a config's `training.schedule` names."""
    cls, options = chosen("schedule", training.schedule)
    schedule: Schedule = cls(training, d_model, epoch_updates, options)
    return schedule


def ends_with(training: TrainingConfig) -> str:
    """See `Schedule.ends_with`."""
    cls, _ = chosen("schedule", training.schedule)
    return str(cls.ends_with(training))


def keys_without_effect(training: TrainingConfig) -> list[str]:
    """The keys of other schedules, which the schedule of this config does not read."""
    cls, _ = chosen("schedule", training.schedule)
    keys = dict.fromkeys(key for name in CHOICES["schedule"] for key in choice("schedule", name).keys)
    return [key for key in keys if key not in cls.keys]


def length_notes(training: TrainingConfig, epoch_updates: int) -> list[str]:
    """What a user should know about a training that is too short, unless it begins with a trained model."""
    last = _last_update(training, epoch_updates)
    if last >= FEW_UPDATES or training.start_from is not None:
        return []
    remedy = "training.max_epochs or lower training.batch_tokens"
    if last == training.max_steps:
        remedy = "training.max_steps"
    return [f"{number_of(int(last), 'update')} in all; random weights need over 1,000: raise {remedy}"]


def _last_update(training: TrainingConfig, epoch_updates: int) -> float:
    """The number of updates until the limits of the config; infinite if there is only a limit of time, or none."""
    return min(training.max_steps or math.inf, (training.max_epochs or math.inf) * epoch_updates)


def schedule_notes(training: TrainingConfig, epoch_updates: int) -> list[str]:
    """What a user should know about a schedule that does not fit the length of the training."""
    notes, warmup = [], training.warmup_steps
    last = _last_update(training, epoch_updates)
    if last <= warmup:
        notes.append(
            f"the learning rate only rises: training ends with update {int(last):,}, and training.warmup_steps is"
            f" {warmup:,}; lower it"
        )
    elif warmup > LONG_WARMUP * last:
        notes.append(
            f"the learning rate rises for {warmup:,} of {int(last):,} updates ({100 * warmup / last:.0f} %);"
            f" a tenth is usual:  --set training.warmup_steps={max(1, int(last) // 10)}"
        )
    cls, _ = chosen("schedule", training.schedule)
    for key in keys_without_effect(training):
        if getattr(training, key) != type(training).model_fields[key].default:
            notes.append(f"training.{key} has no effect with this training.schedule")
    end_of_schedule = cls.last_step(training, epoch_updates)
    if end_of_schedule is not None and last < end_of_schedule:
        notes.append(
            f"training ends with update {int(last):,} and the schedule with update {end_of_schedule:,}, so the learning"
            " rate does not come to its end, which costs BLEU; let both end together"
        )
    if end_of_schedule is not None and end_of_schedule < last and not training.min_learning_rate:
        more = "all updates" if last == math.inf else f"the {int(last) - end_of_schedule:,} updates"
        notes.append(
            f"the schedule ends with update {end_of_schedule:,}, and {more} after it have the learning rate 0, so they"
            " change nothing; let both end together, or set training.min_learning_rate"
        )
    if training.max_minutes is not None and (end := cls.ends_with(training)):
        notes.append(
            f"if training.max_minutes {training.max_minutes:g} ends the training before training.{end}, the learning"
            f" rate has not come to its end, which costs BLEU; choose training.{end} to fit the time"
        )
    return notes
