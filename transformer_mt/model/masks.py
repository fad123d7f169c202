"""Who may attend to whom (section 3.2.3).

Masks are bool, True means "may attend", and they broadcast to [B, H, Q, M]. Where one is used again and again it is
turned, once, into what it adds to the scores.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def padding_mask(ids_BM: Tensor, padding: int) -> Tensor:
    """Real tokens may be attended to, padding may not; [B, 1, 1, M]."""
    return (ids_BM != padding)[:, None, None, :]


def causal_mask(length: int, device: torch.device | str = "cpu") -> Tensor:
    """A position may attend to itself and to those before it: a lower triangle of True; [1, 1, T, T]."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


def added_mask(mask_BHQM: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """The same mask to be added to scores: 0 where a query may attend (somewhere it must), minus infinity elsewhere."""
    if mask_BHQM is None:
        return None
    return mask_BHQM.new_zeros(mask_BHQM.shape, dtype=dtype).masked_fill_(~mask_BHQM, -math.inf)
