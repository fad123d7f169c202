"""Adam (section 5.3) as the config asks for it."""

from __future__ import annotations

import torch
from torch import nn

from transformer_mt.config.training import TrainingConfig


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Adam or AdamW, fused into one kernel where the device has one. The schedule sets the learning rate."""
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    device = next(model.parameters()).device.type
    return kind(
        model.parameters(),
        lr=0.0,
        betas=config.betas,
        eps=config.epsilon,
        weight_decay=config.weight_decay,
        fused=device in ("cpu", "cuda"),
    )
