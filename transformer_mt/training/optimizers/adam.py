"""Adam (section 5.3; Kingma & Ba 2015, arXiv:1412.6980) and AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transformer_mt.training.optimizers.base import OptimizerKind

if TYPE_CHECKING:
    import torch
    from torch import nn

    from transformer_mt.config.training import TrainingConfig


class Adam(OptimizerKind):
    """Weight decay as an L2 penalty: it is added to the gradient."""

    def make(self, model: nn.Module) -> list[torch.optim.Optimizer]:
        return [adam(list(model.parameters()), self.training, decoupled=False)]


class AdamW(OptimizerKind):
    """Decoupled weight decay: it shrinks the weights directly."""

    def make(self, model: nn.Module) -> list[torch.optim.Optimizer]:
        return [adam(list(model.parameters()), self.training, decoupled=True)]


def adam(parameters: list[nn.Parameter], training: TrainingConfig, decoupled: bool) -> torch.optim.Optimizer:
    """Adam, or AdamW if the weight decay is decoupled; fused into one kernel if the device has one."""
    import torch

    return (torch.optim.AdamW if decoupled else torch.optim.Adam)(
        parameters,
        lr=0.0,
        betas=training.betas,
        eps=training.epsilon,
        weight_decay=training.weight_decay,
        fused=parameters[0].device.type in ("cpu", "cuda"),
    )
