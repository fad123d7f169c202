"""Linear warmup, then constant."""

from __future__ import annotations

from transformer_mt.training.schedules.base import Schedule


class Constant(Schedule):
    def rate(self, step: int, reduction: float = 1.0) -> float:
        return constant(step, self.peak, self.warmup)


def constant(step: int, peak: float, warmup_steps: int) -> float:
    """Linear to the peak, constant after that."""
    return peak * min(1.0, step / warmup_steps) if warmup_steps else peak
