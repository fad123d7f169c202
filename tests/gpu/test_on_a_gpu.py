"""On an NVIDIA GPU: pytest -m gpu. PyTorch then reports each time that the program would wait for the GPU."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo.utils
from torch import Tensor
from torch.testing import assert_close

from transformer_mt.config.training import RuntimeConfig
from transformer_mt.data.batching import UpdateSize
from transformer_mt.decoding.batches import search
from transformer_mt.decoding.budget import Budget, budget_for
from transformer_mt.decoding.incremental import IncrementalDecoder
from transformer_mt.decoding.request import Request
from transformer_mt.kernels.attention import MANY_HEADS, attention_to_past, own_attention
from transformer_mt.kernels.build import build_model
from transformer_mt.kernels.narrow import round_to_bfloat16
from transformer_mt.kernels.top_candidates import top_candidates
from transformer_mt.model.attention import scaled_dot_product_attention
from transformer_mt.runtime.device import Machine, set_up
from transformer_mt.runtime.distributed import World
from transformer_mt.text.vocabulary import EOS
from transformer_mt.training.gradients import Gradients

pytestmark = pytest.mark.gpu

SMALL = {"d_model": 64, "n_heads": 4, "d_ff": 128, "encoder_layers": 2, "decoder_layers": 2}
VOCABULARY = 300


@pytest.fixture(params=["bfloat16", "float32"])
def machine(request: pytest.FixtureRequest) -> Machine:
    return set_up(RuntimeConfig(device="cuda", precision=request.param))


@contextmanager
def waiting(mode: str) -> Iterator[None]:
    """What PyTorch does inside the block when the program would wait for the GPU: `error` or `warn`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch says that it does not see all
        torch.cuda.set_sync_debug_mode(mode)
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.fixture
def training_of(make_training: Callable[..., Any]) -> Callable[[Any, Machine], Any]:
    """Makes a training with the weights of seed 1."""

    def make(config: Any, machine: Machine, compiled: bool = False) -> Any:
        torch.manual_seed(1)
        return make_training(build_model(config, VOCABULARY, VOCABULARY, machine.device), config, machine, compiled)

    return make


@pytest.mark.parametrize("settings", [{}, {"optimizer": "muon"}, {"clip_norm": 1.0, "ema_decay": 0.99}])
def test_training_never_waits(
    settings: dict[str, Any],
    machine: Machine,
    training_of: Callable[..., Any],
    make_config: Callable[..., Any],
    make_batches: Callable[..., list[Any]],
) -> None:
    training, batches = training_of(make_config(SMALL, **settings), machine), make_batches(8, VOCABULARY)
    training.update(1, batches[:1])  # allocates the state of the optimizer
    with waiting("error"):
        for number, batch in enumerate(batches[1:], start=2):
            training.update(number, [batch])
    assert all(0 < loss < float("inf") for loss in training.losses.table().nll)


def test_validation_never_waits_for_a_batch(
    machine: Machine,
    training_of: Callable[..., Any],
    make_config: Callable[..., Any],
    make_batches: Callable[..., list[Any]],
) -> None:
    step = training_of(make_config(SMALL), machine).step.eval()
    with waiting("error"), torch.inference_mode(), machine.autocast():
        sums = [step(*batch.to(machine.device)).nll for batch in make_batches(4, VOCABULARY)]
    assert torch.stack(sums).isfinite().all()


def test_the_losses_and_gradients_are_those_of_a_cpu(
    training_of: Callable[..., Any], make_config: Callable[..., Any], make_batches: Callable[..., list[Any]]
) -> None:
    config = make_config({**SMALL, "dropout": 0.0})
    results = []
    for device in ("cpu", "cuda"):
        machine = set_up(RuntimeConfig(device=device, precision="float32", tf32=False))
        training, losses = training_of(config, machine), []
        for batch in make_batches(3, VOCABULARY):
            sums = training.gradients.add_up([batch], 1 / batch.tokens)
            losses.append([float(one) / batch.tokens for one in sums])
        results.append((losses, [parameter.grad.cpu() for parameter in training.model.parameters()]))
    assert_close(*results, rtol=1e-3, atol=1e-4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # of PyTorch, when it compiles
def test_compiled_training_has_the_losses_of_another(
    training_of: Callable[..., Any], make_config: Callable[..., Any], make_batches: Callable[..., list[Any]]
) -> None:
    machine = set_up(RuntimeConfig(device="cuda", precision="float32", tf32=False))
    config, results = make_config({**SMALL, "dropout": 0.0}), []
    for compiled in (False, True):
        training = training_of(config, machine, compiled)
        for number, batch in enumerate(make_batches(4, VOCABULARY), start=1):
            training.update(number, [batch])
        results.append(training.losses.table().nll)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] >= 3, "two stacks and the loss"
    assert_close(*results, rtol=1e-3, atol=0)


@pytest.mark.parametrize(("beam", "most"), [(1, 0.3), (5, 0.3)])  # counted without a GPU: 0.2, in `test_search.py`
def test_how_often_a_search_waits(
    beam: int,
    most: float,
    training_of: Callable[..., Any],
    make_config: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config, steps = make_config(SMALL), 0
    machine = set_up(RuntimeConfig(device="cuda", precision="float32", tf32=False))
    model = training_of(config, machine).model.eval()
    generator, step = random.Random(3), IncrementalDecoder.step
    lengths = [generator.randint(3, 25) for _ in range(24)]
    requests = [Request([*(generator.randint(4, VOCABULARY - 1) for _ in range(length)), EOS]) for length in lengths]

    def counted(self: IncrementalDecoder, *arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        return step(self, *arguments)

    monkeypatch.setattr(IncrementalDecoder, "step", counted)
    decoding = config.decoding.model_copy(update={"beam": beam})
    search([model], requests, decoding)
    steps = 0
    with warnings.catch_warnings(record=True) as waits, waiting("warn"):
        warnings.simplefilter("always")
        found = search([model], requests, decoding)
    assert len(waits) / steps <= most
    on_cpu = search([copy.deepcopy(model).cpu()], requests, decoding)
    same = sum(one[0].ids == other[0].ids for one, other in zip(found, on_cpu, strict=True))
    assert same >= 22, "rounding may decide between two tokens"


@pytest.mark.parametrize("weights", ["float32", "bfloat16"])
@pytest.mark.parametrize("beam", [1, 5])
def test_a_large_batch_scores_as_on_a_cpu(
    beam: int, weights: str, training_of: Callable[..., Any], make_config: Callable[..., Any]
) -> None:
    config = make_config(SMALL)
    model = training_of(config, set_up(RuntimeConfig(device="cuda", tf32=False))).model.eval()
    generator = random.Random(4)
    lengths = [generator.randint(3, 25) for _ in range(1200)]
    requests = [Request([*(generator.randint(4, VOCABULARY - 1) for _ in range(length)), EOS]) for length in lengths]
    decoding = config.decoding.model_copy(update={"beam": beam, "max_length_ratio": 1.0, "max_length_offset": 3})
    assert budget_for([model], decoding, beam) > Budget(600, 20_000)
    expected = search([copy.deepcopy(model).cpu()], requests[::10], decoding)
    if weights == "bfloat16":
        round_to_bfloat16(model)
    found = search([model], requests, decoding)[::10]
    means = [sum(one[0].score for one in results) / len(results) for results in (found, expected)]
    assert means[0] == pytest.approx(means[1], rel=0.02)


@pytest.mark.parametrize("width", [1, 5])
@pytest.mark.parametrize(("vocabulary", "count"), [(32_000, 10), (8001, 10), (32_000, 1), (300, 10)])
def test_the_highest_logits_are_those_of_a_cpu(vocabulary: int, count: int, width: int) -> None:
    torch.manual_seed(1)
    logits_NV, scores_BW = torch.randn(200 * width, vocabulary), torch.randn(200, width)
    found = top_candidates(logits_NV.cuda(), scores_BW.cuda(), count)
    for one, other in zip(found, top_candidates(logits_NV, scores_BW, count), strict=True):
        assert_close(one.cpu(), other, rtol=0, atol=0)


@pytest.mark.parametrize(("rows", "queries"), [(4, 1), (MANY_HEADS // 4, 1), (600, 5), (MANY_HEADS // 4, 5)])
@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-5), (torch.bfloat16, 1e-2)])
def test_attention_to_a_past_is_the_readable_one(rows: int, queries: int, dtype: torch.dtype, most: float) -> None:
    set_up(RuntimeConfig(device="cuda", tf32=False))
    torch.manual_seed(1)
    query = torch.randn(rows, 4, queries, 64, device="cuda", dtype=dtype)
    key, value = (torch.randn(rows, 4, 32, 64, device="cuda", dtype=dtype)[:, :, :20] for _ in range(2))
    mask = torch.rand(rows, 1, queries, 20, device="cuda") < 0.5
    mask[..., 0] = True
    bias = torch.zeros(mask.shape, device="cuda", dtype=dtype).masked_fill(~mask, float("-inf"))
    wide = [x.double() for x in (query, key, value)]
    for given, allowed in ((bias, mask), (None, None)):
        expected = scaled_dot_product_attention(*wide, allowed)
        for found in (attention_to_past(query, key, value, given), searched(query, key, value, given)):
            assert float((found - expected).norm() / expected.norm()) < most


@torch.inference_mode()
def searched(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
    """As a search computes it: many rows have our own kernel."""
    is_ours = own_attention(query, key, value) is not None
    assert is_ours == (query.shape[0] * query.shape[1] >= MANY_HEADS)
    return attention_to_past(query, key, value, bias)


def test_one_process_through_nccl(
    tmp_path: Path,
    training_of: Callable[..., Any],
    make_config: Callable[..., Any],
    make_batches: Callable[..., list[Any]],
) -> None:
    """Both ways to exchange gradients: after the backward pass of a larger update, else during it."""
    device = set_up(RuntimeConfig(device="cuda", precision="float32", tf32=False)).device
    config, (batch,) = make_config({**SMALL, "dropout": 0.0}), make_batches(1, VOCABULARY)
    size = UpdateSize(batch.tokens, batch.source_BS.numel(), batch.target_out_BT.numel())
    store = f"file://{tmp_path / 'store'}"
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl", init_method=store, rank=0, world_size=1)
    try:
        world = World(size=2)  # a single process would not exchange anything
        machine = Machine(device, torch.float32, world)
        alone, training = training_of(config, Machine(device, torch.float32)), training_of(config, machine)
        alone.gradients.add_up([batch], 1 / batch.tokens)
        expected = [parameter.grad for parameter in alone.model.parameters()]
        gradients = Gradients(world.parallel(training.step, device), machine, training.optimizer.scaler.scale, print)
        for scale in (world.size, 1):  # `average` divides by the size of the world, DDP by that of the group
            gradients.add_up([batch], scale / batch.tokens, size)
            assert_close([parameter.grad for parameter in training.model.parameters()], expected)
            training.model.zero_grad()
        assert world.sums([3]) == [3]
    finally:
        torch.distributed.destroy_process_group()
