"""The highest of many logits: on a CPU several times as fast as PyTorch's `topk`, on a GPU with fewer passes."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch import Tensor

_BLOCK = 64  # logits
_MIN_BLOCKS = 32  # of a row; with fewer, `topk` of all logits is faster
FEW_LOGITS = 1 << 16  # of all rows; with no more, a CPU takes longer to start the operations on blocks than to compute
MANY_ROWS = 512  # with fewer, a GPU waits for the host, which starts PyTorch's kernels sooner


def top_candidates(logits_NV: Tensor, scores_BW: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """For each sentence, the `count` highest sums of a row's score and one of its logits.

    logits: [B * W, V]; scores: [B, W]. Returns sums, ids and rows within the sentence (0 to W - 1), each [B, X] with
    X = min(count, W * V), highest first. The highest logits are in the blocks with the highest maxima, so only those
    blocks are sorted. Finding the maxima reads the logits once, `topk` several times.
    """
    n_sentences, width = scores_BW.shape
    vocab_size, device = logits_NV.shape[1], logits_NV.device
    few = device.type == "cpu" and logits_NV.numel() <= FEW_LOGITS
    if count == width == 1 and (few or device.type != "cpu"):  # a GPU needs no blocks to find a maximum
        highest_B1, ids_B1 = logits_NV.max(dim=1, keepdim=True)
        return highest_B1 + scores_BW, ids_B1, torch.zeros_like(ids_B1)
    n_blocks, rest = divmod(vocab_size, _BLOCK)
    if few or n_blocks < _MIN_BLOCKS or width * n_blocks <= 2 * count or device.type not in ("cpu", "cuda"):
        sums_BX = (logits_NV.reshape(n_sentences, width, -1) + scores_BW[:, :, None]).flatten(1)
        best = sums_BX.topk(min(count, width * vocab_size), dim=-1)
        return best.values, best.indices % vocab_size, best.indices.div(vocab_size, rounding_mode="floor")
    highest_NK = _highest_of_blocks(logits_NV)
    highest_BX = (highest_NK.view(n_sentences, width, -1) + scores_BW[:, :, None]).flatten(1)
    block_BC = highest_BX.topk(count, dim=-1, sorted=False).indices
    row_BC = block_BC.div(highest_NK.shape[1], rounding_mode="floor")
    first_BC = ((block_BC - row_BC * highest_NK.shape[1]) * _BLOCK).clamp_(max=vocab_size - _BLOCK)
    blocks_BCY = _windows(logits_NV, row_BC, first_BC) + scores_BW.gather(1, row_BC)[:, :, None]
    if rest:  # the last block begins inside the one before it; the logits in both count once
        filled_BC1 = (first_BC % _BLOCK != 0)[:, :, None]
        blocks_BCY.masked_fill_(filled_BC1 & (torch.arange(_BLOCK, device=device) < _BLOCK - rest), -math.inf)
    best = blocks_BCY.flatten(1).topk(count, dim=-1)
    chosen_BX = best.indices.div(_BLOCK, rounding_mode="floor")
    ids_BX = first_BC.gather(1, chosen_BX) + best.indices - chosen_BX * _BLOCK
    return best.values, ids_BX, row_BC.gather(1, chosen_BX)


def likeliest(logits_NV: Tensor) -> Tensor:
    """The id of the highest logit of each row, [N]: `argmax`, in fewer passes over the logits."""
    return top_candidates(logits_NV, logits_NV.new_zeros(len(logits_NV), 1), 1)[1][:, 0]


def _highest_of_blocks(logits_NV: Tensor) -> Tensor:
    """The highest logit of each block, the last of which may be shorter: [N, blocks]."""
    own = own_kernels(logits_NV)
    if own is not None:
        found_NK: Tensor = own.highest_of_blocks(logits_NV, _BLOCK)
        return found_NK
    n_blocks, rest = divmod(logits_NV.shape[1], _BLOCK)
    highest_NK = logits_NV[:, : n_blocks * _BLOCK].unflatten(1, (n_blocks, _BLOCK)).amax(dim=-1)
    if rest:
        highest_NK = torch.cat([highest_NK, logits_NV[:, -rest:].amax(dim=-1, keepdim=True)], dim=1)
    return highest_NK


def _windows(logits_NV: Tensor, row_BC: Tensor, first_BC: Tensor) -> Tensor:
    """_BLOCK neighbouring logits, from ids first_BC on, of rows row_BC of each sentence: [B, C, Y]."""
    n_sentences, vocab_size = len(row_BC), logits_NV.shape[1]
    first_row_B1 = torch.arange(n_sentences, device=row_BC.device)[:, None] * (len(logits_NV) // n_sentences)
    start_BC = (first_row_B1 + row_BC) * vocab_size + first_BC
    every_MY = logits_NV.contiguous().view(-1).unfold(0, _BLOCK, 1)  # the window at each place, nothing copied
    return every_MY.index_select(0, start_BC.flatten()).unflatten(0, row_BC.shape)


def own_kernels(logits_NV: Tensor) -> Any:
    """The module of our own kernels for logits (`kernels.logits`); None where PyTorch's are to be used."""
    if not logits_NV.is_cuda or torch.is_grad_enabled() or len(logits_NV) < MANY_ROWS:
        return None
    module = _logits()
    return module if module is not None and module.work(logits_NV.device, logits_NV.dtype) else None


@functools.cache
def _logits() -> Any:
    try:
        from transformer_mt.kernels import logits
    except ImportError:  # Triton comes with PyTorch for CUDA on Linux only
        return None
    return logits
