"""Decoding steps as CUDA graphs, which a GPU runs without the program.

The program starts each kernel of a step, which takes it longer than the GPU computes a small one. A graph has all of
them, with the addresses of all tensors, and starts at once. What changes from step to step is therefore copied to
tensors that stay where they are: the tokens, the encoding of the position, the numbers of the newest cells, and what
each row may attend to. A graph fits until a search moves its cells, to leave out finished sentences or for more room.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from transformer_mt.decoding.incremental import DecoderCache, IncrementalDecoder
from transformer_mt.errors import is_out_of_memory
from transformer_mt.kernels.attention import MANY_HEADS
from transformer_mt.model.positions import RotaryPositions, SinusoidalPositions, angles
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.graphs import GraphPool, give_back_memory

# Rows times the square of d_model: with more, a step takes a GPU longer than the program. With several hypotheses of a
# sentence, the program also chooses among them, and reorders them.
MOST_WORK, MOST_WORK_OF_BEAM = 2**30, 2**33

Work = Callable[[], None]


class GraphedDecoder(IncrementalDecoder):
    """An `IncrementalDecoder` whose steps are graphs, on a CUDA GPU. The next step overwrites logits and attention."""

    def __init__(self, model: Transformer, with_attention: bool = False) -> None:
        super().__init__(model, with_attention)
        self._pool: GraphPool | None = None
        self._held: _StaticTensors | None = None
        self._ran: set[tuple[int, ...]] = set()  # sizes of steps that have run without a graph
        self._has_memory = True

    def start(self, source_BS: Tensor) -> DecoderCache:
        self._held = None  # it keeps the cells and the memory of the last sentences
        return super().start(source_BS)

    def release(self) -> None:
        self._held = None
        if self._pool is not None:
            self._pool.give_back()
        self._pool = None

    def compute(self, previous_N: Tensor, cache: DecoderCache) -> tuple[Tensor, Tensor | None]:
        most = MOST_WORK if len(previous_N) == cache.n_families else MOST_WORK_OF_BEAM
        if not self._has_memory or len(previous_N) * self.model.config.d_model**2 > most:
            self._held = None
            return super().compute(previous_N, cache)
        held = self._held
        if held is None or not held.fits(previous_N, cache):
            self._held = None
            self._held = held = _StaticTensors.of(previous_N, cache)
        held.take(previous_N, cache)
        self._place.move(cache.length - 1)
        size = _size(previous_N, cache)
        if held.replay is None and cache.length > 1 and size in self._ran:
            held.replay = self._graph_or_none(held)
        if held.replay is not None:
            held.replay()
        else:  # so that kernels are compiled and chosen before there is a graph of them
            self._ran.add(size)
            self._run(held)
        assert held.found is not None
        return held.found

    @cached_property
    def _place(self) -> OnePlace:
        return OnePlace(self.model)

    @cached_property
    def _static(self) -> IncrementalDecoder:
        return IncrementalDecoder(self._place.model, self.with_attention)

    def _run(self, held: _StaticTensors) -> None:
        held.found = self._static.compute(held.previous_N, held.cache)

    def _graph_or_none(self, held: _StaticTensors) -> Work | None:
        """None if memory runs out: a graph cannot use what PyTorch keeps for other work."""
        try:
            return self._graph_of(lambda: self._run(held))
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        self._has_memory = False
        self.release()  # outside of `except`, where the error would keep the tensors of the failed graph
        give_back_memory()
        return None

    def _graph_of(self, work: Work) -> Work:
        """Does this work when it is called; not now."""
        self._pool = self._pool or GraphPool.take(self.model.generator.weight.device)
        replay: Work = self._pool.captured(work).replay
        return replay


@dataclass
class _StaticTensors:
    """The tensors of a graph.

    previous_N: what a step reads
    cell_index_C: the numbers of all cells
    newest_W:   those of the newest
    bias_GxWC:  hides cells that are not in use yet, or not by a row; all rows share one if they may attend to all cells
    cache:      the memory and the cells of a cache, for a step at the first position
    found:      logits and attention of the newest step
    replay:     computes them again; None before there is a graph
    """

    previous_N: Tensor
    cell_index_C: Tensor
    newest_W: Tensor
    bias_GxWC: Tensor
    cache: DecoderCache
    found: tuple[Tensor, Tensor | None] | None = None
    replay: Work | None = None

    @classmethod
    def of(cls, previous_N: Tensor, cache: DecoderCache) -> _StaticTensors:
        assert cache.cells is not None
        n_cells, example = cache.cells.capacity, cache.memory[0].key_BHMK
        cell_index_C = torch.arange(n_cells, device=previous_N.device)
        newest_W = cell_index_C[: len(previous_N) // cache.n_families].clone()
        bias_GxWC = example.new_full((*_rows_of(cache), n_cells), -math.inf)
        static = cache._replace(n_cells=n_cells, padded_bias=bias_GxWC, length=1, newest_W=newest_W)
        return cls(previous_N.clone(), cell_index_C, newest_W, bias_GxWC, static)

    def fits(self, previous_N: Tensor, cache: DecoderCache) -> bool:
        """Whether the cells and the memory are still those of this cache, with as many rows."""
        same = cache.cells is self.cache.cells and cache.memory is self.cache.memory
        return same and len(previous_N) == len(self.previous_N) and self.bias_GxWC.shape[:3] == _rows_of(cache)

    def take(self, previous_N: Tensor, cache: DecoderCache) -> None:
        """Copy what the newest step of an opened cache has."""
        self.previous_N.copy_(previous_N)
        self.newest_W.copy_(self.cell_index_C[cache.n_cells - len(self.newest_W) : cache.n_cells])
        in_use_GxWC = self.bias_GxWC[..., : cache.n_cells]
        if cache.bias_G1WC is None:
            in_use_GxWC.zero_()
        else:
            in_use_GxWC.copy_(cache.bias_G1WC)


def _size(previous_N: Tensor, cache: DecoderCache) -> tuple[int, ...]:
    """What decides which kernels run: queries of a family, rows up to a factor of 2, and their attention kernel."""
    sentences, heads, *_ = cache.memory[0].key_BHMK.shape
    have_many = (groups * heads >= MANY_HEADS for groups in (sentences, cache.n_families))
    return len(previous_N) // cache.n_families, len(previous_N).bit_length(), *have_many


def _rows_of(cache: DecoderCache) -> tuple[int, ...]:
    """The shape of a bias for the cache, without cells."""
    return (1, 1, 1) if cache.bias_G1WC is None else tuple(cache.bias_G1WC.shape[:3])


class OnePlace:
    """A model whose modules for positions know one position only, which `move` changes; all else is shared.

    model: to be called with the position 0, whatever the position
    """

    def __init__(self, model: Transformer) -> None:
        self._embedding, self._attention = model.target_embedding, model.decoder.layers[0].self_attention
        weight, added, rotary = model.generator.weight, self._embedding.positions, self._attention.rotary
        self._added = None if added is None else SinusoidalPositions(weight.shape[1], 1).to(weight)
        self._rotary = None if rotary is None else RotaryPositions(2 * rotary.angle_PI.shape[1], 1).to(rotary.angle_PI)
        layers = [
            _with(layer, self_attention=_with(layer.self_attention, rotary=self._rotary))
            for layer in model.decoder.layers
        ]
        self.model: Transformer = _with(
            model,
            target_embedding=_with(self._embedding, positions=self._added),
            decoder=_with(model.decoder, layers=nn.ModuleList(layers)),
        )

    def move(self, position: int) -> None:
        if self._added is not None:
            assert self._embedding.positions is not None
            self._added.table_PD.copy_(self._embedding.positions(position, 1))
        if self._rotary is not None:
            assert self._attention.rotary is not None
            known_PI, width = self._attention.rotary.angle_PI, 2 * self._rotary.angle_PI.shape[1]
            is_known = position < len(known_PI)
            self._rotary.angle_PI.copy_(known_PI[position] if is_known else angles(1, width, position))


def _with(module: Any, **parts: nn.Module | None) -> Any:
    """The same module with some of its parts exchanged; the original stays as it is."""
    twin = copy.copy(module)
    twin._modules = {**module._modules, **parts}
    return twin
