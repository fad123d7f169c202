"""When training ends, and which checkpoints become the model."""

from __future__ import annotations

from collections.abc import Sequence

from transformer_mt.config.training import TrainingConfig
from transformer_mt.training.state import TrainState


def reason_to_stop(state: TrainState, config: TrainingConfig) -> str:
    """Why training ends, or "" if it continues. The reason starts with the config key of the limit."""
    if config.max_steps is not None and state.step >= config.max_steps:
        return f"max_steps {config.max_steps:,} reached"
    if config.max_epochs is not None and state.epoch > config.max_epochs:
        return f"max_epochs {config.max_epochs} reached"
    if state.validated != state.step or not state.step:
        return ""  # the limits below are checked only right after a validation
    if config.patience is not None and state.stale >= config.patience:
        return f"patience {config.patience} exhausted: no improvement in {state.stale} validations"
    if config.max_minutes is not None and state.seconds >= 60 * config.max_minutes:
        return f"max_minutes {config.max_minutes:g} reached"
    return ""


def seconds_left(state: TrainState, config: TrainingConfig, updates: int) -> float:
    """Seconds to the nearest limit at the mean speed so far. updates: optimizer steps in an epoch."""
    pace, left = state.seconds / max(1, state.step), []
    if config.max_steps is not None:
        left.append((config.max_steps - state.step) * pace)
    if config.max_epochs is not None:
        left.append(((config.max_epochs - state.epoch + 1) * updates - state.update) * pace)
    if config.max_minutes is not None:
        left.append(60 * config.max_minutes - state.seconds)
    return max(0.0, min(left))


def final_steps(state: TrainState, config: TrainingConfig, saved: Sequence[int]) -> list[int]:
    """Steps of the checkpoints that are averaged into the model: the best, the last k or the best k."""
    latest, saved = state.latest(saved), state.regular(saved)
    best = [step for _, step in state.ranking if step in saved]
    if config.average == "last":
        return latest[-config.average_checkpoints :]
    if config.average == "best" and best:
        return best[: config.average_checkpoints]
    return best[:1] or list(saved[-1:])
