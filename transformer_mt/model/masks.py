"""Who may attend to whom (section 3.2.3). Masks are bool, True means "may attend"; they broadcast to [B, H, Q, M]."""

from __future__ import annotations

import torch
from torch import Tensor


def padding_mask(ids_BM: Tensor, padding: int) -> Tensor:
    """Real tokens may be attended to, padding may not; [B, 1, 1, M]."""
    return (ids_BM != padding)[:, None, None, :]


def causal_mask(x_BHTK: Tensor) -> Tensor:
    """A position may attend to itself and to those before it: a lower triangle of True; [1, 1, T, T].

    x: queries (or anything else) of the T positions.
    """
    length = x_BHTK.shape[-2]
    return x_BHTK.new_ones(1, 1, length, length, dtype=torch.bool).tril()
