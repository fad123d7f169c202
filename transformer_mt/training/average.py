"""An exponential moving average of the weights. It can translate better while the rate is high."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from transformer_mt.runtime.weights import named_weights


class MovingAverage:
    """After each step: average = decay * average + (1 - decay) * weights. The first steps use a smaller decay."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = {name: weight.clone() for name, weight in named_weights(model).items()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        current = {name: one.detach() for name, one in model.named_parameters() if one.requires_grad}
        torch._foreach_lerp_([self.weights[name] for name in current], list(current.values()), 1 - decay)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        _copy(weights, self.weights)


@contextmanager
def averaged(model: nn.Module, average: MovingAverage | None) -> Iterator[None]:
    """Inside the block the model has the averaged weights; without an average, its current ones."""
    if average is None:
        yield
        return
    weights = named_weights(model)  # they share the memory of the parameters
    current = {name: weight.clone() for name, weight in weights.items()}
    _copy(average.weights, weights)
    try:
        yield
    finally:
        _copy(current, weights)


def _copy(values: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    for name, weight in weights.items():
        weight.copy_(values[name])
