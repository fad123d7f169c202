"""Linear warmup, then half a cosine down to a minimum (Loshchilov & Hutter 2017, arXiv:1608.03983; no restarts)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from transformer_mt.training.schedules.base import Schedule

if TYPE_CHECKING:
    from transformer_mt.config.training import TrainingConfig


class Cosine(Schedule):
    """Ends at `decay_steps`; without that key at `max_steps`, else with `max_epochs`."""

    keys = ("min_learning_rate", "decay_steps")

    @classmethod
    def problems(cls, training: TrainingConfig) -> list[str]:
        problems = super().problems(training)
        if training.decay_steps is training.max_steps is training.max_epochs is None:
            problems.append("the cosine schedule needs decay_steps, max_steps or max_epochs")
        if training.decay_steps is not None and training.decay_steps <= training.warmup_steps:
            problems.append(f"decay_steps must be above warmup_steps, which is {training.warmup_steps:,}")
        return problems

    @classmethod
    def ends_with(cls, training: TrainingConfig) -> str:
        if training.decay_steps is not None:
            return ""
        return "max_steps" if training.max_steps is not None else "max_epochs"

    @classmethod
    def last_step(cls, training: TrainingConfig, epoch_updates: int) -> int:
        return training.decay_steps or training.max_steps or (training.max_epochs or 0) * epoch_updates

    def rate(self, step: int, reduction: float = 1.0) -> float:
        end = self.last_step(self.training, self.epoch_updates)
        return cosine(step, self.peak, self.training.min_learning_rate, self.warmup, end)


def cosine(step: int, peak: float, minimum: float, warmup_steps: int, decay_steps: int) -> float:
    """Linear to the peak, half a cosine down to the minimum at `decay_steps`, constant after that."""
    if step < warmup_steps:
        return peak * step / warmup_steps
    progress = min(1.0, (step - warmup_steps) / max(1, decay_steps - warmup_steps))
    return minimum + (peak - minimum) * 0.5 * (1 + math.cos(math.pi * progress))
