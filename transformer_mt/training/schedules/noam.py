"""The schedule of the paper (section 5.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transformer_mt.training.schedules.base import Schedule

if TYPE_CHECKING:
    from transformer_mt.config.training import TrainingConfig


class Noam(Schedule):
    """Equation 3 of the paper, times `noam_factor`."""

    keys = ("noam_factor",)

    @classmethod
    def problems(cls, training: TrainingConfig) -> list[str]:
        problems = []
        if training.warmup_steps == 0:
            problems.append("the noam schedule needs warmup_steps of at least 1")
        if training.learning_rate is not None:
            problems.append("the noam schedule ignores learning_rate; use noam_factor, or schedule: inverse_sqrt")
        return problems

    def rate(self, step: int, reduction: float = 1.0) -> float:
        return noam(step, self.d_model, self.warmup, self.training.noam_factor)


def noam(step: int, d_model: int, warmup_steps: int, factor: float = 1.0) -> float:
    """factor * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5) (section 5.3, equation 3, with factor 1)."""
    return float(factor * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))
