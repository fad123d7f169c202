"""Models and batches for tests of what a GPU would do; counters for machines without one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from transformer_mt.config.schema import Config
from transformer_mt.data.batching import Batch
from transformer_mt.data.packing import FlatSentences, StreamSize
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.device import Machine
from transformer_mt.training.gradients import Gradients
from transformer_mt.training.optimizer import Optimizer
from transformer_mt.training.running_loss import Position, RunningLoss
from transformer_mt.training.step import TrainingStep

READING = {"item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__", "__contains__"}
SEARCHING = {"nonzero", "argwhere", "masked_select", "unique", "bincount"}  # the shape of the result is read
COPYING = {"tensor", "as_tensor"}  # of Python numbers to a device


class Synchronisations(TorchFunctionMode):
    """Counts the calls that would make the program wait for a GPU, on any device. It sees Python, not PyTorch's C++."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = getattr(function, "__name__", ""), kwargs or {}
        self.count[name] += name in READING | SEARCHING or (name in COPYING and "device" in kwargs)
        if name in ("__getitem__", "__setitem__"):
            keys = args[1] if isinstance(args[1], tuple) else (args[1],)
            self.count["mask as index"] += any(isinstance(key, Tensor) and key.dtype is torch.bool for key in keys)
        if name == "repeat_interleave" and isinstance((*args, None)[1], Tensor) and "output_size" not in kwargs:
            self.count[name] += 1
        return function(*args, **kwargs)


class Training:
    """Updates of a model as the Trainer makes them."""

    def __init__(self, model: Transformer, config: Config, machine: Machine, compiled: bool = False) -> None:
        settings = config.training
        self.model = model.train()
        self.optimizer = Optimizer(model, settings, machine)
        self.step = TrainingStep(model, settings.label_smoothing, settings.r_drop, compiled)
        self.gradients = Gradients(self.step, machine, self.optimizer.scaler.scale, print, graph=compiled)
        self.losses = RunningLoss()

    def update(self, number: int, batches: list[Batch]) -> None:
        tokens = sum(batch.tokens for batch in batches)
        sums = self.gradients.add_up(batches, 1 / tokens)
        self.losses.add(Position(number, 1, number), sums, tokens)
        self.optimizer.update(number, 1e-3)


@pytest.fixture
def make_training() -> type[Training]:
    return Training


@pytest.fixture
def synchronisations() -> Synchronisations:
    return Synchronisations()


@pytest.fixture
def make_config() -> Callable[..., Config]:
    """Makes a config of base size. Takes the `model` section; keywords are of `training`."""

    def make(model: dict[str, Any] | None = None, **training: Any) -> Config:
        return Config.model_validate(
            {
                "name": "gpu",
                "data": {"source": "en", "target": "de", "corpus": {"kind": "phrasebook"}},
                "tokenizer": {"kind": "character", "shared": True},
                "model": {"tie_embeddings": "all", **(model or {})},
                "training": {"max_epochs": 1, **training},
            }
        )

    return make


@pytest.fixture
def make_batches() -> Callable[..., list[Batch]]:
    """Makes batches of random ids on the CPU, with padding on both sides."""

    def make(number: int, vocabulary: int, sentences: int = 24, seed: int = 1) -> list[Batch]:
        generator = random.Random(seed)
        torch.manual_seed(seed)
        batches = []
        for _ in range(number):
            sides = [torch.randint(4, vocabulary, (sentences, generator.randint(9, 40))) for _ in range(2)]
            for side in sides:
                side[::2, -3:] = 0
            batches.append(Batch.of(*sides))
        return batches

    return make


@pytest.fixture
def make_streams() -> Callable[..., list[Batch]]:
    """Makes batches of random ids on the CPU: streams of one size, of different numbers of sentences."""

    def make(number: int, vocabulary: int, seed: int = 1) -> list[Batch]:
        random = np.random.default_rng(seed)
        size, batches = StreamSize(source=400, target=440, pairs=32, longest=40), []
        for _ in range(number):
            lengths = [random.integers(2, 14, random.integers(20, 30)) for _ in range(2)]
            pairs = min(map(len, lengths))
            sides = [FlatSentences(random.integers(4, vocabulary, one[:pairs].sum()), one[:pairs]) for one in lengths]
            batches.append(Batch.packed(*sides, size))
        return batches

    return make
