"""The time that a training takes on this machine, from a few updates with random sentences."""

from __future__ import annotations

import statistics
import time

import numpy as np
import torch

from transformer_mt.config.schema import Config
from transformer_mt.data.batching import Batch
from transformer_mt.data.packing import FlatSentences, StreamSize
from transformer_mt.kernels.build import build_model
from transformer_mt.runtime.device import Machine, process_unchanged, seed_everything
from transformer_mt.text.vocabulary import EOS
from transformer_mt.training import cuda_graph
from transformer_mt.training.gradients import Gradients
from transformer_mt.training.optimizer import Optimizer
from transformer_mt.training.step import TrainingStep

WARM_UP = 2  # updates until memory is allocated
SECONDS = 3.0
MOST_TOKENS = 2048  # of the longer side of a batch on a processor, whose time grows with the tokens


@process_unchanged()
def seconds_an_update(
    config: Config, vocabulary: tuple[int, int], lengths: tuple[float, float], machine: Machine
) -> float:
    """The seconds of one update. vocabulary, lengths: pieces, and pieces of a mean sentence, of source and target.

    Takes about SECONDS on a machine that can train this model in reasonable time.
    """
    seed_everything(config.seed)
    model = build_model(config, *vocabulary, machine.device).train()
    optimizer = Optimizer(model, config.training, machine)
    step = TrainingStep(model, config.training.label_smoothing)
    packing = config.training.packing
    gradients = Gradients(step, machine, optimizer.scaler.scale, lambda line: None, graph=packing)
    longest = [max(2, round(length)) for length in lengths]
    budget = config.training.token_budget or MOST_TOKENS
    rows = max(1, min(budget, MOST_TOKENS if machine.device.type == "cpu" else budget) // max(longest))
    sides = [torch.randint(4, size, (rows, length)) for size, length in zip(vocabulary, longest, strict=True)]
    for side in sides:
        side[:, -1] = EOS
    batch = Batch.of(*sides)
    if packing:
        source, target = (FlatSentences(side.flatten().numpy(), np.full(rows, side.shape[1])) for side in sides)
        batch = Batch.packed(source, target, StreamSize(len(source.ids), len(target.ids), rows, max(longest)))
    warm_up = WARM_UP + (cuda_graph.WARM_UP if packing else 0)  # until there is a graph
    seconds: list[float] = []
    while len(seconds) <= warm_up or sum(seconds[warm_up:]) < SECONDS:
        started = time.perf_counter()
        gradients.add_up([batch], 1 / batch.tokens)
        optimizer.update(len(seconds) + 1, 1e-4)
        if machine.device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[warm_up:]) * budget / (rows * max(longest))
