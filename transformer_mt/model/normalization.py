"""Layer normalisation (section 3.1; Ba et al. 2016, arXiv:1607.06450) and two variants."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """gamma * (x - mean) / sqrt(variance + epsilon) + beta, with mean and variance over the D coordinates.

    epsilon_on: "variance", or "deviation" as in The Annotated Transformer: epsilon is added to the sample standard
                deviation (divisor D - 1)
    """

    def __init__(self, d_model: int, epsilon: float, epsilon_on: str = "variance") -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.epsilon = epsilon
        self.epsilon_on = epsilon_on

    def forward(self, x_BTD: Tensor) -> Tensor:
        """x [B, T, D] to [B, T, D]."""
        mean_BT1 = x_BTD.mean(dim=-1, keepdim=True)
        if self.epsilon_on == "deviation":
            divisor_BT1 = x_BTD.std(dim=-1, keepdim=True) + self.epsilon
        else:
            variance_BT1 = (x_BTD - mean_BT1).square().mean(dim=-1, keepdim=True)
            divisor_BT1 = torch.sqrt(variance_BT1 + self.epsilon)
        return self.gamma * (x_BTD - mean_BT1) / divisor_BT1 + self.beta


class RMSNorm(nn.Module):
    """gamma * x / sqrt(mean(x^2) + epsilon): without mean and beta (Zhang & Sennrich 2019, arXiv:1910.07467)."""

    def __init__(self, d_model: int, epsilon: float) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.epsilon = epsilon

    def forward(self, x_BTD: Tensor) -> Tensor:
        """x [B, T, D] to [B, T, D]."""
        return self.gamma * x_BTD * torch.rsqrt(x_BTD.square().mean(dim=-1, keepdim=True) + self.epsilon)
