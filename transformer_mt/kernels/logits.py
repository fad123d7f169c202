"""What a search needs of all logits, by kernels of our own in Triton, which read each once, as it is.

PyTorch's `logsumexp` and `log_softmax` write all logits again, in float32. There is no backward pass.

This file imports Triton, so only GPUs import it.
"""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor

SIZE = 4096  # logits that a program reads at once


@triton.jit
def _log_sum(logits, log_sums, row_stride, n_logits, SIZE: tl.constexpr):
    """The log of the sum of one row, block by block (Milakov & Gimelshein 2018, arXiv:1805.02867)."""
    row = tl.program_id(0).to(tl.int64)
    highest, total = float("-inf"), 0.0
    for start in range(0, n_logits, SIZE):
        cols_s = start + tl.arange(0, SIZE)
        x_s = tl.load(logits + row * row_stride + cols_s, mask=cols_s < n_logits, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(highest, tl.max(x_s, axis=0))
        finite = tl.where(higher == float("-inf"), 0.0, higher)  # as long as all logits are minus infinity
        total = total * tl.exp(highest - finite) + tl.sum(tl.exp(x_s - finite), axis=0)
        highest = higher
    tl.store(log_sums + row, highest + tl.log(total))


@triton.jit
def _highest(logits, highest, row_stride, n_logits, n_blocks, BLOCK: tl.constexpr, SIZE: tl.constexpr):
    """The highest logits of some blocks of one row."""
    row = tl.program_id(0).to(tl.int64)
    blocks_k = tl.program_id(1) * (SIZE // BLOCK) + tl.arange(0, SIZE // BLOCK)
    cols_kb = blocks_k[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    x_kb = tl.load(logits + row * row_stride + cols_kb, mask=cols_kb < n_logits, other=float("-inf"))
    tl.store(highest + row * n_blocks + blocks_k, tl.max(x_kb, axis=1), mask=blocks_k < n_blocks)


def log_sums(logits_NV: Tensor) -> Tensor:
    """log(sum(exp(logits))) of each row: float32 [N]."""
    logits_NV = logits_NV if logits_NV.stride(1) == 1 else logits_NV.contiguous()
    found_N = logits_NV.new_empty(len(logits_NV), dtype=torch.float32)
    _log_sum[(len(logits_NV),)](logits_NV, found_N, logits_NV.stride(0), logits_NV.shape[1], SIZE=SIZE, num_warps=8)
    return found_N


def highest_of_blocks(logits_NV: Tensor, block: int) -> Tensor:
    """The highest of each `block` neighbouring logits of a row, the last block may have fewer: [N, blocks]."""
    logits_NV = logits_NV if logits_NV.stride(1) == 1 else logits_NV.contiguous()
    (n_rows, n_logits), n_blocks = logits_NV.shape, triton.cdiv(logits_NV.shape[1], block)
    found_NK = logits_NV.new_empty(n_rows, n_blocks)
    grid = n_rows, triton.cdiv(n_blocks * block, SIZE)
    _highest[grid](logits_NV, found_NK, logits_NV.stride(0), n_logits, n_blocks, BLOCK=block, SIZE=SIZE, num_warps=4)
    return found_NK


@functools.cache
def work(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether Triton can start the kernels on a device, and their results for random logits are those of PyTorch."""
    logits_NV = torch.randn(3, 2 * SIZE, generator=torch.Generator().manual_seed(1)).to(device, dtype)
    try:
        found_N, found_NK = log_sums(logits_NV), highest_of_blocks(logits_NV, 64)
    except Exception:  # Triton needs a C compiler and Python's headers; packages may be missing, or too old
        return False
    are_close = (found_N - logits_NV.double().logsumexp(dim=1)).abs() < 1e-4
    return bool(are_close.all()) and torch.equal(found_NK, logits_NV.unflatten(1, (-1, 64)).amax(dim=2))
