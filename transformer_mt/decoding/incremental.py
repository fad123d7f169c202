"""Decoding one token at a time with the modules of `model` and a cache, so that no prefix is computed twice.

The cache is an argument and a result of `step`, never an attribute of a layer. Its rows N are hypotheses. Hypotheses of
one sentence usually share their first tokens, so the keys and values of these are stored once: a family G of rows has
cells C, one for each position that any of its rows decoded, and a mask says which row W of the family may attend to
which cell. Rows that differ from the first token on, such as samples, are families of one row and need no mask.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_mt.config.model import ModelConfig
from transformer_mt.decoding.attention_maps import attention_weights
from transformer_mt.decoding.step import look_steps
from transformer_mt.errors import TmtError
from transformer_mt.kernels.attention import attention_to_past, handmade_attention_to_past
from transformer_mt.kernels.plain import plain
from transformer_mt.kernels.repeated import require_known_attention, small_twin
from transformer_mt.model.layers import DecoderLayer
from transformer_mt.model.masks import padding_mask
from transformer_mt.model.transformer import Transformer

ENCODE_CHUNK_TOKENS = 1536  # source tokens, padding included, that a CPU encodes at once
FAST_CHUNK_TOKENS = 256  # with so many in a chunk, products of matrices are about as fast as with more
SHORT = 0.85  # of the longest sentence of a chunk: shorter ones begin another, which saves their padding
SPARE_STEPS = 4  # new cells have room for this many steps; then they are copied to a larger place
GPU_SPARE_STEPS = 32  # the same where the host waits for the number of cells to copy
MIN_KEYS = 16  # fewer keys are filled up to this number: a CPU's softmax is five times as slow on fewer


class KeyValue(NamedTuple):
    """Keys and values of attention, each [B, H, M, K]."""

    key_BHMK: Tensor
    value_BHMK: Tensor


@dataclass
class Cells:
    """Keys and values of all layers, each [G, H, capacity, K]; the first `used` cells of each family are taken.

    A cache and its continuation share their cells. If two caches continue the same one, the second sees from `used`
    that the next cells are taken, and copies. Cells are written in place, so there is no backward pass through them.
    """

    layers: tuple[KeyValue, ...]
    used: int

    @property
    def capacity(self) -> int:
        return self.layers[0].key_BHMK.shape[2]


class DecoderCache(NamedTuple):
    """The cache of N = B * W rows of B sentences, in G families: one for each sentence, or one for each row.

    memory:       for each layer, cross-attention keys and values of the encoder's output, each [B, H, S, K]
    memory_bias:  [B, 1, 1, S], added to scores: 0 at real source positions, -inf elsewhere
    cells:        self-attention keys and values of the positions decoded so far; None before the first step
    n_cells:      number of cells of each family that belong to this cache
    bias_G1WC:    added to scores: 0 at cells that a row may attend to, -inf elsewhere; None if rows may attend to all
    padded_bias:  in an opened cache, the same for all cells that attention reads, at least MIN_KEYS
    families_G:   which families of `cells` belong to this cache; None: all. The next copy leaves the others out
    length:       number of positions decoded so far
    n_source:     number of source positions, without those that fill up to MIN_KEYS
    newest_W:     in an opened cache, the numbers of its newest cells if only the device may know them; None: the last
    attention_NS: attention from the newest tokens to the source, mean over the heads of the last layer; None if unused
    """

    memory: tuple[KeyValue, ...]
    memory_bias: Tensor
    cells: Cells | None = None
    n_cells: int = 0
    bias_G1WC: Tensor | None = None
    padded_bias: Tensor | None = None
    families_G: Tensor | None = None
    length: int = 0
    n_source: int = 0
    newest_W: Tensor | None = None
    attention_NS: Tensor | None = None

    @classmethod
    def empty(cls, memory: tuple[KeyValue, ...], mask_B11S: Tensor) -> DecoderCache:
        """The cache of an empty target. mask: bool, True at real source positions."""
        example = memory[0].key_BHMK
        n_source = example.shape[2]
        missing = MIN_KEYS - n_source
        if missing > 0:
            mask_B11S = F.pad(mask_B11S, (0, missing), value=False)
            memory = tuple(KeyValue(*(F.pad(x_BHSK, (0, 0, 0, missing)) for x_BHSK in layer)) for layer in memory)
        bias_B11S = example.new_zeros(mask_B11S.shape).masked_fill_(~mask_B11S, -math.inf)
        return cls(memory, bias_B11S, n_source=n_source)

    @property
    def n_families(self) -> int:
        assert self.cells is not None, "rows and families begin with the first step"
        return len(self.cells.layers[0].key_BHMK if self.families_G is None else self.families_G)

    def select(self, sentences_B: Tensor) -> DecoderCache:
        """The cache of these sentences, each with all its rows."""
        kept = self._replace(
            memory=tuple(KeyValue(*(x_BHSK.index_select(0, sentences_B) for x_BHSK in layer)) for layer in self.memory),
            memory_bias=self.memory_bias.index_select(0, sentences_B),
        )
        if self.cells is None:
            return kept
        families_BX = torch.arange(self.n_families, device=sentences_B.device).view(len(self.memory[0].key_BHMK), -1)
        families_G = families_BX[sentences_B].flatten()
        bias_G1WC = None if self.bias_G1WC is None else self.bias_G1WC[families_G]
        return kept._replace(bias_G1WC=bias_G1WC, families_G=self._in_cells(families_G))

    def reorder(self, rows_N: Tensor) -> DecoderCache:
        """The cache in which row n continues row rows_N[n] of the same sentence.

        Several rows may continue the same one, so W may grow. Cells stay where they are and only the mask changes,
        unless each row is a family.
        """
        if self.cells is None:
            return self
        if self.n_families > len(self.memory[0].key_BHMK):
            return self._replace(families_G=self._in_cells(rows_N))
        bias_G1WC = self.bias_G1WC
        if bias_G1WC is None:
            bias_G1WC = self.memory[0].key_BHMK.new_zeros(self.n_families, 1, 1, self.n_cells)
        return self._replace(bias_G1WC=bias_G1WC.flatten(0, 2)[rows_N].view(self.n_families, 1, -1, self.n_cells))

    def opened(self, n_rows: int) -> DecoderCache:
        """The cache with a new cell for each row, to which only that row may attend; `write` fills it.

        The cells are copied first if they have no room, or if another cache has taken the next ones.
        """
        width = 1 if self.cells is None else n_rows // self.n_families
        cache = self if self._has_room(width) else self._moved(n_rows // width, width)
        assert cache.cells is not None
        cache.cells.used += width
        bias_G1WC = cache.bias_G1WC
        if bias_G1WC is not None:
            own_WW = torch.full((width, width), -math.inf, dtype=bias_G1WC.dtype, device=bias_G1WC.device)
            own_G1WW = own_WW.fill_diagonal_(0.0).expand(len(bias_G1WC), 1, -1, -1)
            bias_G1WC = torch.cat([bias_G1WC, own_G1WW], dim=3)
        n_cells, padded_bias = cache.n_cells + width, bias_G1WC
        if n_cells < MIN_KEYS:
            padded_bias = cache.memory[0].key_BHMK.new_zeros(1, 1, 1, n_cells) if bias_G1WC is None else bias_G1WC
            padded_bias = F.pad(padded_bias, (0, MIN_KEYS - n_cells), value=-math.inf)
        return cache._replace(n_cells=n_cells, bias_G1WC=bias_G1WC, padded_bias=padded_bias, length=cache.length + 1)

    def write(self, layer: int, newest: KeyValue) -> KeyValue:
        """Fill a layer's newest cells with keys and values [G, H, W, K]; returns the layer's cells, [G, H, C, K]."""
        assert self.cells is not None
        for place_GHCK, new_GHWK in zip(self.cells.layers[layer], newest, strict=True):
            if self.newest_W is None:
                place_GHCK[:, :, self.n_cells - new_GHWK.shape[2] : self.n_cells] = new_GHWK
            else:
                place_GHCK.index_copy_(2, self.newest_W, new_GHWK)
        return KeyValue(*(place_GHCK[:, :, : max(self.n_cells, MIN_KEYS)] for place_GHCK in self.cells.layers[layer]))

    def _has_room(self, width: int) -> bool:
        cells = self.cells
        if cells is None or self.families_G is not None or cells.used != self.n_cells:
            return False
        return self.n_cells + width <= cells.capacity

    def _moved(self, n_families: int, width: int) -> DecoderCache:
        """Copied to new cells with room for some steps, mostly without cells that no row may attend to.

        Where it would make the host wait, the others are left out only if the room is used up.
        """
        example = self.memory[0].key_BHMK
        n_heads, head_width = example.shape[1], example.shape[3]
        waits, room = look_steps(example.device) > 1, 0 if self.cells is None else self.cells.capacity
        if waits and self.n_cells + width <= room:
            kept_GC, bias_G1WC, capacity = self._all_cells(n_families), self.bias_G1WC, room
        else:
            kept_GC, bias_G1WC = self._cells_in_use(n_families)
            spare = GPU_SPARE_STEPS if waits else SPARE_STEPS
            capacity = max(kept_GC.shape[1] + spare * width, MIN_KEYS)
        n_cells = kept_GC.shape[1]
        shape = (n_families, n_heads, capacity, head_width)
        if self.cells is None:
            places = tuple(KeyValue(example.new_zeros(shape), example.new_zeros(shape)) for _ in self.memory)
        else:
            families_G = torch.arange(n_families, device=kept_GC.device) if self.families_G is None else self.families_G
            heads_GH = families_G[:, None] * n_heads + torch.arange(n_heads, device=kept_GC.device)
            # The other places get copies of any cells: no row may attend to them before they are written.
            others_C = torch.arange(capacity - n_cells, device=kept_GC.device) % room
            moved_GC = torch.cat([kept_GC, others_C.expand(n_families, -1)], dim=1)
            index = (heads_GH[:, :, None] * room + moved_GC[:, None]).flatten()
            places = tuple(
                KeyValue(*(old_EHCK.flatten(0, 2).index_select(0, index).view(shape) for old_EHCK in layer))
                for layer in self.cells.layers
            )
        return self._replace(cells=Cells(places, n_cells), n_cells=n_cells, bias_G1WC=bias_G1WC, families_G=None)

    def _cells_in_use(self, n_families: int) -> tuple[Tensor, Tensor | None]:
        """Indices [G, C] of the cells that any row may attend to, and their bias. Families with fewer add others."""
        bias_G1WC = self.bias_G1WC
        if bias_G1WC is None:
            return self._all_cells(n_families), None
        in_use_GC = bias_G1WC.amax(dim=(1, 2)) == 0
        order_GC = in_use_GC.to(torch.int8).argsort(dim=1, descending=True, stable=True)
        kept_GC = order_GC[:, : int(in_use_GC.sum(dim=1).max())]
        return kept_GC, bias_G1WC.gather(3, kept_GC[:, None, None].expand(-1, 1, bias_G1WC.shape[2], -1))

    def _all_cells(self, n_families: int) -> Tensor:
        return torch.arange(self.n_cells, device=self.memory[0].key_BHMK.device).expand(n_families, -1)

    def _in_cells(self, families_G: Tensor) -> Tensor:
        """Families of this cache as families of `cells`."""
        return families_G if self.families_G is None else self.families_G[families_G]


class IncrementalDecoder:
    """A model as a step function: it reads one target token for each row, and returns the logits of the next.

    with_attention: whether caches have `attention_NS`
    """

    def __init__(self, model: Transformer, with_attention: bool = False) -> None:
        require_known_attention(model)
        self.model, self.with_attention = model, with_attention

    @cached_property
    def _plain(self) -> Transformer:
        return plain(self.model)

    def start(self, source_BS: Tensor) -> DecoderCache:
        """Encode sources [B, S] and compute the keys and values of the memory; returns the cache of an empty target.

        Each source must have at least one token that is no padding, as all have with their end token.
        A CPU encodes chunks of sentences that fit its own cache, each without padding that no sentence of it needs.
        """
        n_sources, width = source_BS.shape
        memory: tuple[KeyValue, ...] = ()
        for first, end, longest in self._chunks(source_BS):
            memory_BSD = self.model.encode(source_BS[first:end, :longest])[0]
            layers = [layer.cross_attention.project_memory(memory_BSD) for layer in self.model.decoder.layers]
            if not memory:  # contiguous, unlike the projections, because every step reads it head by head
                _, n_heads, _, head_width = layers[0][0].shape
                shape = n_sources, n_heads, width, head_width
                memory = tuple(KeyValue(*(memory_BSD.new_zeros(shape) for _ in layer)) for layer in layers)
            for places, projected in zip(memory, layers, strict=True):
                for place_BHSK, new_BHSK in zip(places, projected, strict=True):
                    place_BHSK[first:end, :, :longest] = new_BHSK
        return DecoderCache.empty(memory, padding_mask(source_BS, self.model.padding))

    def release(self) -> None:
        """Give back what only steps need. No cache of this decoder may be used afterwards."""

    def _chunks(self, source_BS: Tensor) -> Iterator[tuple[int, int, int]]:
        """The chunks that are encoded at once: first sentence, first one after it, longest length.

        Where a sentence is much shorter than the longest before it, another chunk begins, if this one is large enough.
        """
        n_sources, width = source_BS.shape
        if source_BS.device.type != "cpu":
            yield 0, n_sources, width
            return
        lengths, first, longest = (source_BS != self.model.padding).sum(dim=1).tolist(), 0, 0
        for number, length in enumerate(lengths):
            rows = number - first
            is_short = rows * longest >= FAST_CHUNK_TOKENS and length <= SHORT * longest
            if rows and (is_short or (rows + 1) * max(length, longest) > ENCODE_CHUNK_TOKENS):
                yield first, number, longest
                first, longest = number, 0
            longest = max(longest, length)
        yield first, n_sources, longest

    def step(self, previous_N: Tensor, cache: DecoderCache) -> tuple[Tensor, DecoderCache]:
        """Read one more target token for each row, ids [N]; returns logits [N, V] of the next, and the longer cache."""
        cache = cache.opened(len(previous_N))
        logits_NV, attention_NS = self.compute(previous_N, cache)
        return logits_NV, cache._replace(attention_NS=attention_NS)

    def compute(self, previous_N: Tensor, cache: DecoderCache) -> tuple[Tensor, Tensor | None]:
        """The logits [N, V], and the attention [N, S] if caches have it. Fills the newest cells of an opened cache."""
        model = self._plain
        attend = handmade_attention_to_past if model.config.attention == "handmade" else attention_to_past
        x_N1D = model.target_embedding(previous_N[:, None], start=cache.length - 1)
        for index, layer in enumerate(model.decoder.layers):
            is_last = index == len(cache.memory) - 1
            x_N1D, attention_NS = _layer_step(layer, x_N1D, cache, index, attend, self.with_attention and is_last)
        return model.generate_logits(model.decoder.final_norm(x_N1D))[:, 0], attention_NS


@torch.no_grad()
def require_same_steps(config: ModelConfig) -> None:
    """Raises TmtError unless steps compute what a model with these options does. Takes some milliseconds."""
    model = small_twin(config)
    source_BS, target_BT = (torch.tensor([ids]) for ids in ([4, 5, 6, 7], [8, 4, 7]))
    decoder, found = IncrementalDecoder(model), list[Tensor]()
    cache = decoder.start(source_BS)
    for place in range(target_BT.shape[1]):
        logits_BV, cache = decoder.step(target_BT[:, place], cache)
        found.append(logits_BV)
    known_BTV = model.generate_logits(model(source_BS, target_BT))
    if not torch.allclose(torch.stack(found, dim=1), known_BTV):
        raise TmtError(
            "search would compute something else than the layers in model/, so a change of these would be lost",
            place="transformer_mt/model",
            remedy="Change `_layer_step` in decoding/incremental.py in the same way: see `A variant of the model` in"
            " CONTRIBUTING.md.",
        )


def _layer_step(
    layer: DecoderLayer,
    x_N1D: Tensor,
    cache: DecoderCache,
    index: int,
    attend: Callable[..., Tensor],
    with_attention: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """A decoder layer at the newest position, x [N, 1, D]; writes its keys and values into the opened cache.

    Returns [N, 1, D], and its attention to the source [N, S] (None unless `with_attention`).
    """
    attention_NS: Tensor | None = None

    def attend_to_past(x_N1D: Tensor) -> Tensor:
        query_NH1K, *new = layer.self_attention.project(x_N1D, cache.length - 1)
        key_GHCK, value_GHCK = cache.write(index, KeyValue(*(_by_family(x_NH1K, cache.n_families) for x_NH1K in new)))
        query_GHWK = _by_family(query_NH1K, cache.n_families)
        context_GHWK = attend(query_GHWK, key_GHCK, value_GHCK, cache.padded_bias)
        return layer.self_attention.combine(context_GHWK).view_as(x_N1D)

    def attend_to_memory(x_BWD: Tensor) -> Tensor:
        nonlocal attention_NS
        query_BHWK = layer.cross_attention.project_query(x_BWD)
        if with_attention:
            weights_BHWS = attention_weights(attend, query_BHWK, memory.key_BHMK, cache.memory_bias)
            attention_NS = weights_BHWS.float().mean(dim=1).flatten(0, 1)[:, : cache.n_source]
        return layer.cross_attention.combine(attend(query_BHWK, *memory, cache.memory_bias))

    memory = cache.memory[index]
    x_N1D = layer.around_self_attention(x_N1D, attend_to_past)
    x_BWD = x_N1D.view(memory.key_BHMK.shape[0], -1, x_N1D.shape[-1])  # the W rows of a sentence share its memory
    x_BWD = layer.around_cross_attention(x_BWD, attend_to_memory)
    return layer.around_feed_forward(x_BWD, layer.feed_forward).view_as(x_N1D), attention_NS


def _by_family(x_NH1K: Tensor, n_families: int) -> Tensor:
    """[N, H, 1, K] to [G, H, W, K]: the rows of a family take the place of positions."""
    n_rows, n_heads, _, head_width = x_NH1K.shape
    return x_NH1K.view(n_families, n_rows // n_families, n_heads, head_width).transpose(1, 2)
