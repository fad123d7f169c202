"""Compiled layers are one graph for all shapes and all layers of a stack; in parallel, they have the same gradients.

The parts are those for GPUs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._dynamo.backends.debugging import aot_eager
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close

from transformer_mt.config.model import ModelConfig
from transformer_mt.config.training import RuntimeConfig
from transformer_mt.data.batching import Batch
from transformer_mt.data.store import MemorySide, Store
from transformer_mt.kernels.build import parts_for
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime import device as device_module
from transformer_mt.runtime.device import Machine, compiler_problem, compiles
from transformer_mt.training.step import TrainingStep, failed_compilation
from transformer_mt.training.validation import BleuResult, Validation

SIZES = {"d_model": 16, "n_heads": 2, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 3}
VOCABULARY = 30
CPU, GPU = torch.device("cpu"), torch.device("cuda")
of_pytorch = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore:Guards may run slower:RuntimeWarning",
    "ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning",  # PyTorch hides it itself
)


class Graphs:
    """A backend that counts the graphs it gets, and runs them with PyTorch's own kernels.

    with_backward: also make graphs of the backward pass, as every backend for GPUs does
    """

    def __init__(self, with_backward: bool = False) -> None:
        self.count, self.with_backward, self.inputs = 0, with_backward, list[str]()

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        self.count += any(node.op.startswith("call") for node in graph.graph.nodes)
        self.inputs += [node.name for node in graph.graph.nodes if node.op == "placeholder"]
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


class OnePair(Store):
    def __init__(self) -> None:
        offsets, ids = np.array([0, 5]), np.full(5, 7, np.int32)
        self.source = self.target = MemorySide(offsets, ids)


def encoded(model: Transformer) -> Tensor:
    """What a search does first."""
    with torch.inference_mode():
        return model.encode(torch.full((1, 9), 7))[0].sum()


def compile_with(graphs: Graphs, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    """Let modules that are compiled use this backend."""
    compile_one = torch.nn.Module.compile
    monkeypatch.setattr(
        torch.nn.Module, "compile", lambda self, **own: compile_one(self, backend=graphs, **own, **options)
    )


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
def test_fifty_shapes_and_all_layers_are_one_graph_for_each_stack(
    sizes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs, model = Graphs(), model_of(**sizes)
    compile_with(graphs, monkeypatch, fullgraph=True)  # a break in the graph is an error
    training, store = TrainingStep(model, 0.1, compiled=True), OnePair()
    equal = torch.full((6, 9), 7)  # both sides have the same length
    for seed in (1, 2):
        for batch in (Batch.of(equal, equal), *batches(25, seed)):
            update(training, batch)
            assert graphs.count == 2
        Validation(store, Machine(CPU, torch.bfloat16), lambda model: BleuResult(float(encoded(model)))).evaluate(model)
        assert graphs.count == 2, "validation compiles nothing"


@pytest.mark.slow
@of_pytorch
def test_dropout_and_epsilon_are_constants_of_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """As inputs, they would be tensors on the CPU, and kernels on a GPU would wait for them."""
    graphs, model = Graphs(), model_of(dropout=0.1)
    compile_with(graphs, monkeypatch)
    update(TrainingStep(model, 0.1, compiled=True), next(batches(1)))
    assert not [name for name in graphs.inputs if "dropout" in name or "epsilon" in name]
    assert any("gamma" in name for name in graphs.inputs)


@pytest.mark.slow
@of_pytorch
def test_many_models_compile_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `tmt tune`: PyTorch's limit would be 8."""
    graphs = Graphs()
    compile_with(graphs, monkeypatch)
    for number in range(1, 11):
        update(
            TrainingStep(model_of(dropout=number / 100, encoder_layers=1, decoder_layers=1), 0.1, compiled=True),
            next(batches(1)),
        )
        assert graphs.count == 2 * number


@pytest.mark.slow
@of_pytorch
def test_in_parallel_the_compiled_model_gets_the_same_gradients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With small buckets, PyTorch would cut each layer, though gradients are exchanged after each anyway."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    monkeypatch.setattr(torch.distributed, "_DEFAULT_FIRST_BUCKET_BYTES", 4096)
    try:
        results = []
        for compiled in (False, True):
            graphs, model = Graphs(with_backward=True), model_of(dropout=0.0)
            if compiled:
                compile_with(graphs, monkeypatch)
            step = DistributedDataParallel(
                TrainingStep(model, 0.1, compiled=compiled), bucket_cap_mb=0.01, gradient_as_bucket_view=True
            )
            torch.manual_seed(0)
            losses = [update(step, batch) for batch in batches(2)]
            counted = graphs.count
            losses += [update(step, batch) for batch in batches(3, seed=2)]
            assert graphs.count == counted
            results.append((losses, {name: weight.grad for name, weight in model.named_parameters()}))
        assert counted == 2, "one for each stack"
        assert_close(results[0], results[1], rtol=1e-2, atol=1e-2)
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize(("compiled", "remedy"), [(True, "runtime.compile: false"), (False, "training.packing: false")])
def test_what_cannot_be_compiled_can_be_turned_off(compiled: bool, remedy: str) -> None:
    """If layers are not compiled, it is the attention of streams."""
    error = failed_compilation(torch._dynamo.exc.TorchDynamoException("no compiler"), compiled)
    assert error is not None
    assert remedy in error.remedy
    assert remedy.startswith(error.place)
    assert failed_compilation(RuntimeError("CUDA error"), compiled) is None


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
def test_a_missing_compiler_is_described_in_one_line() -> None:
    from torch._inductor import config

    compiler_problem.cache_clear()
    with config.patch({"cpp.cxx": ("no-such-compiler",), "force_disable_caches": True}):
        problem = compiler_problem(CPU)
    compiler_problem.cache_clear()
    assert problem
    assert "\n" not in problem
