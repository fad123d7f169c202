"""The base class of the kinds of optimizer. Imports nothing heavy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import torch
    from torch import nn

    from transformer_mt.config.section import Section
    from transformer_mt.config.training import TrainingConfig


class OptimizerKind(ABC):
    """Creates optimizers from the `training` section of a config.

    scales:  whether it supports float16, where the loss is scaled and a step may be skipped
    Options: the kind's own keys, if it has any: `optimizer: {kind: NAME, ...}`
    """

    scales: ClassVar[bool] = True
    Options: ClassVar[type[Section] | None] = None

    def __init__(self, training: TrainingConfig, options: Any = None) -> None:
        self.training, self.options = training, options

    @abstractmethod
    def make(self, model: nn.Module) -> list[torch.optim.Optimizer]:
        """One optimizer, or several that share the parameters. The schedule sets the learning rates."""
