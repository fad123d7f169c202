"""Attention (section 3.2): the readable form, the fused kernel that computes the same, and several heads."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_mt.model.linear import Linear, linear, narrows_here
from transformer_mt.model.masks import causal_mask
from transformer_mt.model.positions import RotaryPositions
from transformer_mt.model.watch import note, watched


class KeyValue(NamedTuple):
    """What a position offers to attention: keys and values, each [B, H, M, K]."""

    key_BHMK: Tensor
    value_BHMK: Tensor


def scaled_dot_product_attention(
    query_BHQK: Tensor,
    key_BHMK: Tensor,
    value_BHMK: Tensor,
    mask_BHQM: Tensor | None = None,
    dropout: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V (equation 1), and the weights of the softmax.

    mask_BHQM: broadcastable to [B, H, Q, M]; bool: True where a query may attend, and one that may attend nowhere gets
    zeros; float: added to the scores (`added_mask`). None: everywhere.
    Returns the contexts [B, H, Q, K] and the weights before dropout [B, H, Q, M].
    """
    scores_BHQM = query_BHQK @ key_BHMK.transpose(-2, -1) / math.sqrt(query_BHQK.shape[-1])
    note(scores_BHQM=scores_BHQM)
    if mask_BHQM is None:
        weights_BHQM = scores_BHQM.softmax(dim=-1)
    elif mask_BHQM.dtype is torch.bool:
        scores_BHQM = scores_BHQM.masked_fill(~mask_BHQM, torch.finfo(scores_BHQM.dtype).min)
        weights_BHQM = scores_BHQM.softmax(dim=-1).masked_fill(~mask_BHQM, 0.0)
    else:
        weights_BHQM = (scores_BHQM + mask_BHQM).softmax(dim=-1)
    note(weights_BHQM=weights_BHQM)
    context_BHQK = F.dropout(weights_BHQM, dropout) @ value_BHMK
    return context_BHQK, weights_BHQM


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    Section 3.2.2. The matrices W^Q, W^K and W^V of all heads lie stacked in `query_key_value` [3D, D], so
    that self-attention takes one product; `output` is W^O. bias: added to each product; the formula has none.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        fused: bool = True,
        rotary: RotaryPositions | None = None,
    ) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query_key_value = Linear(d_model, 3 * d_model, bias)
        self.output = Linear(d_model, d_model, bias)
        self.dropout = dropout
        self.fused = fused
        self.rotary = rotary

    def forward(
        self,
        x_BQD: Tensor,
        memory: Tensor | KeyValue | None = None,
        mask_BHQM: Tensor | None = None,
        causal: bool = False,
        plain: bool = False,
    ) -> Tensor:
        """Let each position of x ask those of `memory` (vectors [B, M, D], or their keys and values at once).

        Without a memory the positions of x ask each other. causal: a position sees itself and those before
        it (section 3.1); excludes a mask. plain: see `attend`. Returns [B, Q, D].
        """
        if memory is None:
            query_BHQK, memory = self.project(x_BQD)
        else:
            query_BHQK = self.project_query(x_BQD)
        if isinstance(memory, Tensor):
            memory = self.project_memory(memory)
        return self.attend(query_BHQK, memory, mask_BHQM, causal, plain)

    def project(self, x_BQD: Tensor, start: int = 0) -> tuple[Tensor, KeyValue]:
        """Queries, keys and values of the same positions, the first at `start`: self-attention."""
        query_BHQK, key_BHQK, value_BHQK = map(self._split_heads, self.query_key_value(x_BQD).chunk(3, dim=-1))
        if self.rotary is not None:
            query_BHQK, key_BHQK = self.rotary(query_BHQK, start), self.rotary(key_BHQK, start)
        note(query_BHQK=query_BHQK, key_BHMK=key_BHQK, value_BHMK=value_BHQK)
        return query_BHQK, KeyValue(key_BHQK, value_BHQK)

    def project_query(self, x_BQD: Tensor) -> Tensor:
        """Queries [B, H, Q, K] to a memory (cross-attention)."""
        query_BHQK = self._split_heads(self._project_rows(x_BQD, 0, 1))
        note(query_BHQK=query_BHQK)
        return query_BHQK

    def project_memory(self, memory_BMD: Tensor) -> KeyValue:
        """Keys and values of the encoder's output; the same for every target position, so computed once."""
        key_BHMK, value_BHMK = map(self._split_heads, self._project_rows(memory_BMD, 1, 3).chunk(2, dim=-1))
        note(key_BHMK=key_BHMK, value_BHMK=value_BHMK)
        return KeyValue(key_BHMK, value_BHMK)

    def attend(
        self,
        query_BHQK: Tensor,
        memory: KeyValue,
        mask_BHQM: Tensor | None = None,
        causal: bool = False,
        plain: bool = False,
    ) -> Tensor:
        """Attention of all heads, put together again and projected by W^O; shape [B, Q, D].

        plain: the readable form in place of the fused kernel; for a few queries a CPU is faster so.
        """
        assert not (causal and mask_BHQM is not None), "causal excludes a mask"
        dropout = self.dropout if self.training else 0.0
        if self.fused and not plain and not watched():
            with _as_wide_as_given(query_BHQK):
                context_BHQK = F.scaled_dot_product_attention(
                    query_BHQK, *memory, attn_mask=mask_BHQM, dropout_p=dropout, is_causal=causal
                )
        else:
            if causal:
                mask_BHQM = causal_mask(query_BHQK.shape[2], query_BHQK.device)
                note(causal_mask_11QM=mask_BHQM)
            context_BHQK, _ = scaled_dot_product_attention(query_BHQK, *memory, mask_BHQM, dropout)
        note(context_BHQK=context_BHQK)
        concatenated_BQD = context_BHQK.transpose(1, 2).flatten(2)
        output_BQD = self.output(concatenated_BQD)
        note(concatenated_BQD=concatenated_BQD, output_BQD=output_BQD)
        return output_BQD

    def _project_rows(self, x_BMD: Tensor, first: int, last: int) -> Tensor:
        """Multiply with some of the three stacked matrices only."""
        d_model = x_BMD.shape[-1]
        rows = slice(first * d_model, last * d_model)
        bias = self.query_key_value.bias
        return linear(x_BMD, self.query_key_value.weight[rows], None if bias is None else bias[rows])

    def _split_heads(self, x_BMD: Tensor) -> Tensor:
        """[B, M, D] to [B, H, M, K]: each head looks at its own K of the D coordinates."""
        return x_BMD.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)


def _as_wide_as_given(query_BHQK: Tensor) -> AbstractContextManager[object]:
    """Keep autocast off the fused kernel on a CPU, where its backward takes ten times as long in bfloat16."""
    return torch.autocast("cpu", enabled=False) if narrows_here(query_BHQK) else nullcontext()
