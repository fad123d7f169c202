"""The input of encoder and decoder: token embeddings (section 3.4), positions (3.5) and dropout (5.4)."""

from __future__ import annotations

import math

from torch import Tensor, nn

from transformer_mt.model.parts import READABLE, Parts
from transformer_mt.model.positions import LearnedPositions, SinusoidalPositions


class Embedding(nn.Module):
    """Dropout(sqrt(D) * E[id] + PE[position]) (sections 3.4, 3.5 and 5.4).

    positions: PE; None with rotary positions, which act inside self-attention instead
    scale:     whether to multiply by sqrt(D), as section 3.4 does
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        positions: SinusoidalPositions | LearnedPositions | None,
        scale: bool,
        dropout: float,
        parts: Parts = READABLE,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = positions
        self.scale = math.sqrt(d_model) if scale else 1.0
        self.dropout = parts.dropout(dropout)

    def forward(self, ids_BT: Tensor, start: int = 0) -> Tensor:
        """Ids [B, T] to vectors [B, T, D]. start: position of the first id."""
        embedded_BTD = self.tokens(ids_BT) * self.scale
        if self.positions is None:
            return self.dropout(embedded_BTD)
        positions_TD = self.positions(start, ids_BT.shape[1])
        sum_BTD = embedded_BTD + positions_TD
        return self.dropout(sum_BTD)
