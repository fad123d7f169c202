"""Dropout masks that are cheap to draw.

PyTorch draws a float for each element. On a CPU that takes longer than the matrix product before it, so there one
random byte decides. This rounds the probability to a multiple of 1/256: 0.1 becomes 0.1016. (A probability that would
become 0 is left to PyTorch.) The scale uses the rounded probability, so the expectation stays exact.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_mt.model.parts import Dropout

_EACH_BYTE = 0x0101_0101_0101_0101


class FusedDropout(Dropout):
    """PyTorch's kernel."""

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.p)


class ByteDropout(FusedDropout):
    """For CPUs: a random byte for each element decides."""

    def drop(self, x: Tensor) -> Tensor:
        threshold = min(round(self.p * 256), 255)  # 256 would leave nothing to scale
        if not threshold or x.device.type != "cpu" or torch.compiler.is_compiling():
            return super().drop(x)
        return _DropBytes.apply(x, threshold)


class _DropBytes(torch.autograd.Function):
    """Drops an element if its random byte is below `threshold` (1 to 255)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: int) -> Tensor:
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        kept = bytes_at_least(threshold, words)[: x.numel()].view(x.shape)
        ctx.save_for_backward(kept)
        ctx.scale = 256 / (256 - threshold)
        return kept.to(x.dtype).mul_(x).mul_(ctx.scale)  # in this order, bfloat16 does not round the scale

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return kept.to(gradient.dtype).mul_(gradient).mul_(ctx.scale), None


def bytes_at_least(threshold: int, words: Tensor) -> Tensor:
    """1 for each byte of the int64 words [n] that is at least `threshold` (0 to 255), else 0: uint8 [8 n].

    One addition compares eight bytes: the sum of a byte's lower seven bits and `lacking` carries into its highest bit
    if these bits reach the threshold. PyTorch's own comparison takes six times as long.
    """
    lacking = 128 - threshold if threshold <= 128 else 256 - threshold
    added = lacking * _EACH_BYTE
    signed = added - 2**64 if added >= 2**63 else added  # the same 64 bits, as PyTorch takes them
    lower = words.bitwise_and(0x7F * _EACH_BYTE).add_(signed)
    reached = lower.bitwise_or_(words) if threshold <= 128 else lower.bitwise_and_(words)
    return (reached >> 7).bitwise_and_(_EACH_BYTE).view(torch.uint8)
