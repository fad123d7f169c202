"""Training with a bfloat16 copy of the weights: what computes, what is updated, and what is saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from transformer_mt.config.model import ModelConfig
from transformer_mt.data.batching import Batch
from transformer_mt.kernels.build import parts_for
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.weights import read_weights
from transformer_mt.training.average import MovingAverage
from transformer_mt.training.narrow_weights import NarrowCopy
from transformer_mt.training.step import TrainingStep

NARROW = {"weights": "bfloat16"}
SIZES = {"d_model": 32, "n_heads": 2, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}


@pytest.mark.parametrize(
    "sizes",
    [
        {"tie_embeddings": "decoder"},
        {"norm": "post", "positions": "learned"},
        {"positions": "rotary", "normalization": "rms", "activation": "swiglu"},
    ],
)
def test_loss_and_gradients_differ_from_those_of_float32_by_rounding_only(sizes: dict[str, Any]) -> None:
    torch.manual_seed(1)
    config = ModelConfig.model_validate({**SIZES, **sizes})
    model = Transformer(config, 40, 40, max_positions=300, parts=parts_for(config, "cpu"))
    narrow = NarrowCopy(model)
    assert all(weight.dtype is torch.bfloat16 for weight in narrow.model.parameters())
    assert len(list(narrow.model.parameters())) == len(list(model.parameters())), "tied weights stay tied"
    batch = Batch.of(torch.randint(4, 40, (3, 280)), torch.randint(4, 40, (3, 280)))
    exact = TrainingStep(model, 0.1)(*batch)
    exact.smoothed.backward()
    gradients = [weight.grad for weight in model.parameters()]
    rounded = TrainingStep(narrow.model, 0.1)(*batch)
    rounded.smoothed.backward()
    narrow.move_gradients()
    assert rounded.smoothed.item() == pytest.approx(exact.smoothed.item(), rel=0.01)
    assert all(weight.grad is None for weight in narrow.model.parameters())
    for (name, weight), wanted in zip(model.named_parameters(), gradients, strict=True):
        assert weight.grad is not None
        assert weight.grad.dtype is torch.float32
        if "norm." not in name:  # PyTorch's normalisation sums their gradients in bfloat16 on a CPU
            assert float((weight.grad - wanted).norm()) < 0.07 * float(wanted.norm()) + 1e-3, name


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"optimizer": "muon", "clip_norm": 1.0, "accumulate": 2}])
def test_it_learns_as_with_float32_weights(numbers: Any, tmp_path: Path, options: dict[str, Any]) -> None:
    losses = {}
    for weights in ("float32", "bfloat16"):
        trainer = numbers.trainer(tmp_path / weights, runtime={"weights": weights}, max_epochs=4, **options)
        trainer.train()
        losses[weights] = trainer.state.best
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.02)


@pytest.mark.slow
def test_updates_too_small_for_bfloat16_add_up_in_float32(numbers: Any, tmp_path: Path) -> None:
    trainer = numbers.trainer(tmp_path, runtime=NARROW, learning_rate=1e-6, ema_decay=0.5, max_steps=5)
    before = [weight.detach().clone() for weight in trainer.model.parameters()]
    trainer.train()
    moved = [bool((weight != old).any()) for weight, old in zip(trainer.model.parameters(), before, strict=True)]
    assert all(moved)
    average: MovingAverage = trainer.optimizer.average
    saved = read_weights(trainer.run.checkpoints.path(5) / "model.safetensors")
    for name, weight in trainer.model.named_parameters():
        assert weight.dtype is average.weights[name].dtype is saved[name].dtype is torch.float32
        assert torch.equal(saved[name], weight)
    for narrow, weight in zip(trainer.narrow.model.parameters(), trainer.model.parameters(), strict=True):
        assert torch.equal(narrow, weight.bfloat16())


@pytest.mark.slow
def test_a_resumed_run_equals_an_uninterrupted_one_to_the_bit(numbers: Any, tmp_path: Path) -> None:
    options = {"ema_decay": 0.9, "clip_norm": 1.0}
    whole = numbers.trainer(tmp_path / "whole", runtime=NARROW, max_epochs=3, **options)
    whole.train()
    for epochs in (1, 3):
        resumed = numbers.trainer(tmp_path / "parts", runtime=NARROW, max_epochs=epochs, **options)
        resumed.train()
    for one, other in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(one, other)
