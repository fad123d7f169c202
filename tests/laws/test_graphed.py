"""Laws of steps as graphs: a search finds the same. Recorded operations of a step stand in for a CUDA graph.

As in a graph, Python's numbers and the places of tensors stay as they were when the step was recorded.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tests.laws.test_search_model import METHODS, model, requests, same
from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding import batches
from transformer_mt.decoding.batches import search
from transformer_mt.decoding.graphed import GraphedDecoder
from transformer_mt.decoding.step import GPU_LOOK_STEPS, LOOK_STEPS
from transformer_mt.model.transformer import Transformer


class RecordedDecoder(GraphedDecoder):
    """Counts its graphs, and how often they run."""

    graphs = runs = 0

    def __init__(self, model: Transformer, with_attention: bool = False) -> None:
        super().__init__(model, with_attention, self.record)

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        def compute() -> list[torch.Tensor]:
            work()
            return self.outputs()

        operations = make_fx(compute)()
        places = self.outputs()
        RecordedDecoder.graphs += 1

        def replay() -> None:
            RecordedDecoder.runs += 1
            for place, found in zip(places, operations(), strict=True):
                place.copy_(found)

        return replay

    def outputs(self) -> list[torch.Tensor]:
        assert self._held is not None
        assert self._held.found is not None
        return [one for one in self._held.found if one is not None]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> type[RecordedDecoder]:
    monkeypatch.setattr(batches, "IncrementalDecoder", RecordedDecoder)
    monkeypatch.setitem(LOOK_STEPS, "cpu", GPU_LOOK_STEPS)
    RecordedDecoder.graphs = RecordedDecoder.runs = 0
    return RecordedDecoder


@pytest.mark.parametrize("decoding", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_a_search_finds_the_same_with_graphs(
    decoding: DecodingConfig, positions: str, recorded: type[RecordedDecoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    transformer, sentences = model(positions=positions), requests(12)
    with_graphs = search([transformer], sentences, decoding)
    assert recorded.runs > 2 * recorded.graphs > 0
    monkeypatch.undo()
    assert same(with_graphs, search([transformer], sentences, decoding))
