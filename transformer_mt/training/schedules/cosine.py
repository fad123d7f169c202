"""Linear warmup, then half a cosine down to a minimum (Loshchilov & Hutter 2017, arXiv:1608.03983; no restarts)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from transformer_mt.training.schedules.base import Schedule, minimum_problems

if TYPE_CHECKING:
    from transformer_mt.config.training import TrainingConfig


class Cosine(Schedule):
    """Ends at `decay_steps`; without that key, with `max_steps`, else with `max_epochs`."""

    def __init__(self, training: TrainingConfig, d_model: int, epoch_updates: int, options: Any = None) -> None:
        super().__init__(training, d_model, epoch_updates, options)
        self.decay_steps = training.decay_steps or training.max_steps or (training.max_epochs or 0) * epoch_updates

    @classmethod
    def problems(cls, training: TrainingConfig) -> list[str]:
        problems = minimum_problems(training)
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

    def rate(self, step: int, reduction: float = 1.0) -> float:
        return cosine(step, self.peak, self.training.min_learning_rate, self.warmup, self.decay_steps)


def cosine(step: int, peak: float, minimum: float, warmup_steps: int, decay_steps: int) -> float:
    """Linear to the peak, half a cosine down to the minimum at `decay_steps`, constant from there."""
    if step < warmup_steps:
        return peak * step / warmup_steps
    progress = min(1.0, (step - warmup_steps) / max(1, decay_steps - warmup_steps))
    return minimum + (peak - minimum) * 0.5 * (1 + math.cos(math.pi * progress))
