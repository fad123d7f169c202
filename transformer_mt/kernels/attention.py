"""Attention without a tensor of all scores, by PyTorch's fused kernel; and attention of single positions to a past."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_mt.kernels.linear import uses_narrow_product


def fused_attention(
    query_BHQK: Tensor,
    key_BHMK: Tensor,
    value_BHMK: Tensor,
    mask_BHQM: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """As `model.attention.scaled_dot_product_attention`."""
    return F.scaled_dot_product_attention(
        query_BHQK, key_BHMK, value_BHMK, attn_mask=mask_BHQM, dropout_p=dropout, is_causal=causal
    )


def cpu_attention(
    query_BHQK: Tensor,
    key_BHMK: Tensor,
    value_BHMK: Tensor,
    mask_BHQM: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """The fused kernel without autocast: on a CPU its backward takes ten times as long in bfloat16."""
    if uses_narrow_product(query_BHQK):
        with torch.autocast("cpu", enabled=False):
            return fused_attention(query_BHQK, key_BHMK, value_BHMK, mask_BHQM, causal, dropout)
    return fused_attention(query_BHQK, key_BHMK, value_BHMK, mask_BHQM, causal, dropout)


def attention_to_past(
    query_BHQK: Tensor, key_BHMK: Tensor, value_BHMK: Tensor, added_BHQM: Tensor | None = None
) -> Tensor:
    """Attention of a few queries, while decoding; contexts [B, H, Q, K].

    added: 0 where a query may attend (somewhere it must), minus infinity elsewhere. For few queries the written-out
    formula is faster on a CPU than the fused kernel; on a GPU the fused kernel is.
    """
    if query_BHQK.device.type != "cpu":
        return F.scaled_dot_product_attention(query_BHQK, key_BHMK, value_BHMK, attn_mask=added_BHQM)
    scores_BHQM = query_BHQK @ key_BHMK.transpose(-2, -1) / math.sqrt(query_BHQK.shape[-1])
    if added_BHQM is not None:
        scores_BHQM = scores_BHQM + added_BHQM
    return scores_BHQM.softmax(dim=-1) @ value_BHMK
