"""An update as a CUDA graph is the update that it replaces. Without a GPU, everything goes the usual way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from transformer_mt.config.training import RuntimeConfig
from transformer_mt.errors import TmtError
from transformer_mt.kernels.build import build_model
from transformer_mt.runtime.device import Machine, set_up
from transformer_mt.training import cuda_graph
from transformer_mt.training.cuda_graph import WARM_UP
from transformer_mt.training.gradients import Gradients

SMALL = {"d_model": 64, "n_heads": 4, "d_ff": 128, "encoder_layers": 2, "decoder_layers": 2}
VOCABULARY, UPDATES = 300, WARM_UP + 4
stack, capturing = torch.stack, torch.cuda.is_current_stream_capturing


@pytest.fixture
def train(
    make_training: Callable[..., Any], make_config: Callable[..., Any], make_streams: Callable[..., list[Any]]
) -> Callable[..., Any]:
    """Trains a model on streams; returns the training. change: gets its gradients before the first update."""

    def run(machine: Machine, change: Callable[[Gradients], object] = id, **training: Any) -> Any:
        config = make_config({**SMALL, "dropout": 0.0}, packing=True, **training)
        torch.manual_seed(1)
        trained = make_training(build_model(config, VOCABULARY, VOCABULARY, machine.device), config, machine, True)
        change(trained.gradients)
        for number, batch in enumerate(make_streams(UPDATES, VOCABULARY), start=1):
            trained.update(number, [batch])
        return trained

    return run


def in_float32() -> Machine:
    return set_up(RuntimeConfig(device="cuda", precision="float32", tf32=False))


def usual(gradients: Gradients) -> None:
    gradients.graphed = None


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # of PyTorch, when it compiles
@pytest.mark.parametrize("settings", [{}, {"optimizer": "muon"}, {"clip_norm": 1.0, "ema_decay": 0.9}])
def test_a_graph_trains_the_same_model(
    settings: dict[str, Any], train: Callable[..., Any], make_streams: Callable[..., list[Any]]
) -> None:
    machine, (first, other) = in_float32(), make_streams(2, VOCABULARY, seed=9)
    assert first.tokens != other.tokens
    graphed, usually = train(machine, **settings), train(machine, usual, **settings)
    assert_close(graphed.losses.table().nll, usually.losses.table().nll, rtol=1e-3, atol=0)
    gradients, model = graphed.gradients, graphed.model
    assert gradients.graphed.graph is not None
    graphed_step = gradients.graphed
    graphed_step.release()  # as before a validation
    next(iter(model.decoder.layers)).feed_forward.requires_grad_(False)
    usual(gradients)
    gradients.add_up([first], 1 / first.tokens)  # compiles for fewer gradients, which a graph cannot
    model.zero_grad()
    gradients.graphed = graphed_step
    gradients.add_up([first], 1 / first.tokens)  # makes another graph
    assert gradients.graphed.graph is not None
    found = []
    for change in (id, usual):
        model.zero_grad()
        change(gradients)
        sums = gradients.add_up([other], 1 / other.tokens)
        found.append([*sums, *(one.grad.clone() for one in model.parameters() if one.grad is not None)])
    assert len(found[0]) < 2 + len(list(model.parameters()))
    assert_close(*found, rtol=1e-3, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_graph_draws_other_dropout_each_time(
    make_training: Callable[..., Any], make_config: Callable[..., Any], make_streams: Callable[..., list[Any]]
) -> None:
    machine, (batch,) = in_float32(), make_streams(1, VOCABULARY)
    config = make_config({**SMALL, "dropout": 0.3}, packing=True)
    training = make_training(build_model(config, VOCABULARY, VOCABULARY, machine.device), config, machine, True)
    losses = []
    for _ in range(WARM_UP + 3):
        losses.append(float(training.gradients.add_up([batch], 1 / batch.tokens).nll))
        training.model.zero_grad()
    assert training.gradients.graphed.graph is not None
    assert len({round(loss, 3) for loss in losses}) == len(losses)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("free", [0, 10**12])
def test_without_memory_for_a_graph_training_goes_on_and_says_so(
    free: int, train: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = in_float32()
    expected = train(machine, usual).losses.table().nll

    def fail(*_: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(cuda_graph, "free_memory", lambda _: free)
    if free:
        monkeypatch.setattr(torch, "stack", lambda *given, **how: fail() if capturing() else stack(*given, **how))
    assert_close(train(machine).losses.table().nll, expected, rtol=1e-3, atol=0)
    assert capsys.readouterr().out.count("CUDA graph") == 1


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_what_a_graph_cannot_have_is_one_clear_error(
    train: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def waits(tensors: Any, *rest: Any, **how: Any) -> Any:
        if capturing():
            tensors[0].item()
        return stack(tensors, *rest, **how)

    monkeypatch.setattr(torch, "stack", waits)
    with pytest.raises(TmtError, match="cannot become a CUDA graph"):
        train(in_float32())


def test_a_graph_is_made_on_the_device_of_its_training(
    make_training: Callable[..., Any],
    make_config: Callable[..., Any],
    make_streams: Callable[..., list[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PyTorch's own stream is on the device of the first graph of a process: a second one would be empty."""
    streams, cpu = list[Any](), torch.device("cpu")

    def capture(graph: object, stream: object = None, capture_error_mode: str = "") -> Any:
        streams.append(stream)
        return nullcontext()

    monkeypatch.setattr(torch.cuda, "graph", capture)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(cuda_graph, "capture_stream", lambda device: f"of {device}")
    monkeypatch.setattr(cuda_graph, "free_memory", lambda device: 1)
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    config = make_config(SMALL, packing=True)
    training = make_training(build_model(config, VOCABULARY, VOCABULARY), config, Machine(cpu, torch.float32), True)
    assert training.gradients.graphed._capture(make_streams(1, VOCABULARY)[0])
    assert streams == ["of cpu"]


def test_on_a_cpu_there_is_no_graph(train: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    machine = set_up(RuntimeConfig(device="cpu", precision="float32"))
    trained = train(machine)
    assert trained.gradients.graphed.graph is None
    assert all(0 < loss < float("inf") for loss in trained.losses.table().nll)
