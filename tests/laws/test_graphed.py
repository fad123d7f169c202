"""Laws of steps as graphs: a search finds the same. Recorded operations of a step stand in for a CUDA graph.

As in a graph, Python's numbers and the places of tensors stay as they were when the step was recorded.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tests.laws.test_search_model import EOS, METHODS, model, requests, same
from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding import batches, graphed
from transformer_mt.decoding.batches import search
from transformer_mt.decoding.graphed import GraphedDecoder
from transformer_mt.decoding.request import Constraint, Request
from transformer_mt.decoding.step import GPU_LOOK_STEPS, LOOK_STEPS
from transformer_mt.model.positions import RotaryPositions


class RecordedDecoder(GraphedDecoder):
    """Counts its graphs, and how often they run."""

    graphs = runs = 0

    def _graph_of(self, work: Callable[[], None]) -> Callable[[], None]:
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
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_a_search_finds_the_same_with_graphs(
    decoding: DecodingConfig, positions: str, recorded: type[RecordedDecoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    transformer, sentences = model(positions=positions), requests(12)
    with_graphs = search([transformer], sentences, decoding)
    assert recorded.runs > 2 * recorded.graphs > 0
    monkeypatch.undo()
    assert same(with_graphs, search([transformer], sentences, decoding))


CONSTRAINED = [Request((5, 6, 7, EOS), constraints=[Constraint(((9,),))]), Request((8, 6, EOS), (4, 5))]
LONG = [Request((5, *range(4, 22), *range(4, 20), EOS))]
OTHERS = {
    "several models": (["learned", "rotary", "sinusoidal"], requests(8), METHODS["beam"]),
    "learned positions": (["learned"], requests(8), METHODS["greedy"]),
    "constraints and a prefix": (["rotary"], [*CONSTRAINED, *requests(6)], METHODS["beam"]),
    "positions beyond the tables, rotary": (["rotary"], LONG, DecodingConfig(beam=2, max_length_ratio=8)),
    "positions beyond the tables": (["sinusoidal"], LONG, DecodingConfig(beam=1, max_length_ratio=8)),
}


@pytest.mark.parametrize(("positions", "sentences", "decoding"), OTHERS.values(), ids=OTHERS)
def test_it_finds_the_same_in_other_cases(
    positions: list[str],
    sentences: list[Request],
    decoding: DecodingConfig,
    recorded: type[RecordedDecoder],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models = [copy.deepcopy(model(seed, kind)) for seed, kind in enumerate(positions, start=1)]
    if sentences is LONG:
        for one in models:
            one.max_positions = None
            one.generator.bias.data[EOS] = -30.0  # so that the translation becomes long
            for layer in one.decoder.layers:
                if layer.self_attention.rotary is not None:
                    layer.self_attention.rotary = RotaryPositions(one.config.d_model // one.config.n_heads, 256)
    with_graphs = search(models, sentences, decoding)
    assert recorded.runs > 2 * recorded.graphs > 0
    assert sentences is not LONG or len(with_graphs[0][0].ids) > 256
    monkeypatch.undo()
    assert same(with_graphs, search(models, sentences, decoding))


def test_without_memory_for_a_graph_a_search_goes_on(
    recorded: type[RecordedDecoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def fail(self: GraphedDecoder, work: Callable[[], None]) -> Callable[[], None]:
        tries.append(work)
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(recorded, "_graph_of", fail)
    found = search([model()], requests(12), METHODS["beam"])
    assert len(tries) == 1
    monkeypatch.undo()
    assert same(found, search([model()], requests(12), METHODS["beam"]))


def test_a_search_without_memory_for_a_graph_gives_back_what_the_graph_had(monkeypatch: pytest.MonkeyPatch) -> None:
    happened, run = list[str](), GraphedDecoder._run

    class FullPool:
        def captured(self, work: Callable[[], None]) -> None:
            raise torch.OutOfMemoryError("CUDA out of memory")

        def give_back(self) -> None:
            happened.append("pool")

    monkeypatch.setattr(graphed, "GraphPool", SimpleNamespace(take=lambda device: FullPool()))
    monkeypatch.setattr(graphed, "give_back_memory", lambda: happened.append("memory"))
    monkeypatch.setattr(GraphedDecoder, "_run", lambda self, held: happened.append("step") or run(self, held))
    monkeypatch.setattr(batches, "IncrementalDecoder", GraphedDecoder)
    search([model()], requests(12), METHODS["beam"])
    assert happened[-3:] == ["pool", "memory", "step"], "before the search goes on"
    assert happened.count("pool") == 1


def test_large_batches_have_no_graph_and_hold_nothing(
    recorded: type[RecordedDecoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With several hypotheses of a sentence, larger ones have one."""
    monkeypatch.setattr(graphed, "MOST_WORK", 10 * 16**2)
    monkeypatch.setattr(graphed, "MOST_WORK_OF_BEAM", 20 * 16**2)
    for sentences, width, held in ((4, 1, True), (12, 1, False), (4, 3, True), (8, 3, False)):
        decoder = recorded(model())
        with torch.inference_mode():
            cache = decoder.start(torch.full((sentences, 3), 5))
            for rows in (1, width):
                cache = cache.reorder(torch.arange(sentences).repeat_interleave(rows))
                _, cache = decoder.step(torch.full((sentences * rows,), 5), cache)
        assert (decoder._held is not None) is held
