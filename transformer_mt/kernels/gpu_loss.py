"""The sums and gradients of `loss` on a GPU: in chunks of two fixed sizes, so that each size compiles once.

A GPU spends more time on passes over the logits than on the three products with them. Here logits and their gradient
have the type of the products, and sums are float32. Compiled, two passes lie between the products: one finds log Z, the
other turns logits into gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

FEW_ROWS, MOST_ROWS = 2048, 8192  # of a chunk; one more size would compile for several seconds


class Gradients(NamedTuple):
    """With respect to the hidden states, the weight and the bias, which may be None."""

    hidden_ND: Tensor
    weight_VD: Tensor
    bias_V: Tensor | None


def chunk_loss(
    h_nD: Tensor,
    w_VD: Tensor,
    b_V: Tensor | None,
    y_n: Tensor,
    real_n: Tensor,
    smoothing: float,
    wants_gradients: bool = True,
) -> tuple[Tensor, Tensor, Gradients | None]:
    """The sums `smoothed` and `nll` of the rows where `real` is True, and gradients: a pure function.

    h, w and b have the type of the products, and so have the gradients; the sums are float32. h must be 0 in rows that
    do not count, and their gradient means nothing. The terms with mean_v are left out of the loss, and e / V of its
    gradient, because they need no logits. The formulas and letters are those of `loss`.
    """
    y_n1, dtype = y_n[:, None], w_VD.dtype
    z_nV = F.linear(h_nD, w_VD, b_V)
    log_p_y_n1 = z_nV.log_softmax(dim=1, dtype=torch.float32).gather(1, y_n1)
    z_y_n1 = z_nV.gather(1, y_n1).float()
    nll = -log_p_y_n1[:, 0].where(real_n, 0).sum()
    smoothed = nll + smoothing * z_y_n1[:, 0].where(real_n, 0).sum()  # log Z - (1 - e) z_y
    if not wants_gradients:
        return smoothed, nll, None
    g_y_n1 = log_p_y_n1.exp() - (1 - smoothing)  # rounded only as a difference, because it may be small
    g_nV = z_nV.softmax(dim=1).scatter_(1, y_n1, g_y_n1.to(dtype))
    of_bias_V = None if b_V is None else real_n.to(dtype) @ g_nV
    return smoothed, nll, Gradients(g_nV @ w_VD, g_nV.T @ h_nD, of_bias_V)


@cache
def compiled_chunk_loss() -> Callable[..., tuple[Tensor, Tensor, Gradients | None]]:
    """`chunk_loss`, compiled for each number of rows when it first occurs."""
    return torch.compile(chunk_loss, dynamic=False)


def chunks(tokens: int) -> Iterator[tuple[slice, int]]:
    """The tokens of each chunk, and its number of rows: one of two, so the last one may have more than tokens."""
    start = 0
    while start < tokens:
        rows = MOST_ROWS if tokens - start > MOST_ROWS - FEW_ROWS else FEW_ROWS
        yield slice(start, min(tokens, start + rows)), rows
        start += rows


def gpu_loss(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_N: Tensor,
    smoothing: float,
    dtype: torch.dtype,
    wants_gradients: bool,
    compiled: bool,
    counts_N: Tensor | None = None,
) -> tuple[Tensor, Tensor, Gradients | None]:
    """The sums `smoothed` and `nll` of N tokens, and gradients, all float32. dtype: of the products.

    counts: bool, False for tokens that do not count; hidden must be 0 there, and its gradient there means nothing. With
            it, no shape depends on the number of those that count, which a CUDA graph needs. None: all count
    """
    loss_of = compiled_chunk_loss() if compiled and wants_gradients else chunk_loss
    hidden_ND, weight_VD = hidden_ND.detach(), weight_VD.detach()
    h_ND, w_VD, b_V = hidden_ND.to(dtype), weight_VD.to(dtype), None if bias_V is None else bias_V.detach().to(dtype)
    tokens, vocabulary, wide = len(target_N), len(weight_VD), torch.float32
    mean_D, sum_D = weight_VD.mean(dim=0, dtype=wide), hidden_ND.sum(dim=0, dtype=wide)
    mean_bias = 0.0 if bias_V is None else bias_V.mean(dtype=wide)
    counting: int | Tensor = tokens if counts_N is None else counts_N.sum(dtype=wide)
    smoothed, nll = -smoothing * (sum_D @ mean_D + counting * mean_bias), sum_D.new_zeros(())
    grads = None
    if wants_gradients:
        uniform = -smoothing / vocabulary  # of each logit
        of_bias_V, of_each = None, uniform * counting
        if b_V is not None:
            of_bias_V = (
                of_each.repeat(vocabulary)
                if isinstance(of_each, Tensor)
                else b_V.new_full((vocabulary,), of_each, dtype=wide)
            )
        grads = Gradients((-smoothing * mean_D).repeat(tokens, 1), (uniform * sum_D).repeat(vocabulary, 1), of_bias_V)
    for part, rows in chunks(tokens):
        h_nD, y_n = h_ND[part], target_N[part]
        real, missing = len(y_n), rows - len(y_n)
        if missing:
            h_nD, y_n = F.pad(h_nD, (0, 0, 0, missing)), F.pad(y_n, (0, missing))
        real_n = torch.arange(rows, device=y_n.device) < real
        if counts_N is not None:
            real_n[:real] = counts_N[part]
        more_smoothed, more_nll, more = loss_of(h_nD, w_VD, b_V, y_n, real_n, smoothing, wants_gradients)
        smoothed, nll = smoothed + more_smoothed, nll + more_nll
        if grads is not None and more is not None:
            grads.hidden_ND[part] += more.hidden_ND[:real]
            grads.weight_VD.add_(more.weight_VD)
            if grads.bias_V is not None and more.bias_V is not None:
                grads.bias_V.add_(more.bias_V)
    return smoothed, nll, grads
