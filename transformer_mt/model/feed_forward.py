"""Position-wise feed-forward networks (section 3.3)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from transformer_mt.model.parts import READABLE, Parts


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 (equation 2), applied to each position separately.

    activation: relu (the paper), gelu, silu, or swiglu: (silu(x W_g) * (x W_1)) W_2 (Shazeer 2020, arXiv:2002.05202)
    dropout:    probability of dropping an activation before W_2, which the paper does not mention
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        dropout: float = 0.0,
        activation: str = "relu",
        bias: bool = True,
        parts: Parts = READABLE,
    ) -> None:
        super().__init__()
        self.activation = activation
        self.inner = parts.linear(d_model, d_ff, bias)
        self.gate = parts.linear(d_model, d_ff, bias) if activation == "swiglu" else None
        self.outer = parts.linear(d_ff, d_model, bias)
        self.dropout = parts.dropout(dropout)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """x [B, T, D] to [B, T, D]; in between, each position has F coordinates."""
        inner_BTF = self.inner(x_BTD)
        if self.gate is not None:
            inner_BTF = F.silu(self.gate(x_BTD)) * inner_BTF
        else:
            inner_BTF = getattr(F, self.activation)(inner_BTF)
        output_BTD = self.outer(self.dropout(inner_BTF))
        return output_BTD
