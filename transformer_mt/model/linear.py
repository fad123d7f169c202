"""Matrix products of the layers, y = x W^T + b; on a CPU in bfloat16 where that is asked for, float32 around them.

Processors with bfloat16 instructions multiply twice as fast in it. Autocast alone loses more than that, because
it leaves all that follows a product narrow, where attention and element-wise kernels are slow. Here operands and
result of a product are rounded, the result is widened again at once, and everything else stays float32. (Compiled,
a CPU does what autocast does.)

oneDNN compiles such a product anew for each number of rows, which takes as long as the product and keeps half a
megabyte, in the midst of the memory that the next step wants in one piece; so that few numbers occur, rows of zeros
are added.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROWS = 64  # of a narrow product on a CPU: a multiple of this at least


class Linear(nn.Linear):
    """PyTorch's, with `linear` for its product."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight_ED: Tensor, bias_E: Tensor | None = None) -> Tensor:
    """x [..., D] times the transposed weight, plus bias; [..., E]. Narrow on a CPU under autocast, and as wide as x."""
    if x.dtype is torch.float32 and narrows_here(x):
        return _NarrowProduct.apply(x, weight_ED, bias_E, torch.get_autocast_dtype("cpu"))
    return F.linear(x, weight_ED, bias_E)


def narrows_here(x: Tensor) -> bool:
    """Whether it is this module, not autocast alone, that narrows products with x."""
    return x.device.type == "cpu" and torch.is_autocast_enabled("cpu") and not torch.compiler.is_compiling()


def few_numbers(rows: int) -> int:
    """So many rows or a few more, up to 63 or an eighth: only eight numbers between a power of two and the next."""
    step = max(ROWS, (1 << rows.bit_length()) >> 4)
    return -(-rows // step) * step


def narrowed_rows(x_ND: Tensor, dtype: torch.dtype) -> Tensor:
    """x in `dtype`; where that is narrow and a CPU's, with rows of zeros after it: see `few_numbers`."""
    narrow = x_ND.device.type == "cpu" and dtype.itemsize < 4
    missing = few_numbers(len(x_ND)) - len(x_ND) if narrow else 0
    if not missing:
        return x_ND.to(dtype)
    narrow_MD = x_ND.new_empty(len(x_ND) + missing, x_ND.shape[1], dtype=dtype)
    narrow_MD[: len(x_ND)] = x_ND
    narrow_MD[len(x_ND) :] = 0
    return narrow_MD


class _NarrowProduct(torch.autograd.Function):
    """Operands and results of each of the three products rounded; the results widened again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_ED: Tensor, bias_E: Tensor | None, dtype: torch.dtype) -> Tensor:
        x_ND, w_ED = x.reshape(-1, x.shape[-1]), weight_ED.to(dtype)
        x_MD = narrowed_rows(x_ND, dtype)
        ctx.save_for_backward(x_MD, w_ED)
        ctx.shape, ctx.has_bias = x.shape, bias_E is not None
        y_ME = F.linear(x_MD, w_ED, None if bias_E is None else bias_E.to(dtype))
        return y_ME[: len(x_ND)].float().view(*x.shape[:-1], len(w_ED))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x_MD, w_ED = ctx.saved_tensors
        g_NE = gradient.reshape(-1, gradient.shape[-1])
        g_ME = narrowed_rows(g_NE, x_MD.dtype)
        of_x = (g_ME @ w_ED)[: len(g_NE)].float().view(ctx.shape) if ctx.needs_input_grad[0] else None
        of_weight = (g_ME.T @ x_MD).float() if ctx.needs_input_grad[1] else None
        return of_x, of_weight, g_NE.sum(dim=0) if ctx.has_bias else None, None
