"""R-Drop (Liang et al. 2021, arXiv:2106.14448): two passes with different dropout learn to predict the same.

p and q are the two predictions for a token, r is the weight. The loss is the mean of both cross-entropies plus
r / 2 * (KL(p || q) + KL(q || p)): half of Liang's loss with alpha = 2 r. As in `loss`, logits are computed for a few
rows at a time and turned into gradients at once. With g = log p - log q,

    d KL(p || q) / d z_p = p * (g - KL(p || q))         d KL(q || p) / d z_p = p - q

and the same with p and q exchanged (and g negated) for z_q.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from transformer_mt.kernels import onednn
from transformer_mt.kernels.linear import narrowed_rows
from transformer_mt.kernels.loss import GeneratorGradients, LossSums, exact, matmul_dtype, rows_at_a_time


def consistent_cross_entropy(
    one_ND: Tensor,
    other_ND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_N: Tensor,
    smoothing: float,
    r_drop: float,
) -> LossSums:
    """Sums over N tokens. one, other: the generator's input [N, D] in the two passes; nll is the mean of both passes.

    weight: [V, D]; bias: [V] or None; target: ids [N]; smoothing: epsilon; r_drop: r.
    """
    hidden_2ND = torch.stack([one_ND, other_ND])
    dtype = matmul_dtype(hidden_2ND)
    with exact(hidden_2ND.device):  # only the three large products are narrow
        smoothed, nll = _TwinLoss.apply(hidden_2ND, weight_VD, bias_V, target_N, smoothing, r_drop, dtype)
    return LossSums(smoothed, nll)


def twin_rows(device: torch.device) -> int:
    """Rows of logits at a time: fewer than in `loss`, because more tensors of them exist at once."""
    return max(1, rows_at_a_time(device) // 4)


def twin_logits_bytes(device: torch.device, vocabulary: int, tokens: int) -> int:
    """Bytes of the logits of a few rows, and of what is made of them at the same time, in float32."""
    rows = min(tokens, twin_rows(device))
    tensors = 7 if tokens == rows else 10  # those of the rows before exist until new ones replace them
    return 4 * tensors * vocabulary * rows


class _TwinLoss(torch.autograd.Function):
    """forward computes the gradients as well, of the sum of both passes; backward halves and scales them."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden_2ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        target_N: Tensor,
        smoothing: float,
        r_drop: float,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        device = hidden_2ND.device
        w_VD = weight_VD.to(dtype)
        b_V = None if bias_V is None else bias_V.to(dtype)
        flat_MD = hidden_2ND.flatten(0, 1)  # M = 2 N
        grads = GeneratorGradients(flat_MD, weight_VD, bias_V)
        nll, uniform, divergence = (torch.zeros((), device=device) for _ in range(3))
        rows = twin_rows(device)
        for start in range(0, len(target_N), rows):
            h_2nD, y_n = hidden_2ND[:, start : start + rows], target_N[start : start + rows]
            h_mD = narrowed_rows(h_2nD.flatten(0, 1), dtype)
            log_2nV = onednn.linear(h_mD, w_VD, b_V)[: 2 * len(y_n)].float().log_softmax(dim=-1).unflatten(0, (2, -1))
            nll -= log_2nV.gather(2, y_n.expand(2, -1)[:, :, None]).sum()
            uniform -= log_2nV.sum() / len(weight_VD)
            prob_2nV, gap_nV = log_2nV.exp(), log_2nV[0] - log_2nV[1]
            for number, sign in enumerate((1, -1)):
                p_nV, q_nV = prob_2nV[number], prob_2nV[1 - number]
                kl_n1 = sign * torch.linalg.vecdot(p_nV, gap_nV)[:, None]
                divergence += kl_n1.sum()
                # d loss / d z_p without the target's term: p + r p (+-g - KL(p || q)) + r (p - q)
                g_nV = (gap_nV * (sign * r_drop)).add_(1 + r_drop - r_drop * kl_n1).mul_(p_nV).sub_(q_nV, alpha=r_drop)
                grads.add(number * len(target_N) + start, h_2nD[number], w_VD, g_nV)
        grads.subtract_targets(flat_MD, weight_VD, weight_VD.mean(dim=0), target_N.repeat(2), smoothing)
        ctx.save_for_backward(grads.hidden_ND.view_as(hidden_2ND), grads.weight_VD, grads.bias_V)
        smoothed = ((1 - smoothing) * nll + smoothing * uniform + r_drop * divergence) / 2
        nll = nll / 2
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        half, (hidden_2ND, weight_VD, bias_V) = scale / 2, ctx.saved_tensors
        bias_V = None if bias_V is None else bias_V * half
        return hidden_2ND * half, weight_VD * half, bias_V, None, None, None, None
