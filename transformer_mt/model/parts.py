"""The small parts that a Transformer is built from: linear map, dropout, normalisation, attention.

`READABLE` has them as the paper defines them. A faster set (`transformer_mt.kernels`) computes the same up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer_mt.model.attention import scaled_dot_product_attention
from transformer_mt.model.normalization import LayerNorm, RMSNorm


class Linear(nn.Linear):
    """y = x W^T + b, with W [E, D] and b [E]: PyTorch's module with the product written out."""

    def forward(self, x: Tensor, rows: slice | None = None) -> Tensor:
        """x [..., D] to [..., E]. rows: use only these rows of W and b, if several matrices are stacked in W."""
        if rows is None:
            return self.product(x, self.weight, self.bias)
        return self.product(x, self.weight[rows], None if self.bias is None else self.bias[rows])

    @staticmethod
    def product(x: Tensor, weight_ED: Tensor, bias_E: Tensor | None) -> Tensor:
        """x W^T + b: x [..., D] to [..., E]."""
        y = x @ weight_ED.T
        return y if bias_E is None else y + bias_E


class Dropout(nn.Module):
    """While training, zero each element with probability p and scale the others by 1 / (1 - p) (section 5.4)."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(x) if self.training and self.p > 0 else x

    def drop(self, x: Tensor) -> Tensor:
        return x * (torch.rand_like(x) >= self.p) / (1 - self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}"


@dataclass(frozen=True)
class Parts:
    """The parts of a Transformer. attention: a function with the arguments of `scaled_dot_product_attention`."""

    linear: type[Linear] = Linear
    dropout: type[Dropout] = Dropout
    layer_norm: type[LayerNorm] = LayerNorm
    rms_norm: type[RMSNorm] = RMSNorm
    attention: Callable[..., Tensor] = scaled_dot_product_attention


READABLE = Parts()
