"""An exponential moving average of the weights. It can translate better while the rate is high."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class MovingAverage:
    """After each step: average = decay * average + (1 - decay) * weights. The first steps use a smaller decay."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        current = {name: one.detach() for name, one in model.named_parameters() if one.requires_grad}
        torch._foreach_lerp_([self.weights[name] for name in current], list(current.values()), 1 - decay)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        for name, tensor in self.weights.items():
            tensor.copy_(weights[name])


@contextmanager
def averaged(model: nn.Module, average: MovingAverage | None) -> Iterator[None]:
    """Inside the block the model has the averaged weights; without an average, its current ones."""
    if average is None:
        yield
        return
    parameters = dict(model.named_parameters())
    current = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(average.weights[name])
    try:
        yield
    finally:
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(current[name])
