"""The learning rate as pure functions of the step, counted from 1."""

from __future__ import annotations

import math

from transformer_mt.config.training import DEFAULT_PEAK, TrainingConfig


def noam(step: int, d_model: int, warmup_steps: int, factor: float = 1.0) -> float:
    """d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5) (section 5.3, equation 3)."""
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def inverse_sqrt(step: int, peak: float, warmup_steps: int) -> float:
    """Linear to the peak, then peak * sqrt(warmup_steps / step): noam with a peak of one's own."""
    if step < warmup_steps:
        return peak * step / warmup_steps
    return peak * math.sqrt(max(1, warmup_steps) / step)


def cosine(step: int, peak: float, minimum: float, warmup_steps: int, decay_steps: int) -> float:
    """Linear to the peak, half a cosine down to the minimum at `decay_steps`, and there it stays."""
    if step < warmup_steps:
        return peak * step / warmup_steps
    progress = min(1.0, (step - warmup_steps) / max(1, decay_steps - warmup_steps))
    return minimum + (peak - minimum) * 0.5 * (1 + math.cos(math.pi * progress))


def constant(step: int, peak: float, warmup_steps: int) -> float:
    """Linear to the peak, and there it stays."""
    return peak * min(1.0, step / warmup_steps) if warmup_steps else peak


def learning_rate(step: int, config: TrainingConfig, d_model: int, plateau: float = 1.0) -> float:
    """What the config asks for at a step. plateau: the product of all reductions so far."""
    peak, warmup = config.learning_rate or DEFAULT_PEAK, config.warmup_steps
    if config.schedule == "noam":
        return noam(step, d_model, warmup, config.noam_factor)
    if config.schedule == "inverse_sqrt":
        return inverse_sqrt(step, peak, warmup)
    if config.schedule == "cosine":
        assert config.decay_steps is not None, "see with_decay_steps"
        return cosine(step, peak, config.min_learning_rate, warmup, config.decay_steps)
    if config.schedule == "plateau":
        return max(config.min_learning_rate, plateau * constant(step, peak, warmup))
    return constant(step, peak, warmup)


def with_decay_steps(config: TrainingConfig, updates: int) -> TrainingConfig:
    """A cosine that names no step ends with max_steps, else with max_epochs. updates: those of an epoch."""
    if config.schedule != "cosine":
        return config
    last = config.decay_steps or config.max_steps or (config.max_epochs or 0) * updates
    return config.model_copy(update={"decay_steps": last})


def only_rises(config: TrainingConfig, updates: int) -> int:
    """The last update of a training that ends within its warmup; else 0. updates: those of an epoch."""
    last = min(config.max_steps or math.inf, (config.max_epochs or math.inf) * updates)
    return int(last) if last <= config.warmup_steps else 0


def ends_with(config: TrainingConfig) -> str:
    """The key that ends a cosine with the training; empty where the learning rate knows no end, or one of its own."""
    if config.schedule != "cosine" or config.decay_steps is not None:
        return ""
    return "max_steps" if config.max_steps is not None else "max_epochs"


def goes_by_epochs(config: TrainingConfig) -> bool:
    """Whether the last epoch ends the schedule, so that it follows the place in the data and not the count of steps,
    which is another one when a run goes on with more or fewer processes."""
    return ends_with(config) == "max_epochs"


def plateau_after(
    plateau: float, stale: int, best: float, loss: float, config: TrainingConfig
) -> tuple[float, int, float]:
    """Reduction factor, validations without a lower loss, and lowest loss, after one more (ReduceLROnPlateau)."""
    if loss < best * (1 - 1e-4):
        return plateau, 0, loss
    if stale + 1 > config.plateau_patience:
        return plateau * config.plateau_factor, 0, best
    return plateau, stale + 1, best
