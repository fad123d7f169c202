"""Validation during training: the loss on held-out pairs, and BLEU from a function that knows text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from transformer_mt.data.batching import assemble
from transformer_mt.data.planning import BatchSize, by_length, cut
from transformer_mt.data.store import Store
from transformer_mt.kernels.build import uncompiled
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.device import Machine
from transformer_mt.training.state import TrainState
from transformer_mt.training.step import TrainingStep

BATCH_TOKENS = 4096


class Sample(NamedTuple):
    """A validation sentence and its translation, to show."""

    source: str
    translation: str
    reference: str


@dataclass(frozen=True)
class BleuResult:
    """The BLEU score of greedy translations of validation sentences, and a few samples.

    by_direction: if there are several; `bleu` is then their mean
    """

    bleu: float
    samples: list[Sample] = field(default_factory=list)
    by_direction: dict[str, float] = field(default_factory=dict)


BleuOf = Callable[[Transformer], BleuResult]


@dataclass(frozen=True)
class ValidationResult:
    """loss: mean of -log p of a target token; bleu: None if it is not computed; by_direction: as in BleuResult."""

    loss: float
    bleu: float | None = None
    samples: list[Sample] = field(default_factory=list)
    by_direction: dict[str, float] = field(default_factory=dict)

    def record(self, state: TrainState) -> dict[str, Any]:
        """The values for metrics.jsonl. state: of the run"""
        values: dict[str, Any] = {
            "step": state.step,
            "epoch": state.latest_epoch,
            "train_loss": state.recent_loss,
            "loss": self.loss,
            "perplexity": math.exp(self.loss) if self.loss < 700 else math.inf,  # exp overflows above 709
            "bleu": self.bleu,
            "search": "greedy",
            "seconds": round(state.recent_seconds, 3),
        }
        if self.by_direction:
            values["bleu_by_direction"] = {name: round(bleu, 4) for name, bleu in self.by_direction.items()}
        return values


@dataclass
class Validation:
    """Measures the loss on held-out pairs, and BLEU if `bleu_of` is given. All processes share the work."""

    store: Store
    machine: Machine
    bleu_of: BleuOf | None = None

    def evaluate(self, model: Transformer) -> ValidationResult:
        """Validate without dropout. Every process must call it, and all get the same result."""
        was_training = model.training
        model.eval()
        try:
            with uncompiled():
                loss = mean_nll(model, self.store, BATCH_TOKENS, self.machine)
                scored = self.bleu_of(model) if self.bleu_of is not None else None
        finally:
            model.train(was_training)
        if scored is None:
            return ValidationResult(loss)
        return ValidationResult(loss, scored.bleu, scored.samples, scored.by_direction)


@torch.inference_mode()
def mean_nll(model: Transformer, store: Store, tokens: int, machine: Machine) -> float:
    """The mean of -log p of a target token in a store, without label smoothing. The model must be in eval mode."""
    step = TrainingStep(model, smoothing=0.0)
    order = by_length(store.source.lengths, store.target.lengths)
    sizes = np.maximum(store.source.lengths, store.target.lengths)[order]

    def sums_of(parts: Sequence[slice]) -> list[float]:
        """For each of these batches, the sum of -log p of its target tokens."""
        sums = []
        for part in parts:
            batch = assemble(store, order[part])
            with machine.autocast():
                sums.append(step(*batch.to(machine.device)).nll)
        return torch.stack(sums).tolist() if sums else []  # waits for a GPU only once

    sums = machine.world.split_work(cut(sizes, BatchSize(tokens=tokens)), sums_of)
    return math.fsum(sums) / int(store.target.lengths.sum())
