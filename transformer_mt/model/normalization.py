"""Layer normalisation (section 3.1; Ba et al. 2016, arXiv:1607.06450) by hand, and its root-mean-square relative."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def layer_norm(x_BTD: Tensor, gamma_D: Tensor, beta_D: Tensor, epsilon: float) -> Tensor:
    """gamma * (x - mean) / sqrt(variance + epsilon) + beta, mean and variance over the D coordinates."""
    mean_BT1 = x_BTD.mean(dim=-1, keepdim=True)
    variance_BT1 = (x_BTD - mean_BT1).square().mean(dim=-1, keepdim=True)
    return gamma_D * (x_BTD - mean_BT1) / torch.sqrt(variance_BT1 + epsilon) + beta_D


def layer_norm_by_deviation(x_BTD: Tensor, gamma_D: Tensor, beta_D: Tensor, epsilon: float) -> Tensor:
    """The Annotated Transformer's form: epsilon is added to the sample standard deviation (divisor D - 1)."""
    mean_BT1 = x_BTD.mean(dim=-1, keepdim=True)
    deviation_BT1 = x_BTD.std(dim=-1, keepdim=True)
    return gamma_D * (x_BTD - mean_BT1) / (deviation_BT1 + epsilon) + beta_D


def rms_norm(x_BTD: Tensor, gamma_D: Tensor, epsilon: float) -> Tensor:
    """gamma * x / sqrt(mean(x^2) + epsilon): no mean taken off, no beta (Zhang & Sennrich 2019, arXiv:1910.07467)."""
    return gamma_D * x_BTD * torch.rsqrt(x_BTD.square().mean(dim=-1, keepdim=True) + epsilon)


class LayerNorm(nn.Module):
    """Layer normalisation with its gain gamma and shift beta.

    fused: let PyTorch's kernel compute `layer_norm`; same numbers, one pass over memory.
    """

    def __init__(self, d_model: int, epsilon: float, epsilon_on: str = "variance", fused: bool = True) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.epsilon = epsilon
        self.epsilon_on = epsilon_on
        self.fused = fused

    def forward(self, x_BTD: Tensor) -> Tensor:
        if self.epsilon_on == "deviation":
            return layer_norm_by_deviation(x_BTD, self.gamma, self.beta, self.epsilon)
        if self.fused:
            return F.layer_norm(x_BTD, self.gamma.shape, self.gamma, self.beta, self.epsilon)
        return layer_norm(x_BTD, self.gamma, self.beta, self.epsilon)


class RMSNorm(nn.Module):
    """Root-mean-square normalisation with its gain gamma."""

    def __init__(self, d_model: int, epsilon: float, fused: bool = True) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.epsilon = epsilon
        self.fused = fused

    def forward(self, x_BTD: Tensor) -> Tensor:
        if self.fused:
            return F.rms_norm(x_BTD, self.gamma.shape, self.gamma, self.epsilon)
        return rms_norm(x_BTD, self.gamma, self.epsilon)
