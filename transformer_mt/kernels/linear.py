"""Linear maps by PyTorch's fused product; on CPUs under autocast, the product alone is in bfloat16 ("narrow").

CPUs with bfloat16 instructions multiply twice as fast in it. Autocast loses more than that on a CPU: it leaves results
in bfloat16, in which attention and element-wise kernels are slow. Here the operands and the result of a product are
rounded, the result is converted back to float32 at once, and everything else stays float32. (A compiled model does what
autocast does.) Large float32 products ("wide") are oneDNN's where it is the faster library (`onednn.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_mt.kernels import onednn
from transformer_mt.kernels.onednn import with_rows_of_zeros
from transformer_mt.model.parts import Linear

if TYPE_CHECKING:
    from transformer_mt.model.transformer import Transformer


class FusedLinear(Linear):
    """Product and bias in one kernel."""

    @staticmethod
    def product(x: Tensor, weight_ED: Tensor, bias_E: Tensor | None) -> Tensor:
        return F.linear(x, weight_ED, bias_E)


class CpuLinear(FusedLinear):
    """A narrow product under autocast, else the faster of two libraries; the result has the type of x."""

    @staticmethod
    def product(x: Tensor, weight_ED: Tensor, bias_E: Tensor | None) -> Tensor:
        if x.dtype is torch.float32 and uses_narrow_product(x):
            return _NarrowProduct.apply(x, weight_ED, bias_E, torch.get_autocast_dtype("cpu"))
        if weight_ED.dtype is torch.float32 and onednn.is_for(x, weight_ED.shape[0]):
            return _WideProduct.apply(x, weight_ED, bias_E)
        return F.linear(x, weight_ED, bias_E)


@torch.no_grad()
def store_by_columns(model: Transformer) -> None:
    """Store the weights of linear maps column after column, for searches in float32 on a CPU.

    MKL's products with 5 to 200 rows are then 1.1 to 1.5 times as fast, those with more or with one as fast as before.
    A weight that is also an embedding is copied, because an embedding reads single rows.

    oneDNN gains by it if there are more outputs than inputs, and so do MKL's products of fewer rows with such weights.
    But oneDNN would copy a part of such a weight for each product, so a weight that is used in parts stays as it is.
    """
    in_parts = [layer.cross_attention.query_key_value for layer in model.decoder.layers]
    for module in model.modules():
        if isinstance(module, Linear):
            outputs, inputs = module.weight.shape
            if onednn.is_for_weight(outputs, inputs) and (outputs <= inputs or module in in_parts):
                continue
            weight = module.weight.detach().T.contiguous().T
            module.weight = nn.Parameter(weight, requires_grad=module.weight.requires_grad)


def uses_narrow_product(x: Tensor) -> bool:
    """Whether products with x are narrow by this module's means, not by autocast alone."""
    return torch.is_autocast_enabled("cpu") and x.is_cpu and not torch.compiler.is_compiling()


def narrowed_rows(x_ND: Tensor, dtype: torch.dtype) -> Tensor:
    """x [N, D] in `dtype`; on a CPU, if `dtype` has fewer than 4 bytes, with rows of zeros."""
    narrow = x_ND.device.type == "cpu" and dtype.itemsize < 4
    return with_rows_of_zeros(x_ND, dtype) if narrow else x_ND.to(dtype)


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


class _WideProduct(torch.autograd.Function):
    """The three products (output and both gradients) in float32, each by the faster library."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_ED: Tensor, bias_E: Tensor | None) -> Tensor:
        """x W^T + b: [..., D] to [..., E]."""
        ctx.save_for_backward(x, weight_ED)
        ctx.has_bias = bias_E is not None
        y_NE = onednn.linear(x.reshape(-1, x.shape[-1]), weight_ED, bias_E)
        return y_NE.view(*x.shape[:-1], len(weight_ED))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients with respect to x, W and b."""
        x, w_ED = ctx.saved_tensors
        x_ND, g_NE = x.reshape(-1, x.shape[-1]), gradient.reshape(-1, gradient.shape[-1])
        of_x = onednn.linear(g_NE, w_ED.T).view(x.shape) if ctx.needs_input_grad[0] else None
        of_weight = onednn.product_of_columns(g_NE, x_ND) if ctx.needs_input_grad[1] else None
        return of_x, of_weight, g_NE.sum(dim=0) if ctx.has_bias else None
