"""Scaled dot-product attention (section 3.2.1)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_mt.model.masks import causal_mask


def scaled_dot_product_attention(
    query_BHQK: Tensor,
    key_BHMK: Tensor,
    value_BHMK: Tensor,
    mask_BHQM: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V (equation 1), for each sentence and head.

    query:   [B, H, Q, K]
    key:     [B, H, M, K]
    value:   [B, H, M, K]
    mask:    bool, broadcastable to [B, H, Q, M]; True: the query may attend. None: every query may attend everywhere
    causal:  each position attends to itself and to earlier ones (sections 3.1 and 3.2.3); excludes a mask
    dropout: probability of dropping an attention weight, which the paper does not mention
    Returns the contexts [B, H, Q, K]. A query that may attend nowhere gets zeros.
    """
    if causal:
        assert mask_BHQM is None, "causal excludes a mask"
        causal_mask_11QM = causal_mask(query_BHQK)
        mask_BHQM = causal_mask_11QM
    scores_BHQM = query_BHQK @ key_BHMK.transpose(-2, -1) / math.sqrt(query_BHQK.shape[-1])
    if mask_BHQM is None:
        weights_BHQM = scores_BHQM.softmax(dim=-1)
    else:
        scores_BHQM = scores_BHQM.masked_fill(~mask_BHQM, torch.finfo(scores_BHQM.dtype).min)
        weights_BHQM = scores_BHQM.softmax(dim=-1).masked_fill(~mask_BHQM, 0.0)
    return F.dropout(weights_BHQM, dropout) @ value_BHMK
