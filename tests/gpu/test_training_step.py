"""What a training step does on a GPU, found out without one: it never waits for a number, and launches few kernels."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from transformer_mt.kernels.build import parts_for
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.device import Machine

SCRIPT = Path(__file__).parents[2] / "scripts" / "count_kernels.py"
META = torch.device("meta")  # its tensors have shapes and no numbers: reading one is an error
VOCABULARY = 32_000


@pytest.fixture(autouse=True)
def _no_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch has no autocast for the meta device, and refuses the question whether it is on."""
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda *_: False)
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())


@pytest.fixture
def training_of(make_config: Callable[..., Any], make_training: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a training on the meta device. Takes the `model` section; keywords are of `training`."""

    def make(layers: dict[str, int], **settings: Any) -> Any:
        config = make_config(layers, **settings)
        with META:
            model = Transformer(config.model, VOCABULARY, VOCABULARY, parts=parts_for(config.model, META))
        return make_training(model, config, Machine(META, torch.float32))

    return make


FEW = {"encoder_layers": 1, "decoder_layers": 1}


@pytest.mark.parametrize(
    ("layers", "settings"),
    [
        ({}, {}),
        (FEW, {"clip_norm": 1.0, "ema_decay": 0.999, "optimizer": "adamw"}),
        (FEW, {"optimizer": "muon", "weight_decay": 0.01}),
        (FEW, {"r_drop": 1.0}),
    ],
)
def test_an_update_reads_no_number(
    layers: dict[str, int],
    settings: dict[str, Any],
    training_of: Callable[..., Any],
    make_batches: Callable[..., list[Any]],
):
    training = training_of(layers, **settings)
    for number, batch in enumerate(make_batches(2, VOCABULARY, sentences=300), start=1):
        training.update(number, list(batch.halves()))
    assert all(parameter.device == META for parameter in training.model.parameters())
    with pytest.raises((RuntimeError, NotImplementedError)):
        training.losses.table()  # which every LOG_EVERY updates read


def test_validation_reads_no_number_for_a_batch(
    training_of: Callable[..., Any], make_batches: Callable[..., list[Any]]
):
    training = training_of(FEW)
    training.model.eval()
    with torch.inference_mode():
        for batch in make_batches(2, VOCABULARY):
            assert training.step(*batch.to(META)).nll.shape == ()


@pytest.mark.parametrize("look", [torch.Tensor.item, torch.Tensor.tolist, torch.nonzero, bool])
def test_the_meta_device_would_notice(look: Callable[..., Any]):
    with pytest.raises((RuntimeError, NotImplementedError)):
        look(torch.ones((), device=META))


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("g++") is None, reason="needs g++ and the loader of Linux"
)
@pytest.mark.skipif(
    torch.backends.cuda.is_built() and not torch.cuda.is_available(), reason="a PyTorch with CUDA needs a GPU for it"
)
def test_an_update_of_base_size_launches_few_kernels():
    """Also that no tensor of a step is on the wrong device, and nothing is read: these are errors for fake tensors."""
    most = {"adam": (1200, 10), "muon": (1270, 80)}  # kernels of the whole update, and of the optimizer alone
    command = [sys.executable, str(SCRIPT), "--optimizer", *most, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    for name, counted in json.loads(done.stdout).items():
        total, optimizer = most[name]
        assert counted["total"] == sum(counted[part] for part in ("forward", "backward", "optimizer"))
        assert 500 < counted["total"] <= total
        assert counted["optimizer"] <= optimizer
        assert counted["gradients"] == ["cuda:0 torch.float32"]
        assert counted["operators"]["mm"] >= 60, "products of the layers are counted"


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("g++") is None, reason="needs g++ and the loader of Linux"
)
def test_a_step_of_a_search_launches_few_kernels_and_moves_fewer_bytes_in_bfloat16():
    """Also that a search makes all of its tensors on the GPU, and in the steps between two looks reads no number."""
    gigabytes = {}
    for weights in ("float32", "bfloat16"):
        command = [sys.executable, str(SCRIPT), "--search", "1", "5", "--weights", weights, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        counted = json.loads(done.stdout)
        gigabytes[weights] = counted["greedy"]["gigabytes"]
        for name, most in {"greedy": 180, "beam 5": 180}.items():
            assert 90 < counted[name]["total"] <= most
            assert counted[name]["operators"]["addmm"] == 37, "six in each layer, and the generator"
    assert gigabytes["bfloat16"] < 0.7 * gigabytes["float32"]
