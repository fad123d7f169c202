"""Searches whose steps are CUDA graphs, on a GPU. `laws/test_graphed.py` has the same law without one."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from transformer_mt.config.training import RuntimeConfig
from transformer_mt.decoding import batches
from transformer_mt.decoding.batches import search
from transformer_mt.decoding.incremental import IncrementalDecoder
from transformer_mt.decoding.request import Request
from transformer_mt.kernels.build import build_model
from transformer_mt.runtime.device import set_up
from transformer_mt.runtime.graphs import GraphPool
from transformer_mt.text.vocabulary import EOS

pytestmark = pytest.mark.gpu

SMALL = {"d_model": 64, "n_heads": 4, "d_ff": 128, "encoder_layers": 2, "decoder_layers": 2}
VOCABULARY = 300


@pytest.fixture
def model(make_config: Callable[..., Any]) -> Callable[..., Any]:
    def make(**sizes: Any) -> Any:
        device = set_up(RuntimeConfig(device="cuda", precision="float32", tf32=False)).device
        torch.manual_seed(1)
        built = build_model(make_config({**SMALL, **sizes}), VOCABULARY, VOCABULARY, device).eval()
        with torch.no_grad():
            built.generator.bias[EOS] = 1.0  # translations end at any length
        return built

    return make


def requests(number: int) -> list[Request]:
    generator = random.Random(5)
    lengths = [generator.randint(3, 40) for _ in range(number)]
    return [Request([*(generator.randint(4, VOCABULARY - 1) for _ in range(length)), EOS]) for length in lengths]


def graphs_made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Has an element for each graph from now on."""
    made, captured = list[Any](), GraphPool.captured
    monkeypatch.setattr(GraphPool, "captured", lambda *given: made.append(given) or captured(*given))
    return made


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
@pytest.mark.parametrize(
    "options", [{"beam": 1}, {"beam": 5}, {"beam": 3, "coverage_penalty": 0.4}, {"method": "sample", "top_k": 1}]
)
@pytest.mark.parametrize("count", [1, 900])
def test_a_search_finds_the_same_with_graphs(
    count: int,
    options: dict[str, Any],
    positions: str,
    model: Callable[..., Any],
    make_config: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = graphs_made(monkeypatch)
    transformer = model(positions=positions)
    decoding = make_config(SMALL).decoding.model_copy(update={"batch_tokens": 6000, **options})
    with_graphs = search([transformer], requests(count), decoding)
    assert made
    monkeypatch.setattr(batches, "GraphedDecoder", IncrementalDecoder)
    without = search([transformer], requests(count), decoding)
    same = sum(one[0].ids == other[0].ids for one, other in zip(with_graphs, without, strict=True))
    assert same >= 0.98 * count, "rounding may decide between two tokens"


def test_two_models_search_together_with_graphs(
    model: Callable[..., Any], make_config: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    members, decoding = [model(), model(d_model=32)], make_config(SMALL).decoding.model_copy(update={"beam": 3})
    made = graphs_made(monkeypatch)
    with_graphs = search(members, requests(200), decoding)
    assert made
    monkeypatch.setattr(batches, "GraphedDecoder", IncrementalDecoder)
    without = search(members, requests(200), decoding)
    assert sum(one[0].ids == other[0].ids for one, other in zip(with_graphs, without, strict=True)) >= 196


@pytest.mark.parametrize("count", [1, 800])
def test_memory_does_not_grow_from_search_to_search(
    count: int, model: Callable[..., Any], make_config: Callable[..., Any]
) -> None:
    transformer, decoding = model(), make_config(SMALL).decoding.model_copy(update={"beam": 5})
    held = []
    for _ in range(12):
        search([transformer], requests(count), decoding)
        gc.collect()
        held.append((torch.cuda.memory_allocated(), torch.cuda.memory_reserved()))
    assert held[3] == held[-1]


def test_without_memory_for_a_graph_a_search_goes_on(
    model: Callable[..., Any], make_config: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    decoding = make_config(SMALL).decoding.model_copy(update={"beam": 5})
    transformer = model()
    expected = search([transformer], requests(60), decoding)
    step, capturing, tries = IncrementalDecoder.compute, torch.cuda.is_current_stream_capturing, 0

    def compute(self: IncrementalDecoder, previous_N: Any, cache: Any) -> Any:
        nonlocal tries
        found = step(self, previous_N, cache)
        if capturing():
            tries += 1
            raise torch.OutOfMemoryError("CUDA out of memory")
        return found

    monkeypatch.setattr(IncrementalDecoder, "compute", compute)
    found = search([transformer], requests(60), decoding)
    assert tries == 1
    assert sum(one[0].ids == other[0].ids for one, other in zip(found, expected, strict=True)) >= 58
    sampled = search([transformer], requests(20), decoding.model_copy(update={"method": "sample"}))
    assert all(one[0].ids for one in sampled), "the random generator still works"
