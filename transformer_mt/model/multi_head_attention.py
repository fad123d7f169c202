"""Multi-head attention (section 3.2.2)."""

from __future__ import annotations

from torch import Tensor, nn

from transformer_mt.model.parts import READABLE, Parts
from transformer_mt.model.positions import RotaryPositions


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    `query_key_value` stacks W^Q, W^K and W^V of all heads in one matrix [3D, D], so that self-attention needs one
    product. `output` is W^O [D, D].
    dropout: probability of dropping an attention weight
    bias:    whether each product adds a bias; the formula has none
    rotary:  rotates queries and keys of self-attention (no memory) by position; None: no rotation
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        rotary: RotaryPositions | None = None,
        parts: Parts = READABLE,
    ) -> None:
        super().__init__()
        assert d_model % n_heads == 0, f"d_model {d_model} cannot be divided by n_heads {n_heads}"
        self.n_heads = n_heads
        self.query_key_value = parts.linear(d_model, 3 * d_model, bias)
        self.output = parts.linear(d_model, d_model, bias)
        self.dropout = dropout
        self.rotary = rotary
        self.attention = parts.attention

    def forward(
        self,
        x_BQD: Tensor,
        memory_BMD: Tensor | None = None,
        mask_BHQM: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """Each position of x [B, Q, D] attends to the memory [B, M, D], or to x if memory is None; returns [B, Q, D].

        mask, causal: see `scaled_dot_product_attention`.
        """
        if memory_BMD is None:
            query_BHQK, key_BHMK, value_BHMK = self.project(x_BQD)
        else:
            query_BHQK = self.project_query(x_BQD)
            key_BHMK, value_BHMK = self.project_memory(memory_BMD)
        dropout = self.dropout if self.training else 0.0
        context_BHQK = self.attention(query_BHQK, key_BHMK, value_BHMK, mask_BHQM, causal, dropout)
        return self.combine(context_BHQK)

    def project(self, x_BMD: Tensor, start: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Self-attention: queries, keys and values of x [B, M, D], each [B, H, M, K]. start: the first position."""
        query_BHQK, key_BHMK, value_BHMK = map(self._split_heads, self.query_key_value(x_BMD).chunk(3, dim=-1))
        if self.rotary is not None:
            query_BHQK, key_BHMK = self.rotary(query_BHQK, start), self.rotary(key_BHMK, start)
        return query_BHQK, key_BHMK, value_BHMK

    def project_query(self, x_BQD: Tensor) -> Tensor:
        """Cross-attention: queries [B, H, Q, K] of x [B, Q, D], by W^Q alone."""
        d_model = x_BQD.shape[-1]
        return self._split_heads(self.query_key_value(x_BQD, slice(0, d_model)))

    def project_memory(self, memory_BMD: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-attention: keys and values of the memory [B, M, D], each [B, H, M, K], by W^K and W^V."""
        d_model = memory_BMD.shape[-1]
        keys, values = self.query_key_value(memory_BMD, slice(d_model, 3 * d_model)).chunk(2, dim=-1)
        return self._split_heads(keys), self._split_heads(values)

    def combine(self, context_BHQK: Tensor) -> Tensor:
        """Concatenate the contexts [B, H, Q, K] of all heads and multiply by W^O; [B, Q, D]."""
        concatenated_BQD = context_BHQK.transpose(1, 2).flatten(2)
        output_BQD = self.output(concatenated_BQD)
        return output_BQD

    def _split_heads(self, x_BMD: Tensor) -> Tensor:
        """[B, M, D] to [B, H, M, K]: each head gets K of the D coordinates."""
        return x_BMD.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
