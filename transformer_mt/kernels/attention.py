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
from transformer_mt.model import attention

FEW_HEADS = 32  # families of rows times heads: with more, the formula is faster on a CPU
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
    On a GPU, many rows have a kernel of our own (`past_attention`). Without it, many rows with one query each take the
    written-out formula, because a block of PyTorch's fused kernel has 64 queries. On a CPU, more than a few sentences
    take the formula too, which is faster there.
    """
    if query_BHQK.device.type != "cpu":
        own = own_attention(query_BHQK, key_BHMK, value_BHMK)
        if own is not None:
            return own(query_BHQK, key_BHMK, value_BHMK, bias_BHQM)
        if query_BHQK.shape[2] > 1 or not _has_many(query_BHQK):
            return F.scaled_dot_product_attention(query_BHQK, key_BHMK, value_BHMK, attn_mask=bias_BHQM)
    elif query_BHQK.shape[0] * query_BHQK.shape[1] <= FEW_HEADS:
        return cpu_attention(query_BHQK, key_BHMK, value_BHMK, bias_BHQM)
    scores_BHQM = query_BHQK @ key_BHMK.transpose(-2, -1) / math.sqrt(query_BHQK.shape[-1])
    if bias_BHQM is not None:
        scores_BHQM = scores_BHQM + bias_BHQM
    return scores_BHQM.softmax(dim=-1) @ value_BHMK


def handmade_attention_to_past(
    query_BHQK: Tensor, key_BHMK: Tensor, value_BHMK: Tensor, bias_BHQM: Tensor | None = None
) -> Tensor:
    """The same by the readable function, for a model that was trained with it."""
    mask_BHQM = None if bias_BHQM is None else bias_BHQM == 0
    return attention.scaled_dot_product_attention(query_BHQK, key_BHMK, value_BHMK, mask_BHQM)


def own_attention(query_BHQK: Tensor, key_BHMK: Tensor, value_BHMK: Tensor) -> Callable[..., Tensor] | None:
    """Our own kernel for such queries to a past; None where they are few, it is not made for them, or does not work."""
    if not query_BHQK.is_cuda or torch.is_grad_enabled() or not _has_many(query_BHQK):
        return None
    module = _past_attention() if value_BHMK.shape == key_BHMK.shape else None
    return module.attend if module is not None and module.fits(query_BHQK) else None


def _has_many(query_BHQK: Tensor) -> bool:
    return query_BHQK.shape[0] * query_BHQK.shape[1] >= MANY_HEADS


@functools.cache
def _past_attention() -> Any:
    try:
        from transformer_mt.kernels import past_attention
    except ImportError:  # Triton comes with PyTorch for CUDA on Linux only
        return None
    return past_attention
