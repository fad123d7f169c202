"""Label-smoothed cross-entropy (section 5.4) of the generator's output, without a tensor of all logits.

The logits of N positions and V tokens are by far the largest tensor of a step. Here they are computed a few rows at a
time, turned into loss and gradients, and freed. The smoothing term needs no extra pass:

    log p_v     = z_v - log Z,                      z = h W^T + b
    loss        = -(1 - e) log p_y - e / V * sum_v log p_v
                = log Z - (1 - e) z_y - e * (h . mean_v W_v + mean b)
    d loss / dz = softmax(z) - (1 - e) [v = y] - e / V

e is the paper's epsilon_ls, h a row of the decoder's output, W and b the generator's weight and bias, z the logits,
Z = sum_v exp z_v, y the target token, and [v = y] is 1 for the target token and 0 for others.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_mt.kernels import onednn
from transformer_mt.kernels.gpu_loss import MOST_ROWS, chunks, gpu_loss
from transformer_mt.kernels.linear import narrowed_rows

CPU_ROWS = 256  # rows of logits at a time, which fit a CPU's cache


def rows_at_a_time(device: torch.device) -> int:
    return CPU_ROWS if device.type == "cpu" else MOST_ROWS


def logits_bytes(device: torch.device, dtype: torch.dtype, vocabulary: int, tokens: int, compiled: bool) -> int:
    """Bytes of the logits of a chunk, and of what is made of them at the same time. dtype: of the products."""
    if device.type == "cpu":
        return 8 * vocabulary * min(tokens, CPU_ROWS)  # in float32, before and after
    narrow = dtype.itemsize
    of_each = 2 * narrow if compiled else narrow + 4 + (4 if narrow < 4 else 0)  # log-softmax: a float32 copy, a result
    return of_each * vocabulary * next((rows for _, rows in chunks(tokens)), 0)


class LossSums(NamedTuple):
    """Sums over target tokens, in nats. The caller divides by the number of tokens in the whole update.

    smoothed: what training minimises
    nll:      -log p of the targets, for reports; it has no gradient
    """

    smoothed: Tensor
    nll: Tensor


def linear_cross_entropy(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_N: Tensor,
    smoothing: float,
    compiled: bool = False,
    counts_N: Tensor | None = None,
) -> LossSums:
    """Loss of the generator, logits = hidden @ weight^T + bias, summed over N tokens, without padding.

    hidden: [N, D]; weight: [V, D]; bias: [V] or None; target: ids [N]; smoothing: epsilon; compiled: on a GPU, compile.
    counts: see `gpu_loss`, which then computes on a CPU too.
    Equals `model.label_smoothing.smoothed_cross_entropy(logits, target, smoothing)`, and F.cross_entropy with
    label_smoothing=smoothing and reduction="sum".
    """
    dtype = matmul_dtype(hidden_ND)
    with exact(hidden_ND.device):  # only the three large products are narrow
        smoothed, nll = _ChunkedLoss.apply(
            hidden_ND, weight_VD, bias_V, target_N, smoothing, dtype, torch.is_grad_enabled(), compiled, counts_N
        )
    return LossSums(smoothed, nll)


class _ChunkedLoss(torch.autograd.Function):
    """forward computes the gradients as well; backward only scales them."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        target_N: Tensor,
        smoothing: float,
        dtype: torch.dtype,
        wants_gradients: bool,  # an argument, because gradients are always off inside forward
        compiled: bool,
        counts_N: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        arguments = hidden_ND, weight_VD, bias_V, target_N, smoothing, dtype, wants_gradients
        as_on_cpu = hidden_ND.device.type == "cpu" and counts_N is None
        smoothed, nll, grads = cpu_loss(*arguments) if as_on_cpu else gpu_loss(*arguments, compiled, counts_N)
        if grads is not None:
            ctx.save_for_backward(grads.hidden_ND, grads.weight_VD, grads.bias_V)
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        hidden_ND, weight_VD, bias_V = ctx.saved_tensors
        of_bias_V = None if bias_V is None else bias_V * scale
        return hidden_ND * scale, weight_VD * scale, of_bias_V, None, None, None, None, None, None


def cpu_loss(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_N: Tensor,
    smoothing: float,
    dtype: torch.dtype,
    wants_gradients: bool,
) -> tuple[Tensor, Tensor, GeneratorGradients | None]:
    """The sums `smoothed` and `nll` of N tokens, and gradients if wanted. dtype: of the products."""
    w_VD = weight_VD.to(dtype)
    b_V = None if bias_V is None else bias_V.to(dtype)
    mean_D = weight_VD.mean(dim=0)
    mean_bias = 0.0 if bias_V is None else bias_V.mean()
    grads = GeneratorGradients(hidden_ND, weight_VD, bias_V) if wants_gradients else None
    smoothed, nll = torch.zeros(()), torch.zeros(())
    for start in range(0, len(target_N), CPU_ROWS):
        h_nD, y_n = hidden_ND[start : start + CPU_ROWS], target_N[start : start + CPU_ROWS]
        z_nV = onednn.linear(narrowed_rows(h_nD, dtype), w_VD, b_V)[: len(y_n)].float()
        max_n1 = z_nV.amax(dim=1, keepdim=True)
        z_y_n = z_nV.gather(1, y_n[:, None])[:, 0]
        exp_nV = z_nV.sub_(max_n1).exp_()
        sum_n1 = exp_nV.sum(dim=1, keepdim=True)
        log_Z_n = (sum_n1.log() + max_n1)[:, 0]
        mean_z_n = h_nD.float() @ mean_D.float() + mean_bias
        nll += (log_Z_n - z_y_n).sum()
        smoothed += (log_Z_n - (1 - smoothing) * z_y_n - smoothing * mean_z_n).sum()
        if grads is not None:
            grads.add(start, h_nD, w_VD, exp_nV, over_n1=sum_n1)  # softmax(z)
    if grads is not None:
        grads.subtract_targets(hidden_ND, weight_VD, mean_D, target_N, smoothing)
    return smoothed, nll, grads


class GeneratorGradients:
    """d loss / d hidden, weight and bias, added up chunk by chunk from d loss / d logits. All float32."""

    def __init__(self, hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None) -> None:
        self.hidden_ND = torch.empty_like(hidden_ND, dtype=torch.float32)
        self.weight_VD = torch.zeros_like(weight_VD, dtype=torch.float32)
        self.bias_V = None if bias_V is None else torch.zeros_like(bias_V, dtype=torch.float32)

    def add(self, start: int, h_nD: Tensor, w_VD: Tensor, g_nV: Tensor, over_n1: Tensor | None = None) -> None:
        """Add the n rows from row `start` on. d loss / d logits is g [n, V], or g / over if over is given.

        (g / over) @ W is computed as (g @ W) / over, and for the other product h is divided: both are smaller than g.
        """
        n_rows, dtype = len(h_nD), w_VD.dtype
        g_mV = narrowed_rows(g_nV, dtype)  # m: n rows, then rows of zeros
        hidden_nD = onednn.linear(g_mV, w_VD.T)[:n_rows].float()
        if over_n1 is not None:
            hidden_nD, h_nD = hidden_nD / over_n1, h_nD.float() / over_n1
        self.hidden_ND[start : start + n_rows] = hidden_nD
        h_mD = narrowed_rows(h_nD, dtype)
        if dtype is torch.float32 and not onednn.is_for(h_mD, len(w_VD)):
            self.weight_VD.addmm_(g_mV.T, h_mD)
        else:
            self.weight_VD += onednn.product_of_columns(g_mV, h_mD)
        if self.bias_V is not None:
            self.bias_V += g_nV.sum(dim=0) if over_n1 is None else (1 / over_n1[:, 0]) @ g_nV

    def subtract_targets(
        self, hidden_ND: Tensor, weight_VD: Tensor, mean_D: Tensor, target_N: Tensor, smoothing: float
    ) -> None:
        """Add the terms -(1 - e) [v = y] - e / V of d loss / d logits, without a tensor [N, V]."""
        vocabulary, hidden_ND = len(weight_VD), hidden_ND.float()
        self.hidden_ND -= (1 - smoothing) * weight_VD[target_N] + smoothing * mean_D
        self.weight_VD.index_add_(0, target_N, hidden_ND, alpha=-(1 - smoothing))
        self.weight_VD -= hidden_ND.sum(dim=0) * (smoothing / vocabulary)
        if self.bias_V is not None:
            ones_N = torch.ones_like(target_N, dtype=torch.float32)  # bincount would make a GPU wait
            self.bias_V.index_add_(0, target_N, ones_N, alpha=-(1 - smoothing))
            self.bias_V -= smoothing / vocabulary * len(target_N)


def matmul_dtype(hidden_ND: Tensor) -> torch.dtype:
    """The type of products: autocast's if it is on, else that of hidden."""
    kind = hidden_ND.device.type
    is_on = kind != "meta" and torch.is_autocast_enabled(kind)  # torch.compile (2.11) cannot ask what has autocast
    return torch.get_autocast_dtype(kind) if is_on else hidden_ND.dtype


def exact(device: torch.device) -> AbstractContextManager[object]:
    """Operations in the type of their operands, without autocast (which the meta device does not have)."""
    has_autocast = torch.amp.is_autocast_available(device.type)
    return torch.autocast(device.type, enabled=False) if has_autocast else nullcontext()
