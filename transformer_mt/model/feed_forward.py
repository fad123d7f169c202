"""Position-wise feed-forward networks (section 3.3)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from transformer_mt.model.dropout import Dropout
from transformer_mt.model.linear import Linear
from transformer_mt.model.watch import note


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 (equation 2), the same at each position.

    activation: relu (the paper), gelu, or swiglu: (silu(x W_g) * (x W_1)) W_2 (Shazeer 2020, arXiv:2002.05202).
    """

    def __init__(
        self, d_model: int, d_ff: int, dropout: float = 0.0, activation: str = "relu", bias: bool = True
    ) -> None:
        super().__init__()
        self.activation = activation
        self.inner = Linear(d_model, d_ff, bias)
        self.gate = Linear(d_model, d_ff, bias) if activation == "swiglu" else None
        self.outer = Linear(d_ff, d_model, bias)
        self.dropout = Dropout(dropout)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """[B, T, D] to [B, T, D]; between them each position has F coordinates."""
        inner_BTF = self.inner(x_BTD)
        if self.gate is not None:
            inner_BTF = F.silu(self.gate(x_BTD)) * inner_BTF
        elif self.activation == "gelu":
            inner_BTF = F.gelu(inner_BTF)
        else:
            inner_BTF = inner_BTF.relu()
        note(inner_BTF=inner_BTF)
        output_BTD = self.outer(self.dropout(inner_BTF))
        note(output_BTD=output_BTD)
        return output_BTD
