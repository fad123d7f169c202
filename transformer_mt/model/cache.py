"""What decoding one token at a time remembers: keys and values, so that no prefix is computed twice.

A cache is an argument and a result of `Transformer.step`, never an attribute of a layer. Rows are
hypotheses (N); all rows of a cache have the same number of past positions.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from transformer_mt.model.attention import KeyValue


class DecoderCache(NamedTuple):
    """One entry a decoder layer. Rows N = B * W: row n is a hypothesis of sentence n // W; P: rows of the step before.

    past:        self-attention keys and values of the positions decoded so far, each [P, H, T, K]
    memory:      cross-attention keys and values of the encoder's output, each [B, H, S, K]
    memory_mask: which source positions are real, [B, 1, 1, S]; None where all are
    rows_N:      the row of `past` that each row continues; None: its own. They move when the next step copies them
    """

    past: tuple[KeyValue | None, ...]
    memory: tuple[KeyValue, ...]
    memory_mask: Tensor | None
    rows_N: Tensor | None = None

    @property
    def length(self) -> int:
        """Positions decoded so far."""
        return 0 if self.past[0] is None else self.past[0].key_BHMK.shape[2]

    def select(self, sentences_B: Tensor) -> DecoderCache:
        """The cache of these sentences, each with all its rows."""
        n_sentences = self.memory[0].key_BHMK.shape[0]
        rows_BW = torch.arange(self._n_rows, device=sentences_B.device).view(n_sentences, -1)
        return self.reorder(rows_BW[sentences_B].flatten())._replace(
            memory=tuple(_select(layer, sentences_B) for layer in self.memory),
            memory_mask=None if self.memory_mask is None else self.memory_mask.index_select(0, sentences_B),
        )

    def reorder(self, rows_N: Tensor) -> DecoderCache:
        """The cache in which row n continues row rows_N[n] of the same sentence; the memory need not move.

        A row may be continued several times, so W may grow.
        """
        return self._replace(rows_N=rows_N if self.rows_N is None else self.rows_N[rows_N])

    @property
    def _n_rows(self) -> int:
        if self.rows_N is not None:
            return len(self.rows_N)
        return (self.memory[0] if self.past[0] is None else self.past[0]).key_BHMK.shape[0]


def extended(past: KeyValue | None, rows_N: Tensor | None, new: KeyValue) -> KeyValue:
    """The keys and values of the past positions of these rows (None: all), and of the new one."""
    if past is None:
        return new
    return KeyValue(*(_extended(before, rows_N, newest) for before, newest in zip(past, new, strict=True)))


def _extended(past_PHTK: Tensor, rows_N: Tensor | None, new_NH1K: Tensor) -> Tensor:
    if rows_N is None or past_PHTK.device.type != "cpu":
        past_NHTK = past_PHTK if rows_N is None else past_PHTK.index_select(0, rows_N)
        return torch.cat([past_NHTK, new_NH1K], dim=2)
    # In one copy. (`out` with strides is not for every device, nor where gradients are recorded.)
    n_heads, length, width = past_PHTK.shape[1:]
    longer_NHTK = past_PHTK.new_empty(len(rows_N), length + 1, n_heads, width).transpose(1, 2)
    torch.index_select(past_PHTK, 0, rows_N, out=longer_NHTK[:, :, :length])
    longer_NHTK[:, :, length:] = new_NH1K
    return longer_NHTK


def _select(layer: KeyValue, rows_N: Tensor) -> KeyValue:
    return KeyValue(layer.key_BHMK.index_select(0, rows_N), layer.value_BHMK.index_select(0, rows_N))
