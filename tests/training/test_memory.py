"""The estimated memory of a step against the tensors that autograd saves."""

from __future__ import annotations

from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from transformer_mt.config.model import ModelConfig
from transformer_mt.config.schema import Config
from transformer_mt.config.training import RuntimeConfig
from transformer_mt.data.batching import Batch
from transformer_mt.kernels.build import build_model
from transformer_mt.kernels.loss import rows_at_a_time
from transformer_mt.runtime.device import Machine
from transformer_mt.training.memory import step_bytes
from transformer_mt.training.narrow_weights import NarrowCopy
from transformer_mt.training.step import TrainingStep

SMALL = {"d_model": 64, "n_heads": 4, "d_ff": 256, "encoder_layers": 2, "decoder_layers": 2}
VOCABULARY = 300


def config_of(model: dict[str, Any], **training: Any) -> Config:
    return Config.model_validate(
        {
            "name": "sizes",
            "data": {"source": "en", "target": "de", "corpus": {"kind": "phrasebook"}},
            "tokenizer": {"kind": "character"},
            "model": {**SMALL, **model},
            "training": {"max_epochs": 1, **training},
        }
    )


def saved_by_autograd(config: Config, machine: Machine, model: Any, shape: tuple[int, int, int]) -> int:
    """Bytes of all storages that autograd saves in one forward pass, without weights."""
    sentences, source_length, target_length = shape
    source_BS = torch.randint(4, VOCABULARY, (sentences, source_length))
    source_BS[0, -1] = 0  # a batch without padding would need no mask
    batch = Batch.of(source_BS, torch.randint(4, VOCABULARY, (sentences, target_length)))
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    saved: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        saved.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    step = TrainingStep(model.train(), 0.1, config.training.r_drop)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), machine.autocast():
        loss = step(*batch)
    assert loss.smoothed.requires_grad
    return sum(tensor.untyped_storage().nbytes() for pointer, tensor in saved.items() if pointer not in weights)


@pytest.mark.parametrize(
    "model",
    [
        {},
        {"norm": "post"},
        {"dropout": 0.0},
        *({"activation": one} for one in get_args(ModelConfig.model_fields["activation"].annotation)),
        {"activation": "swiglu", "feed_forward_dropout": 0.1},
        {"attention": "handmade", "norm_kernel": "handmade"},
        {"attention_dropout": 0.1},
        {"positions": "rotary", "normalization": "rms"},
        {"d_model": 32, "d_ff": 512, "encoder_layers": 1, "decoder_layers": 3},
    ],
)
@pytest.mark.parametrize("shape", [(24, 20, 24), (8, 70, 40), (40, 8, 60)])
def test_the_estimate_is_within_25_percent_of_the_saved_tensors(model: dict[str, Any], shape: tuple[int, int, int]):
    check(config_of(model), Machine(torch.device("cpu"), torch.float32), shape)


@pytest.mark.parametrize("training", [{"r_drop": 1.0}, {"ema_decay": 0.9}])
def test_the_estimate_includes_training_options(training: dict[str, Any]):
    check(config_of({}, **training), Machine(torch.device("cpu"), torch.float32), (24, 20, 24))


@pytest.mark.parametrize("model", [{}, {"activation": "swiglu"}])
@pytest.mark.parametrize("shape", [(24, 20, 24), (8, 70, 40)])
def test_the_estimate_includes_bfloat16_weights(model: dict[str, Any], shape: tuple[int, int, int]):
    config = config_of(model).model_copy(update={"runtime": RuntimeConfig(weights="bfloat16")})
    check(config, Machine(torch.device("cpu"), torch.float32), shape)


@pytest.mark.parametrize("model", [{}, {"activation": "gelu"}, {"positions": "rotary"}])
@pytest.mark.parametrize("shape", [(24, 20, 24), (8, 70, 40)])
def test_the_estimate_includes_bfloat16_products(model: dict[str, Any], shape: tuple[int, int, int]):
    config, cpu = config_of(model), torch.device("cpu")
    check(config, Machine(cpu, torch.bfloat16), shape)


def check(config: Config, machine: Machine, shape: tuple[int, int, int]) -> None:
    """Compare the part that depends on the batch; the size of weights and moments is exact."""
    torch.manual_seed(1)
    model = build_model(config, VOCABULARY, VOCABULARY)
    weights = 4 * sum(parameter.numel() for parameter in model.parameters())
    copies = 5 if config.training.ema_decay else 4
    if config.runtime.weights == "bfloat16":
        model = NarrowCopy(model).model
        copies += 1  # rounded weights and their gradients
    sentences = shape[0] * (2 if config.training.r_drop else 1)
    logits = 8 * VOCABULARY * min(sentences * shape[2], rows_at_a_time(machine.device))
    estimate = step_bytes(model, config, machine, *shape) - copies * weights - logits
    assert estimate == pytest.approx(saved_by_autograd(config, machine, model, shape), rel=0.25)
