"""Linear maps by PyTorch's fused product; on CPUs under autocast, the product alone is in bfloat16 ("narrow").

CPUs with bfloat16 instructions multiply twice as fast in it. Autocast loses more than that on a CPU: it leaves results
in bfloat16, in which attention and element-wise kernels are slow. Here the operands and the result of a product are
rounded, the result is converted back to float32 at once, and everything else stays float32. (A compiled model does what
autocast does.)

oneDNN compiles such a product for each new number of rows. This takes as long as the product itself and fragments the
memory. So rows of zeros are added, and only a few numbers of rows occur.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_mt.model.parts import Linear

ROWS = 64  # the rows of a narrow product are a multiple of this


class FusedLinear(Linear):
    """Product and bias in one kernel."""

    @staticmethod
    def product(x: Tensor, weight_ED: Tensor, bias_E: Tensor | None) -> Tensor:
        return F.linear(x, weight_ED, bias_E)


class CpuLinear(FusedLinear):
    """A narrow product under autocast; the result has the type of x."""

    @staticmethod
    def product(x: Tensor, weight_ED: Tensor, bias_E: Tensor | None) -> Tensor:
        if x.dtype is torch.float32 and uses_narrow_product(x):
            return _NarrowProduct.apply(x, weight_ED, bias_E, torch.get_autocast_dtype("cpu"))
        return F.linear(x, weight_ED, bias_E)


@torch.no_grad()
def store_by_columns(model: nn.Module) -> None:
    """Store the weights of all linear maps column after column, for searches in float32 on a CPU.

    Products with 5 to 200 rows are then 1.1 to 1.5 times as fast, those with more or with one as fast as before. A
    weight that is also an embedding is copied, because an embedding reads single rows.
    """
    for module in model.modules():
        if isinstance(module, Linear):
            weight = module.weight.detach().T.contiguous().T
            module.weight = nn.Parameter(weight, requires_grad=module.weight.requires_grad)


def uses_narrow_product(x: Tensor) -> bool:
    """Whether products with x are narrow by this module's means, not by autocast alone."""
    return x.device.type == "cpu" and torch.is_autocast_enabled("cpu") and not torch.compiler.is_compiling()


def round_up_rows(rows: int) -> int:
    """`rows`, or up to 63 or an eighth more: only eight numbers occur between a power of two and the next."""
    step = max(ROWS, (1 << rows.bit_length()) >> 4)
    return -(-rows // step) * step


def narrowed_rows(x_ND: Tensor, dtype: torch.dtype) -> Tensor:
    """x [N, D] in `dtype`; on a CPU, if `dtype` has fewer than 4 bytes, with rows of zeros up to `round_up_rows(N)`."""
    narrow = x_ND.device.type == "cpu" and dtype.itemsize < 4
    missing = round_up_rows(len(x_ND)) - len(x_ND) if narrow else 0
    if not missing:
        return x_ND.to(dtype)
    narrow_MD = x_ND.new_empty(len(x_ND) + missing, x_ND.shape[1], dtype=dtype)
    narrow_MD[: len(x_ND)] = x_ND
    narrow_MD[len(x_ND) :] = 0
    return narrow_MD


class _NarrowProduct(torch.autograd.Function):
    """Rounds operands and results of the three products (output and both gradients); the results are float32 again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_ED: Tensor, bias_E: Tensor | None, dtype: torch.dtype) -> Tensor:
        """x W^T + b: [..., D] to [..., E], float32."""
        x_ND, w_ED = x.reshape(-1, x.shape[-1]), weight_ED.to(dtype)
        x_MD = narrowed_rows(x_ND, dtype)
        ctx.save_for_backward(x_MD, w_ED)
        ctx.shape, ctx.has_bias = x.shape, bias_E is not None
        y_ME = F.linear(x_MD, w_ED, None if bias_E is None else bias_E.to(dtype))
        return y_ME[: len(x_ND)].float().view(*x.shape[:-1], len(w_ED))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients with respect to x, W and b, float32."""
        x_MD, w_ED = ctx.saved_tensors
        g_NE = gradient.reshape(-1, gradient.shape[-1])
        g_ME = narrowed_rows(g_NE, x_MD.dtype)
        of_x = (g_ME @ w_ED)[: len(g_NE)].float().view(ctx.shape) if ctx.needs_input_grad[0] else None
        of_weight = (g_ME.T @ x_MD).float() if ctx.needs_input_grad[1] else None
        return of_x, of_weight, g_NE.sum(dim=0) if ctx.has_bias else None, None
