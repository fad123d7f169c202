"""Validation while the model trains: the loss on held-out pairs, and BLEU by a function that knows text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from transformer_mt.data.batching import BatchSize, assemble, by_length, cut
from transformer_mt.data.store import Store
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.device import Machine
from transformer_mt.training.step import TrainingStep

BATCH_TOKENS = 4096


@dataclass(frozen=True)
class Sample:
    """A validation sentence, to look at."""

    source: str
    reference: str
    translation: str


@dataclass(frozen=True)
class BleuResult:
    """The BLEU score of greedy translations of validation sentences, and a few of them."""

    bleu: float
    samples: list[Sample] = field(default_factory=list)


BleuOf = Callable[[Transformer], BleuResult]


@dataclass(frozen=True)
class Judgement:
    """What a validation found. bleu: None if it was not asked for."""

    loss: float
    bleu: float | None = None
    samples: list[Sample] = field(default_factory=list)


@dataclass
class Validation:
    """Measures the loss on held-out pairs, and BLEU if `bleu_of` is given. The processes of a group share the work."""

    store: Store
    machine: Machine
    bleu_of: BleuOf | None = None

    def judge(self, model: Transformer) -> Judgement:
        """Validate without dropout; the model stays as it was. Every process must call it; all get the same result."""
        was_training = model.training
        model.eval()
        try:
            loss = mean_nll(model, self.store, BATCH_TOKENS, self.machine)
            found = self.bleu_of(model) if self.bleu_of is not None else None
        finally:
            model.train(was_training)
        return Judgement(loss) if found is None else Judgement(loss, found.bleu, found.samples)


@torch.inference_mode()
def mean_nll(model: Transformer, store: Store, tokens: int, machine: Machine) -> float:
    """The mean of -log p over the target tokens of a store, without smoothing. The model must be in eval mode."""
    step = TrainingStep(model, smoothing=0.0)
    order = by_length(store.source.lengths, store.target.lengths)
    sizes = np.maximum(store.source.lengths, store.target.lengths)[order]

    def sums_of(parts: Sequence[slice]) -> list[float]:
        """-log p of all target tokens of each of these batches."""
        sums = []
        for part in parts:
            batch = assemble(store, order[part])
            with machine.autocast():
                sums.append(step(*batch.to(machine.device)).nll)
        return torch.stack(sums).tolist() if sums else []  # waits for a GPU only once

    sums = machine.world.shared(cut(sizes, BatchSize(tokens=tokens)), sums_of)
    return math.fsum(sums) / int(store.target.lengths.sum())
