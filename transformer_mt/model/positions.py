"""How the model knows the order of tokens (section 3.5): three ways of telling positions apart.

Sinusoidal and learned positions are added to the embeddings; rotary positions (Su et al. 2021,
arXiv:2104.09864) turn the queries and keys inside self-attention instead.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def angles(length: int, width: int, start: int = 0) -> Tensor:
    """pos / 10000^(2i / width) for the positions pos = start ... start + length - 1; [length, width / 2], float32."""
    position_P1 = torch.arange(start, start + length, dtype=torch.float32).unsqueeze(1)
    even_I = torch.arange(0, width, 2, dtype=torch.float32)
    return position_P1 * torch.exp(even_I * (-math.log(10_000.0) / width))


def sinusoidal_positions(length: int, d_model: int, start: int = 0) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(the same) (section 3.5).

    Returns the encodings of the positions start ... start + length - 1; shape [length, D], float32.
    """
    angle_PI = angles(length, d_model, start)
    return torch.stack([angle_PI.sin(), angle_PI.cos()], dim=2).reshape(length, d_model)


class SinusoidalPositions(nn.Module):
    """The paper's encoding (section 3.5): a table without parameters. Positions beyond it are computed when needed."""

    table_PD: Tensor

    def __init__(self, d_model: int, length: int = 256) -> None:
        super().__init__()
        self.register_buffer("table_PD", sinusoidal_positions(length, d_model), persistent=False)

    def forward(self, start: int, length: int) -> Tensor:
        """Encodings of the positions start ... start + length - 1; shape [length, D]."""
        known, d_model = self.table_PD.shape
        if start + length > known:
            return sinusoidal_positions(length, d_model, start).to(self.table_PD)
        return self.table_PD[start : start + length]


class LearnedPositions(nn.Module):
    """One trained vector for each position, which section 3.5 found to give "nearly identical results"."""

    def __init__(self, max_positions: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(max_positions, d_model)

    def forward(self, start: int, length: int) -> Tensor:
        """Vectors of the positions start ... start + length - 1; shape [length, D]."""
        assert start + length <= self.table.num_embeddings, "the caller cuts sentences at max_positions"
        return self.table.weight[start : start + length]


class RotaryPositions(nn.Module):
    """Turn pairs of coordinates by an angle that grows with the position: q.k then depends on distance only.

    Coordinate i is paired with i + K / 2, and turned by position / 10000^(2i / K).
    """

    angle_PI: Tensor

    def __init__(self, head_width: int, length: int = 256) -> None:
        super().__init__()
        self.register_buffer("angle_PI", angles(length, head_width), persistent=False)

    def forward(self, x_BHQK: Tensor, start: int) -> Tensor:
        """Turn queries or keys at the positions start, start + 1, ...; same shape."""
        length, width = x_BHQK.shape[-2:]
        angle_QI = self.angle_PI[start : start + length]
        if start + length > len(self.angle_PI):
            angle_QI = angles(length, width, start).to(self.angle_PI)
        cos_QI, sin_QI = angle_QI.cos().to(x_BHQK), angle_QI.sin().to(x_BHQK)
        partner_BHQK = x_BHQK.roll(width // 2, dims=-1)
        sin_QK = torch.cat([-sin_QI, sin_QI], dim=-1)  # (a, b) becomes (a cos - b sin, b cos + a sin)
        return torch.addcmul(x_BHQK * torch.cat([cos_QI, cos_QI], dim=-1), partner_BHQK, sin_QK)
