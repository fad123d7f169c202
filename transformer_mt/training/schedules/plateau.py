"""Linear warmup, then constant, reduced when the validation loss stops falling (like PyTorch's ReduceLROnPlateau)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transformer_mt.training.schedules.base import Schedule
from transformer_mt.training.schedules.constant import constant

if TYPE_CHECKING:
    from transformer_mt.config.training import TrainingConfig


class Plateau(Schedule):
    keys = ("min_learning_rate", "plateau_factor", "plateau_patience")
    reads_validation = True

    def rate(self, step: int, reduction: float = 1.0) -> float:
        least = self.training.min_learning_rate if step > self.warmup else 0.0  # the warmup begins below it
        return max(least, reduction * constant(step, self.peak, self.warmup))


def plateau_after(
    plateau: float, stale: int, best: float, loss: float, config: TrainingConfig
) -> tuple[float, int, float]:
    """(reduction, validations since the lowest loss, lowest loss) after one more validation with this loss."""
    if loss < best * (1 - 1e-4):
        return plateau, 0, loss
    if stale + 1 > config.plateau_patience:
        return plateau * config.plateau_factor, 0, best
    return plateau, stale + 1, best
