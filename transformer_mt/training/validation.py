"""Judging the model while it trains: the loss on held-out pairs, and BLEU by whoever knows text."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from transformer_mt.data.batching import BatchSize, assemble, by_length, cut
from transformer_mt.data.store import Store
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.device import Machine
from transformer_mt.training.step import TrainingStep


@dataclass(frozen=True)
class Sample:
    source: str
    reference: str
    translation: str


@dataclass(frozen=True)
class BleuResult:
    """Greedy translations of validation sentences: their score and a few of them to look at."""

    bleu: float
    samples: list[Sample] = field(default_factory=list)


BleuOf = Callable[[Transformer], BleuResult]


@torch.inference_mode()
def mean_nll(model: Transformer, store: Store, tokens: int, machine: Machine) -> float:
    """-log p of a target token, on average over a store: no smoothing, no dropout. The model is in eval mode."""
    import numpy as np

    step = TrainingStep(model, smoothing=0.0)
    order = by_length(store.source.lengths, store.target.lengths)
    sizes = np.maximum(store.source.lengths, store.target.lengths)[order]
    total, count = torch.zeros((), dtype=torch.float64, device=machine.device), 0
    for part in cut(sizes, BatchSize(tokens=tokens)):
        batch = assemble(store, order[part])
        with machine.autocast():
            total += step(*batch.to(machine.device)).nll.double()
        count += batch.tokens
    return float(total) / max(1, count)


def perplexity(nll: float) -> float:
    """exp of the loss; infinite where that is beyond all numbers."""
    return math.exp(nll) if nll < 700 else math.inf
