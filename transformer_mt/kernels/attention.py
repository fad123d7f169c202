"""Attention by PyTorch's fused kernel, without a tensor of all scores; attention of new positions to a cached past."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_mt.kernels.linear import uses_narrow_product

MANY_HEADS = 8192  # rows times heads: with fewer, a GPU waits for the host, which starts one fused kernel sooner


def fused_attention(
    query_BHQK: Tensor,
    key_BHMK: Tensor,
    value_BHMK: Tensor,
    mask_BHQM: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """The arguments and result of `model.attention.scaled_dot_product_attention`."""
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
    """`fused_attention` without autocast: on a CPU, the backward pass takes ten times as long in bfloat16."""
    if uses_narrow_product(query_BHQK):
        with torch.autocast("cpu", enabled=False):
            return fused_attention(query_BHQK, key_BHMK, value_BHMK, mask_BHQM, causal, dropout)
    return fused_attention(query_BHQK, key_BHMK, value_BHMK, mask_BHQM, causal, dropout)


def attention_to_past(
    query_BHQK: Tensor, key_BHMK: Tensor, value_BHMK: Tensor, bias_BHQM: Tensor | None = None
) -> Tensor:
    """Attention of a few queries [B, H, Q, K] while decoding; returns the contexts [B, H, Q, K].

    bias: added to the scores; 0 where a query may attend, minus infinity elsewhere. Each query must have a 0.
    The written-out formula is faster than the fused kernel on a CPU, and on a GPU for many rows with one query each: a
    block of the fused kernel computes 64 queries.
    """
    shape = query_BHQK.shape
    if query_BHQK.device.type != "cpu" and (shape[2] > 1 or shape[0] * shape[1] < MANY_HEADS):
        return F.scaled_dot_product_attention(query_BHQK, key_BHMK, value_BHMK, attn_mask=bias_BHQM)
    scores_BHQM = query_BHQK @ key_BHMK.transpose(-2, -1) / math.sqrt(query_BHQK.shape[-1])
    if bias_BHQM is not None:
        scores_BHQM = scores_BHQM + bias_BHQM
    return scores_BHQM.softmax(dim=-1) @ value_BHMK
