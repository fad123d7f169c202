"""Embeddings (section 3.4): ids to vectors, scaled by sqrt(d_model), positions added, dropout applied."""

from __future__ import annotations

import math

from torch import Tensor, nn

from transformer_mt.model.dropout import Dropout
from transformer_mt.model.positions import LearnedPositions, SinusoidalPositions
from transformer_mt.model.watch import note


class Embedding(nn.Module):
    """What enters a stack: Dropout(sqrt(D) * E[id] + P[position]).

    `positions` is None where positions are told elsewhere (rotary).
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        positions: SinusoidalPositions | LearnedPositions | None,
        scale: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = positions
        self.scale = math.sqrt(d_model) if scale else 1.0
        self.dropout = Dropout(dropout)

    def forward(self, ids_BT: Tensor, start: int = 0) -> Tensor:
        """Ids [B, T], the first at position `start`, to vectors [B, T, D]."""
        x_BTD = self.tokens(ids_BT) * self.scale
        note(embedded_BTD=x_BTD)
        if self.positions is not None:
            positions_TD = self.positions(start, ids_BT.shape[1])
            note(positions_TD=positions_TD)
            x_BTD = x_BTD + positions_TD
            note(sum_BTD=x_BTD)
        return self.dropout(x_BTD)
