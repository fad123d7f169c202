"""What slows down a training on a CUDA GPU or its start, and what to change."""

from __future__ import annotations

import math

import torch

from transformer_mt.config.schema import Config
from transformer_mt.runtime.device import compiler_problem

GPU_TOKENS = 32_768  # of a batch that keeps a large GPU busy
GPU_UPDATES = 200  # in an epoch of such batches; with fewer, a smaller batch learns more from each epoch


def has_graph_with_packing(config: Config) -> bool:
    """Whether packing is possible, and compiled updates would be a CUDA graph (see `training.cuda_graph`)."""
    training = config.training
    is_possible = training.batch_sentences is None and config.model.fits_streams
    return is_possible and training.accumulate == 1 and not training.r_drop and config.runtime.precision != "float16"


def gpu_notes(config: Config, device: torch.device, epoch_updates: int, processes: int = 1) -> list[str]:
    """What slows down a training on a CUDA GPU or its start, and what to change."""
    if device.type != "cuda":
        return []
    notes, tokens = list[str](), config.training.token_budget
    if config.runtime.compile == "auto" and (problem := compiler_problem(device)):
        notes.append(f"not compiled, so training is slower: {problem}. runtime.compile: false hides this note")
    elif config.runtime.compile:
        notes.append("the first updates compile, which can take a minute; runtime.compile: false starts at once")
        if not config.training.packing and processes == 1 and has_graph_with_packing(config):
            notes.append("--set training.packing=true makes updates faster on a GPU: on an H100 1.7 to 8 times")
    if tokens is not None and 2 * tokens <= GPU_TOKENS and epoch_updates * tokens >= GPU_UPDATES * GPU_TOKENS:
        times = GPU_TOKENS / tokens
        notes.append(
            f"batches of {tokens:,} tokens are small for a GPU: try --set training.batch_tokens={GPU_TOKENS}, with"
            f" warmup_steps divided by {times:g}, and a learning_rate up to {math.sqrt(times):.1f} times as high"
            " (noam: by itself)"
        )
    return notes
