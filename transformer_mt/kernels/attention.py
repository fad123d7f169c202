"""Attention by PyTorch's fused kernel, without a tensor of all scores; attention of new positions to a cached past."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_mt.kernels.linear import uses_narrow_product

MANY_HEADS = 8192  # rows times heads: with fewer, a GPU waits for the host, which starts PyTorch's fused kernel sooner


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
    Many rows have a kernel of our own on a GPU (`past_attention`). Without it, and on a CPU, the written-out formula is
    faster than PyTorch's fused kernel; on a GPU only if rows have one query, because a block of that kernel has 64.
    """
    shape = query_BHQK.shape
    if query_BHQK.device.type != "cpu":
        has_many = shape[0] * shape[1] >= MANY_HEADS
        own = own_attention(query_BHQK, key_BHMK, value_BHMK) if has_many else None
        if own is not None:
            return own(query_BHQK, key_BHMK, value_BHMK, bias_BHQM)
        if shape[2] > 1 or not has_many:
            return F.scaled_dot_product_attention(query_BHQK, key_BHMK, value_BHMK, attn_mask=bias_BHQM)
    scores_BHQM = query_BHQK @ key_BHMK.transpose(-2, -1) / math.sqrt(query_BHQK.shape[-1])
    if bias_BHQM is not None:
        scores_BHQM = scores_BHQM + bias_BHQM
    return scores_BHQM.softmax(dim=-1) @ value_BHMK


def own_attention(query_BHQK: Tensor, key_BHMK: Tensor, value_BHMK: Tensor) -> Callable[..., Tensor] | None:
    """Our own kernel for such queries to a past; None where it is not made for them, or does not work."""
    is_usual = query_BHQK.is_cuda and not torch.is_grad_enabled() and value_BHMK.shape == key_BHMK.shape
    module = _past_attention() if is_usual else None
    return module.attend if module is not None and module.fits(query_BHQK) else None


@functools.cache
def _past_attention() -> Any:
    try:
        from transformer_mt.kernels import past_attention
    except ImportError:  # Triton comes with PyTorch for CUDA on Linux only
        return None
    return past_attention
