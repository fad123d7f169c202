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
    """One entry a decoder layer. Rows N = B * W: row n is a hypothesis of sentence n // W.

    past:        self-attention keys and values of the positions decoded so far, each [N, H, T, K]
    memory:      cross-attention keys and values of the encoder's output, each [B, H, S, K]
    memory_mask: which source positions are real, [B, 1, 1, S]; None where all are
    """

    past: tuple[KeyValue | None, ...]
    memory: tuple[KeyValue, ...]
    memory_mask: Tensor | None

    @property
    def length(self) -> int:
        """Positions decoded so far."""
        return 0 if self.past[0] is None else self.past[0].key_BHMK.shape[2]

    def select(self, sentences_B: Tensor) -> DecoderCache:
        """The cache of these sentences, each with all its rows."""
        n_sentences = self.memory[0].key_BHMK.shape[0]
        rows_BW = torch.arange(self._n_rows, device=sentences_B.device).view(n_sentences, -1)
        return DecoderCache(
            self.reorder(rows_BW[sentences_B].flatten()).past,
            tuple(_select(layer, sentences_B) for layer in self.memory),
            None if self.memory_mask is None else self.memory_mask.index_select(0, sentences_B),
        )

    def reorder(self, rows_N: Tensor) -> DecoderCache:
        """The cache in which row n continues row rows_N[n] of the same sentence; the memory need not move.

        A row may be continued several times, so W may grow.
        """
        return self._replace(past=tuple(None if layer is None else _select(layer, rows_N) for layer in self.past))

    @property
    def _n_rows(self) -> int:
        return (self.memory[0] if self.past[0] is None else self.past[0]).key_BHMK.shape[0]


def extended(past: KeyValue | None, new: KeyValue) -> KeyValue:
    """The keys and values of the past positions and of the new one."""
    if past is None:
        return new
    return KeyValue(
        torch.cat([past.key_BHMK, new.key_BHMK], dim=2), torch.cat([past.value_BHMK, new.value_BHMK], dim=2)
    )


def _select(layer: KeyValue, rows_N: Tensor) -> KeyValue:
    return KeyValue(layer.key_BHMK.index_select(0, rows_N), layer.value_BHMK.index_select(0, rows_N))
