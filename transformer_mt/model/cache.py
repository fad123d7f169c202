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
    """One entry a decoder layer.

    past:        self-attention keys and values of the positions decoded so far, each [N, H, T, K]
    memory:      cross-attention keys and values of the encoder's output, each [N, H, S, K]
    memory_mask: which source positions are real, [N, 1, 1, S]; None where all are
    """

    past: tuple[KeyValue | None, ...]
    memory: tuple[KeyValue, ...]
    memory_mask: Tensor | None

    @property
    def length(self) -> int:
        """Positions decoded so far."""
        return 0 if self.past[0] is None else self.past[0].key_BHMK.shape[2]

    def select(self, rows_N: Tensor) -> DecoderCache:
        """The cache of the hypotheses `rows_N`, in that order; a row may be taken several times."""
        return DecoderCache(
            tuple(None if layer is None else _select(layer, rows_N) for layer in self.past),
            tuple(_select(layer, rows_N) for layer in self.memory),
            None if self.memory_mask is None else self.memory_mask.index_select(0, rows_N),
        )

    def reorder(self, rows_N: Tensor) -> DecoderCache:
        """`select` for rows that stay with their own sentence: the memory need not move."""
        past = tuple(None if layer is None else _select(layer, rows_N) for layer in self.past)
        return self._replace(past=past)


def extended(past: KeyValue | None, new: KeyValue) -> KeyValue:
    """The keys and values of the past positions and of the new one."""
    if past is None:
        return new
    return KeyValue(
        torch.cat([past.key_BHMK, new.key_BHMK], dim=2), torch.cat([past.value_BHMK, new.value_BHMK], dim=2)
    )


def _select(layer: KeyValue, rows_N: Tensor) -> KeyValue:
    return KeyValue(layer.key_BHMK.index_select(0, rows_N), layer.value_BHMK.index_select(0, rows_N))
