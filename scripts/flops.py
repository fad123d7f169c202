"""The models that benchmarks train, the floating-point operations of their updates, and how many a device can do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from transformer_mt.config.model import ModelConfig
    from transformer_mt.data.batching import Batches

SIZES: dict[str, dict[str, Any]] = {
    "toy": {"d_model": 32, "n_heads": 2, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.1},
    "tiny": {"d_model": 128, "n_heads": 4, "d_ff": 256, "encoder_layers": 4, "decoder_layers": 4, "dropout": 0.3},
    "small": {"d_model": 256, "n_heads": 4, "d_ff": 1024, "encoder_layers": 3, "decoder_layers": 3, "dropout": 0.1},
    "base": {"d_model": 512, "n_heads": 8, "d_ff": 2048, "encoder_layers": 6, "decoder_layers": 6, "dropout": 0.1},
    "big": {"d_model": 1024, "n_heads": 16, "d_ff": 4096, "encoder_layers": 6, "decoder_layers": 6, "dropout": 0.3},
}


def model_sizes(size: str, all_dropouts: bool = False) -> dict[str, Any]:
    """Keys of a `model` section. all_dropouts: also of attention weights and feed-forward activations."""
    own = SIZES[size]
    return own | {key: own["dropout"] for key in ("attention_dropout", "feed_forward_dropout") if all_dropouts}


def step_flops(model: ModelConfig, vocabulary: int, source: NDArray[Any], target: NDArray[Any]) -> float:
    """FLOPs of forward and backward over a batch.

    source, target: number of real tokens of each sentence, end token included; padding does not count.
    Counts matrix products only, two FLOPs for a multiplication and its addition: projections, feed-forward, generator,
    and Q K^T and A V of each sentence. Attention counts the whole square, also under a causal mask, as in PaLM
    (Chowdhery et al. 2022, arXiv:2204.02311, appendix B). The backward pass has two products for each one. Nothing is
    added for what an implementation computes twice, so that its share of the peak is the model FLOP utilisation (MFU).
    """
    d_model, s, t = model.d_model, source.astype(np.float64), target.astype(np.float64)
    feed_forward = (3 if model.activation == "swiglu" else 2) * d_model * model.d_ff
    encoder_layer = (4 * d_model**2 + feed_forward) * s + 2 * d_model * s * s
    decoder_layer = (6 * d_model**2 + feed_forward) * t + 2 * d_model**2 * s + 2 * d_model * (t * t + t * s)
    generator = d_model * vocabulary * t
    forward = 2 * (model.encoder_layers * encoder_layer + model.decoder_layers * decoder_layer + generator)
    return 3.0 * float(forward.sum())


def tokens_and_flops(batches: Batches, numbers: range, model: ModelConfig, vocabulary: int) -> tuple[int, float]:
    """Target tokens and FLOPs of these updates of the first epoch, counted from 0; the plan repeats after its end."""
    plan, store = batches.plan(1).batches, batches.store
    pairs = np.concatenate([plan[number % len(plan)] for number in numbers])
    source, target = store.source.lengths[pairs], store.target.lengths[pairs]
    return int(target.sum()), step_flops(model, vocabulary, source, target)


def matrix_peak(device: torch.device) -> float:
    """FLOP/s of a product of two large matrices, the best of ten: float32 on the threads in use, bfloat16 on a GPU.

    On a CPU by the library that a training uses for them.
    """
    from transformer_mt.kernels import onednn

    product = onednn.linear if device.type == "cpu" else torch.mm
    n, dtype = (2048, torch.float32) if device.type == "cpu" else (8192, torch.bfloat16)
    a, b = (torch.randn(n, n, dtype=dtype, device=device) for _ in range(2))
    best = 1e9
    for _ in range(10):
        wait_for(device)
        started = time.perf_counter()
        product(a, b)
        wait_for(device)
        best = min(best, time.perf_counter() - started)
    return 2 * n**3 / best


def wait_for(device: torch.device) -> None:
    """Wait until the GPU has finished."""
    if device.type == "cuda":
        torch.cuda.synchronize()
