"""Training on random sentences: the project's own batches, model, loss and optimizer, without a corpus or a tokenizer.

Lengths are log-normal, about 26 tokens on average and at most 128, as of subwords in news; a target is a little longer
or shorter than its source. Ids follow Zipf's law.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch
from flops import model_sizes
from numpy.typing import NDArray

from transformer_mt.config.model import ModelConfig
from transformer_mt.config.training import RuntimeConfig, TrainingConfig
from transformer_mt.data.batching import Batches
from transformer_mt.data.planning import BatchSize
from transformer_mt.data.store import MemorySide, Store
from transformer_mt.kernels.build import build_model
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.device import seed_everything, set_up
from transformer_mt.text.vocabulary import EOS, MARKS
from transformer_mt.training.interruption import StopSignal
from transformer_mt.training.trainer import Trainer

MEDIAN, SPREAD, LONGEST, FIXED = 22, 0.6, 128, 26  # tokens of a sentence
SHAPES = ("varied", "fixed")
LEARNING_RATE = 1e-4


@dataclass(frozen=True)
class Setting:
    """What is trained, and how; the defaults are those of `tmt train` on a GPU, at base size, but nothing is compiled.

    shapes: varied draws the lengths; fixed gives all sentences the same length, so that all batches have one shape
    """

    size: str = "base"
    vocabulary: int = 32_000
    batch_tokens: int = 25_600
    shapes: str = "varied"
    optimizer: str = "adam"
    batching: dict[str, Any] = field(default_factory=dict)  # more keys of `training`, which `Batches` takes too
    runtime: dict[str, Any] = field(default_factory=dict)  # more keys of `runtime`
    device: str = "cuda"
    precision: str = "auto"
    compile: bool = False
    backend: str = ""  # of torch.compile; "": its own
    threads: int = 0
    dropout: float | None = None
    all_dropouts: bool = False
    tf32: bool = True
    updates: int = 100  # of an epoch

    @property
    def model(self) -> ModelConfig:
        sizes = model_sizes(self.size, self.all_dropouts) | ({} if self.dropout is None else {"dropout": self.dropout})
        return ModelConfig(**sizes, tie_embeddings="all")


class RandomSide(MemorySide):
    """One side of a store, in memory. lengths: tokens of each sentence, with end token."""

    def __init__(self, lengths: NDArray[np.int64], vocabulary: int, random: np.random.Generator) -> None:
        offsets = np.concatenate([[0], lengths.cumsum()])
        first = len(MARKS)
        zipf = np.exp(random.random(int(offsets[-1])) * np.log(vocabulary - first + 1))
        ids = (first - 1 + zipf).astype(np.int32)  # the probability of the n-th id is about 1 / n
        ids[offsets[1:] - 1] = EOS
        super().__init__(offsets, ids)


class RandomStore(Store):
    """Enough pairs for the updates of a setting."""

    def __init__(self, setting: Setting, seed: int = 1) -> None:
        random = np.random.default_rng(seed)
        if setting.shapes == "fixed":
            source = target = np.full(setting.updates * (setting.batch_tokens // FIXED), FIXED, np.int64)
        else:
            pairs = setting.updates * setting.batch_tokens // MEDIAN
            longer = np.exp(random.normal(0, 0.15, pairs))
            drawn = MEDIAN * np.exp(random.normal(0, SPREAD, pairs))
            source, target = (np.clip(side.round(), 2, LONGEST).astype(np.int64) for side in (drawn, drawn * longer))
        self.source, self.target = (RandomSide(side, setting.vocabulary, random) for side in (source, target))


def trainer_of(setting: Setting, seed: int = 1) -> Trainer:
    """The trainer of `tmt train` with these batches. It cannot validate or save, because it has no run directory."""
    if setting.backend:
        torch.compile = functools.partial(torch.compile, backend=setting.backend)
    runtime = RuntimeConfig(
        device=setting.device,
        precision=setting.precision,
        compile=setting.compile,
        threads=setting.threads,
        tf32=setting.tf32,
        **setting.runtime,
    )
    training = TrainingConfig(
        optimizer=setting.optimizer,
        schedule="constant",
        learning_rate=LEARNING_RATE,
        warmup_steps=0,
        batch_tokens=setting.batch_tokens,
        max_epochs=1,
        **setting.batching,
    )
    config: Any = SimpleNamespace(model=setting.model, training=training, runtime=runtime, seed=seed)
    machine, size = set_up(runtime), BatchSize(tokens=training.token_budget)
    batches = Batches(RandomStore(setting, seed), size, seed, **setting.batching)
    model = random_model(setting, machine.device, seed).train()
    nothing, silent = cast(Any, None), cast(Any, SimpleNamespace(say=print, advance=lambda *_: None))
    return Trainer(config, model, batches, nothing, nothing, machine, silent)


def update(trainer: Trainer) -> None:
    """The next optimizer step, as in `tmt train`."""
    trainer._update(StopSignal(), trainer.batches.updates(trainer.state.epoch))


def random_model(setting: Setting, device: torch.device, seed: int = 1) -> Transformer:
    """A model with initial weights."""
    seed_everything(seed)
    config: Any = SimpleNamespace(model=setting.model, max_positions=LONGEST + 1)
    return build_model(config, setting.vocabulary, setting.vocabulary, device)
