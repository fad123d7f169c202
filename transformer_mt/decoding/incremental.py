"""Decoding one token at a time over the paper's modules, with a cache: no prefix is computed twice.

The cache is an argument and a result of `step`, never an attribute of a layer. Rows N are hypotheses, W of each of B
sentences: row n belongs to sentence n // W.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_mt.kernels.attention import attention_to_past
from transformer_mt.model.masks import padding_mask
from transformer_mt.model.transformer import Transformer

ENCODE_CHUNK_TOKENS = 1536  # source tokens, padding included, that a CPU encodes at once


class KeyValue(NamedTuple):
    """What positions offer to attention: keys and values, each [B, H, M, K]."""

    key_BHMK: Tensor
    value_BHMK: Tensor

    def select(self, rows: Tensor) -> KeyValue:
        return KeyValue(self.key_BHMK.index_select(0, rows), self.value_BHMK.index_select(0, rows))


class DecoderCache(NamedTuple):
    """What decoding remembers of its rows.

    memory:       of each layer, cross-attention keys and values of the encoder's output, each [B, H, S, K]
    memory_bias:  added to scores, [B, 1, 1, S]: 0 at real source positions, -inf elsewhere
    past:         of each layer, self-attention keys and values of the positions decoded so far, each [N, H, T, K];
                  empty before the first step
    attention_NS: attention of the newest rows to the source, mean over the heads of the last layer; None unless wanted
    """

    memory: tuple[KeyValue, ...]
    memory_bias: Tensor
    past: tuple[KeyValue, ...] = ()
    attention_NS: Tensor | None = None

    @property
    def length(self) -> int:
        """Positions decoded so far."""
        return self.past[0].key_BHMK.shape[2] if self.past else 0

    def select(self, sentences_B: Tensor) -> DecoderCache:
        """The cache of these sentences, each with all its rows."""
        memory = tuple(layer.select(sentences_B) for layer in self.memory)
        kept = self._replace(memory=memory, memory_bias=self.memory_bias.index_select(0, sentences_B))
        if not self.past:
            return kept
        n_rows, n_sentences = len(self.past[0].key_BHMK), len(self.memory_bias)
        rows_BW = torch.arange(n_rows, device=sentences_B.device).view(n_sentences, -1)
        return kept.reorder(rows_BW[sentences_B].flatten())

    def reorder(self, rows_N: Tensor) -> DecoderCache:
        """The cache in which row n continues row rows_N[n] of the same sentence.

        A row may be continued several times, so there may be more rows than before.
        """
        return self._replace(past=tuple(layer.select(rows_N) for layer in self.past))


class IncrementalDecoder:
    """A model as a step: reads one more target token a row, and gives the logits of the next.

    with_attention: let the cache say where the newest tokens looked.
    """

    def __init__(self, model: Transformer, with_attention: bool = False) -> None:
        self.model, self.with_attention = model, with_attention

    def start(self, source_BS: Tensor) -> DecoderCache:
        """The cache of an empty target: sources encoded, and turned into keys and values, once.

        A CPU takes them in chunks that stay in its own cache, each without padding that none of its sentences needs.
        """
        n_sources, width = source_BS.shape
        n_rows = max(ENCODE_CHUNK_TOKENS // width, 1) if source_BS.device.type == "cpu" else n_sources
        memory: tuple[KeyValue, ...] = ()
        for first in range(0, n_sources, n_rows):
            rows = slice(first, first + n_rows)
            longest = int((source_BS[rows] != self.model.padding).sum(dim=1).max())
            memory_BSD = F.pad(self.model.encode(source_BS[rows, :longest])[0], (0, 0, 0, width - longest))
            layers = [layer.cross_attention.project_memory(memory_BSD) for layer in self.model.decoder.layers]
            if not memory:  # contiguous, unlike the projections: every step reads it, head by head
                shape = (n_sources, *layers[0][0].shape[1:])
                memory = tuple(KeyValue(*(memory_BSD.new_empty(shape) for _ in layer)) for layer in layers)
            for place, (key_BHSK, value_BHSK) in zip(memory, layers, strict=True):
                place.key_BHMK[rows], place.value_BHMK[rows] = key_BHSK, value_BHSK
        may_B11S = padding_mask(source_BS, self.model.padding)
        zeros_B11S = memory[0].key_BHMK.new_zeros(may_B11S.shape)
        return DecoderCache(memory, zeros_B11S.masked_fill_(~may_B11S, -math.inf))

    def step(self, previous_N: Tensor, cache: DecoderCache) -> tuple[Tensor, DecoderCache]:
        """Read one more target token a row; logits [N, V] of the next, and the longer cache."""
        x_N1D = self.model.target_embedding(previous_N[:, None], start=cache.length)
        past: list[KeyValue] = []
        for index in range(len(cache.memory)):
            x_N1D, longer, attention_NS = self._layer_step(index, x_N1D, cache)
            past.append(longer)
        logits_N1V = self.model.generate_logits(self.model.decoder.final_norm(x_N1D))
        return logits_N1V[:, 0], cache._replace(past=tuple(past), attention_NS=attention_NS)

    def _layer_step(self, index: int, x_N1D: Tensor, cache: DecoderCache) -> tuple[Tensor, KeyValue, Tensor | None]:
        """The newest positions through one layer: what comes out, the layer's longer past, attention to the source."""
        layer, memory = self.model.decoder.layers[index], cache.memory[index]
        longer: list[KeyValue] = []
        attention_NS: list[Tensor] = []

        def attend_to_past(x_N1D: Tensor) -> Tensor:
            """The newest position asks all that were decoded, itself included."""
            query_NH1K, key_NH1K, value_NH1K = layer.self_attention.project(x_N1D, cache.length)
            past = KeyValue(key_NH1K, value_NH1K)
            if cache.past:
                past = KeyValue(*(torch.cat(both, dim=2) for both in zip(cache.past[index], past, strict=True)))
            longer.append(past)
            return layer.self_attention.combine(attention_to_past(query_NH1K, *past))

        def attend_to_memory(x_BWD: Tensor) -> Tensor:
            """All rows of a sentence ask its memory in one product."""
            query_BHWK = layer.cross_attention.project_query(x_BWD)
            if self.with_attention:  # if the values are unit vectors, the contexts are the weights
                identity_SS = torch.eye(memory.key_BHMK.shape[2], dtype=x_BWD.dtype, device=x_BWD.device)
                weights_BHWS = attention_to_past(query_BHWK, memory.key_BHMK, identity_SS, cache.memory_bias)
                attention_NS.append(weights_BHWS.float().mean(dim=1).flatten(0, 1))
            return layer.cross_attention.combine(attention_to_past(query_BHWK, *memory, cache.memory_bias))

        x_N1D = layer.around_self_attention(x_N1D, attend_to_past)
        x_BWD = x_N1D.view(len(memory.key_BHMK), -1, x_N1D.shape[-1])  # W rows ask the memory of one sentence
        x_BWD = layer.around_cross_attention(x_BWD, attend_to_memory)
        x_N1D = layer.around_feed_forward(x_BWD, layer.feed_forward).view_as(x_N1D)
        return x_N1D, longer[0], attention_NS[0] if attention_NS else None
