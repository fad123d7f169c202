"""How the model knows the order of tokens (section 3.5): sinusoidal, learned or rotary positions.

Sinusoidal and learned positions are added to the embeddings. Rotary positions (Su et al. 2021, arXiv:2104.09864) rotate
queries and keys inside self-attention instead.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def angles(length: int, width: int, start: int = 0) -> Tensor:
    """pos / 10000^(2i / width) for pos = start, ..., start + length - 1 and i = 0, ..., width / 2 - 1 (section 3.5).

    Returns float32 [length, width / 2].
    """
    position_P1 = torch.arange(start, start + length, dtype=torch.float32).unsqueeze(1)
    even_I = torch.arange(0, width, 2, dtype=torch.float32)
    return position_P1 * torch.exp(even_I * (-math.log(10_000.0) / width))


def sinusoidal_positions(length: int, d_model: int, start: int = 0) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i / D)) and PE(pos, 2i + 1) = cos(pos / 10000^(2i / D)) (section 3.5).

    Returns the encodings of the positions start, ..., start + length - 1: float32 [length, D].
    """
    angle_PI = angles(length, d_model, start)
    return torch.stack([angle_PI.sin(), angle_PI.cos()], dim=2).reshape(length, d_model)


class SinusoidalPositions(nn.Module):
    """The paper's encoding (section 3.5), without parameters: a table; positions beyond it are computed when needed."""

    table_PD: Tensor

    def __init__(self, d_model: int, length: int = 256) -> None:
        super().__init__()
        self.register_buffer("table_PD", sinusoidal_positions(length, d_model), persistent=False)

    def forward(self, start: int, length: int) -> Tensor:
        """Encodings of the positions start, ..., start + length - 1: [length, D]."""
        known, d_model = self.table_PD.shape
        if start + length > known:
            return sinusoidal_positions(length, d_model, start).to(self.table_PD)
        return self.table_PD[start : start + length]


class LearnedPositions(nn.Module):
    """One trained vector for each position; section 3.5 reports "nearly identical results" (table 3, row E)."""

    def __init__(self, max_positions: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(max_positions, d_model)

    def forward(self, start: int, length: int) -> Tensor:
        """Vectors of the positions start, ..., start + length - 1: [length, D]."""
        assert start + length <= self.table.num_embeddings, "the caller cuts sentences at max_positions"
        return self.table.weight[start : start + length]


class RotaryPositions(nn.Module):
    """Rotate pairs of coordinates by an angle that grows with the position (Su et al. 2021, section 3.2).

    The product of a query and a key then depends only on the difference of their positions, with its sign. Coordinates
    i and i + K / 2 form a pair (Su et al. pair 2i and 2i + 1); its angle is position / 10000^(2i / K), i < K / 2.
    """

    angle_PI: Tensor

    def __init__(self, head_width: int, length: int = 4096) -> None:  # training has no longer sentences
        super().__init__()
        self.register_buffer("angle_PI", angles(length, head_width), persistent=False)

    def forward(self, x_BHQK: Tensor, start: int) -> Tensor:
        """Rotate queries or keys [B, H, Q, K] at the positions start, start + 1, ...; same shape."""
        length, width = x_BHQK.shape[-2:]
        angle_QI = self.angle_PI[start : start + length]
        if start + length > len(self.angle_PI):
            angle_QI = angles(length, width, start).to(self.angle_PI)
        cos_QI, sin_QI = angle_QI.cos().to(x_BHQK), angle_QI.sin().to(x_BHQK)
        partner_BHQK = x_BHQK.roll(width // 2, dims=-1)
        sin_QK = torch.cat([-sin_QI, sin_QI], dim=-1)  # (a, b) becomes (a cos - b sin, b cos + a sin)
        return torch.addcmul(x_BHQK * torch.cat([cos_QI, cos_QI], dim=-1), partner_BHQK, sin_QK)
