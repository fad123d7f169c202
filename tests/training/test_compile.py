"""A compiled model is one graph for all shapes, in training and in validation, alone and in parallel.

The parts are those for GPUs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.backends.debugging import aot_eager
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close

from transformer_mt.config.model import ModelConfig
from transformer_mt.config.training import RuntimeConfig
from transformer_mt.data.batching import Batch
from transformer_mt.kernels.build import parts_for
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime import device as device_module
from transformer_mt.runtime.device import compiler_problem, compiles
from transformer_mt.training.step import TrainingStep

SIZES = {"d_model": 16, "n_heads": 2, "d_ff": 24, "encoder_layers": 1, "decoder_layers": 1}
VOCABULARY = 30
CPU, GPU = torch.device("cpu"), torch.device("cuda")
of_pytorch = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Guards may run slower:RuntimeWarning")


class Graphs:
    """A backend that counts the graphs it gets, and runs them with PyTorch's own kernels.

    with_backward: also make graphs of the backward pass, as every backend for GPUs does
    """

    def __init__(self, with_backward: bool = False) -> None:
        self.count, self.with_backward = 0, with_backward

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        self.count += any(node.op.startswith("call") for node in graph.graph.nodes)
        return aot_eager(graph, inputs) if self.with_backward else graph.forward


@pytest.fixture(autouse=True)
def _forget_compiled_code() -> Iterator[None]:
    yield
    torch._dynamo.reset()


def model_of(**sizes: Any) -> Transformer:
    torch.manual_seed(3)
    config = ModelConfig.model_validate({**SIZES, **sizes})
    return Transformer(config, VOCABULARY, VOCABULARY, max_positions=128, parts=parts_for(config, GPU)).train()


def batches(number: int, seed: int = 1) -> Iterator[Batch]:
    """Batches of many shapes: half of them with padding in the source."""
    generator = random.Random(seed)
    for _ in range(number):
        sentences, source, target = (generator.randint(2, most) for most in (6, 40, 40))
        source_BS = torch.randint(4, VOCABULARY, (sentences, source))
        source_BS[0, source - source // 3 :] = 0 if generator.random() < 0.5 else 5
        yield Batch.of(source_BS, torch.randint(4, VOCABULARY, (sentences, target)))


def update(step: torch.nn.Module, batch: Batch) -> Tensor:
    """The loss of a batch; adds to the gradients."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = step(*batch).smoothed
    loss.backward()
    return loss.detach()


@pytest.mark.slow
@of_pytorch
@pytest.mark.parametrize(
    "sizes", [{}, {"positions": "rotary", "normalization": "rms", "activation": "swiglu", "norm": "pre"}]
)
def test_fifty_shapes_are_one_graph_and_validation_another(sizes: dict[str, Any]) -> None:
    graphs, model = Graphs(), model_of(**sizes)
    model.compile(backend=graphs, dynamic=True, fullgraph=True)  # fullgraph: a break in the graph is an error
    training, validation = TrainingStep(model, 0.1), TrainingStep(model, 0.0)
    for batch in batches(50):
        update(training, batch)
        assert graphs.count == 1
    for seed in (2, 3):
        model.eval()
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
            for batch in batches(4, seed):
                validation(*batch)
        model.train()
        for batch in batches(4, seed):
            update(training, batch)
        assert graphs.count == 2  # one for training, one for validation, however often they alternate


@pytest.mark.slow
@of_pytorch
def test_in_parallel_the_compiled_model_gets_the_same_gradients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With small buckets, PyTorch cuts the graph, so that gradients are exchanged during the backward pass."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    monkeypatch.setattr(torch.distributed, "_DEFAULT_FIRST_BUCKET_BYTES", 4096)
    try:
        results = []
        for compiled in (False, True):
            graphs, model = Graphs(with_backward=True), model_of(dropout=0.0)
            if compiled:
                model.compile(backend=graphs, dynamic=True)
            step = DistributedDataParallel(TrainingStep(model, 0.1), bucket_cap_mb=0.01, gradient_as_bucket_view=True)
            torch.manual_seed(0)
            losses = [update(step, batch) for batch in batches(2)]
            counted = graphs.count
            losses += [update(step, batch) for batch in batches(3, seed=2)]
            assert graphs.count == counted
            results.append((losses, {name: weight.grad for name, weight in model.named_parameters()}))
        assert counted > 1
        assert_close(results[0], results[1], rtol=1e-2, atol=1e-2)
    finally:
        torch.distributed.destroy_process_group()


def test_auto_compiles_on_cuda_if_a_compiler_works(monkeypatch: pytest.MonkeyPatch) -> None:
    for problem in ("", "no compiler"):
        monkeypatch.setattr(device_module, "compiler_problem", lambda device, problem=problem: problem)
        assert compiles(RuntimeConfig(), GPU) is (not problem)
        assert not compiles(RuntimeConfig(), CPU)
        assert not compiles(RuntimeConfig(), torch.device("mps"))
        for device in (CPU, GPU):  # the old values mean what they meant
            assert compiles(RuntimeConfig(compile=True), device)
            assert not compiles(RuntimeConfig(compile=False), device)


@pytest.mark.slow
@of_pytorch
def test_a_missing_compiler_is_described_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import config

    monkeypatch.setattr(config.cpp, "cxx", ("no-such-compiler",))
    monkeypatch.setattr(config, "force_disable_caches", True)
    compiler_problem.cache_clear()
    problem = compiler_problem(CPU)
    compiler_problem.cache_clear()
    assert problem
    assert "\n" not in problem
