"""The state of the optimizer is saved and restored."""

from __future__ import annotations

import torch
from torch import nn

from transformer_mt.config.training import TrainingConfig
from transformer_mt.runtime.device import Machine
from transformer_mt.training.optimizer import Optimizer


def train(optimizer: Optimizer, steps: range) -> None:
    for step in steps:
        torch.manual_seed(step)
        optimizer.scaler.scale(optimizer.model(torch.randn(5, 4)).square().sum()).backward()
        optimizer.update(step, 0.01)


def new_optimizer() -> Optimizer:
    torch.manual_seed(0)
    machine = Machine(torch.device("cpu"), torch.float16)
    return Optimizer(nn.Linear(4, 3), TrainingConfig(max_steps=9, clip_norm=1.0), machine)


def test_loss_scaling_is_restored():
    whole, first, second = new_optimizer(), new_optimizer(), new_optimizer()
    train(whole, range(1, 5))
    train(first, range(1, 3))
    second.model.load_state_dict(first.model.state_dict())
    second.load(first.tensors())
    train(second, range(3, 5))
    assert second.scaler.state_dict() == whole.scaler.state_dict()
    assert torch.equal(second.model.weight, whole.model.weight)


def test_loaded_moments_are_copies():
    """Windows cannot remove the file of a checkpoint to which tensors are mapped."""
    first, second = new_optimizer(), new_optimizer()
    train(first, range(1, 3))
    given = first.tensors()
    second.load(given)
    places = {value.data_ptr() for value in given.values()}
    loaded = [value for part in second.parts for state in part.state.values() for value in state.values()]
    assert loaded
    assert not any(value.data_ptr() in places for value in loaded)
