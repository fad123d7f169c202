"""Adam (section 5.3; Kingma & Ba 2015, arXiv:1412.6980) and AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transformer_mt.training.optimizers.base import OptimizerKind

if TYPE_CHECKING:
    import torch
    from torch import nn

    from transformer_mt.config.training import TrainingConfig


class Adam(OptimizerKind):
    def make(self, model: nn.Module) -> list[torch.optim.Optimizer]:
        import torch

        return [adam(torch.optim.Adam, list(model.parameters()), self.training)]


class AdamW(OptimizerKind):
    """Weight decay apart from the gradient."""

    def make(self, model: nn.Module) -> list[torch.optim.Optimizer]:
        import torch

        return [adam(torch.optim.AdamW, list(model.parameters()), self.training)]


def adam(
    cls: type[torch.optim.Adam], parameters: list[nn.Parameter], training: TrainingConfig
) -> torch.optim.Optimizer:
    """Fused into one kernel if the device has one."""
    return cls(
        parameters,
        lr=0.0,
        betas=training.betas,
        eps=training.epsilon,
        weight_decay=training.weight_decay,
        fused=parameters[0].device.type in ("cpu", "cuda"),
    )
