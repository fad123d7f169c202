"""What a schedule says about itself. Imports nothing heavy: a config asks it what contradicts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from transformer_mt.config.choices import chosen

if TYPE_CHECKING:
    from transformer_mt.config.section import Section
    from transformer_mt.config.training import TrainingConfig

DEFAULT_PEAK = 1e-3


class Schedule(ABC):
    """The learning rate as a pure function of the step, counted from 1.

    Options: keys of its own, if it has any: `schedule: {kind: NAME, ...}`
    """

    Options: ClassVar[type[Section] | None] = None

    def __init__(self, training: TrainingConfig, d_model: int, epoch_updates: int, options: Any = None) -> None:
        """epoch_updates: optimizer steps in an epoch."""
        self.training, self.d_model, self.epoch_updates, self.options = training, d_model, epoch_updates, options
        self.peak, self.warmup = peak_of(training), training.warmup_steps

    @classmethod
    def problems(cls, training: TrainingConfig) -> list[str]:
        """What contradicts in these settings, a sentence each that names the keys."""
        return []

    @classmethod
    def ends_with(cls, training: TrainingConfig) -> str:
        """The key that ends the training and this schedule with it; empty if the schedule has no end, or its own."""
        return ""

    @abstractmethod
    def rate(self, step: int, reduction: float = 1.0) -> float:
        """The learning rate of a step. reduction: the product of all reductions for a loss that stopped falling."""


def make_schedule(training: TrainingConfig, d_model: int, epoch_updates: int) -> Schedule:
    """The schedule that a config's `training.schedule` names."""
    cls, options = chosen("schedule", training.schedule)
    schedule: Schedule = cls(training, d_model, epoch_updates, options)
    return schedule


def ends_with(training: TrainingConfig) -> str:
    """See `Schedule.ends_with`."""
    cls, _ = chosen("schedule", training.schedule)
    return str(cls.ends_with(training))


def peak_of(training: TrainingConfig) -> float:
    return training.learning_rate or DEFAULT_PEAK


def minimum_problems(training: TrainingConfig) -> list[str]:
    """For schedules that fall to `min_learning_rate`."""
    if training.min_learning_rate > peak_of(training):
        return [f"min_learning_rate is above the peak, a learning_rate of {peak_of(training):g}"]
    return []


def only_rises(training: TrainingConfig, epoch_updates: int) -> int:
    """The last update of a training that ends within its warmup; else 0."""
    last = min(training.max_steps or math.inf, (training.max_epochs or math.inf) * epoch_updates)
    return int(last) if last <= training.warmup_steps else 0
