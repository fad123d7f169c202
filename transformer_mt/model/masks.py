"""Which positions may be attended to (True): causal (section 3.2.3), and no padding. They broadcast to [B, H, Q, M]."""

from __future__ import annotations

import torch
from torch import Tensor


def padding_mask(ids_BM: Tensor, padding: int) -> Tensor:
    """True at real tokens, False at padding: ids [B, M] to bool [B, 1, 1, M]."""
    return (ids_BM != padding)[:, None, None, :]


def causal_mask(x_BHTK: Tensor) -> Tensor:
    """True where a position attends to itself or to an earlier one: a lower triangle, bool [1, 1, T, T].

    x: [..., T, K], such as queries.
    """
    length = x_BHTK.shape[-2]
    return x_BHTK.new_ones(1, 1, length, length, dtype=torch.bool).tril()
