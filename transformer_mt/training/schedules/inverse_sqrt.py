"""The shape of the schedule in the paper (section 5.3), with a configurable peak."""

from __future__ import annotations

import math

from transformer_mt.training.schedules.base import Schedule


class InverseSqrt(Schedule):
    def rate(self, step: int, reduction: float = 1.0) -> float:
        return inverse_sqrt(step, self.peak, self.warmup)


def inverse_sqrt(step: int, peak: float, warmup_steps: int) -> float:
    """Linear to the peak, then peak * sqrt(max(1, warmup_steps) / step)."""
    if step < warmup_steps:
        return peak * step / warmup_steps
    return peak * math.sqrt(max(1, warmup_steps) / step)
