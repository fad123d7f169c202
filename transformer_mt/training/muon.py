"""Muon: each matrix moves by the semi-orthogonal matrix nearest to its momentum (Jordan et al. 2024).

See kellerjordan.github.io/posts/muon. PyTorch's Muon updates one matrix after the other. Here all matrices of one shape
are orthogonalised together, and the stacked W^Q, W^K and W^V separately, as its authors advise. The _foreach_ functions
update all matrices of a shape with one kernel on a GPU, and one after the other on a CPU.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from transformer_mt.runtime.device import multiplies_bfloat16

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the polynomial a x + b x^3 + c x^5, tuned for a large slope at 0
MOMENTUM = 0.95
ITERATIONS = 5  # all but very small singular values are then roughly between 0.7 and 1.2, which works as well as 1
MATCHING_ADAM = 0.2  # root mean square of an Adam update at learning rate 1 (Liu et al. 2025, arXiv:2502.16982)


class Muon(torch.optim.Optimizer):
    """Orthogonalised Nesterov momentum, scaled to the size of Adam's updates; decoupled weight decay.

    matrices: the number of matrices of one shape that are stacked in each weight
    """

    def __init__(self, matrices: Mapping[nn.Parameter, int], lr: float, weight_decay: float = 0.0) -> None:
        super().__init__(list(matrices), {"lr": lr, "weight_decay": weight_decay})
        self._stacked: dict[Any, int] = dict(matrices)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient."""
        for group in self.param_groups:
            by_shape: dict[tuple[int, int], list[Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    rows, columns = parameter.shape
                    by_shape[rows // self._stacked[parameter], columns].append(parameter)
            for shape, parameters in by_shape.items():
                momenta = self._momenta(parameters)
                updates = orthogonalised(torch.cat([one.view(-1, *shape) for one in momenta]))
                parts = updates.split([self._stacked[parameter] for parameter in parameters])
                length = group["lr"] * MATCHING_ADAM * math.sqrt(max(shape))  # of the step in each direction
                if group["weight_decay"]:
                    torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
                torch._foreach_add_(parameters, [part_PRC.flatten(0, 1) for part_PRC in parts], alpha=-length)

    def _momenta(self, parameters: list[Tensor]) -> list[Tensor]:
        """Nesterov momentum of each parameter: the latest gradient has more weight in it than in the running mean."""
        gradients, means = [], []
        for parameter in parameters:
            gradient, state = parameter.grad, self.state[parameter]
            assert gradient is not None
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = torch.zeros_like(gradient)
            gradients.append(gradient)
            means.append(state["momentum_buffer"])
        torch._foreach_lerp_(means, gradients, 1 - MOMENTUM)
        return list(torch._foreach_lerp(gradients, means, MOMENTUM))


def orthogonalised(matrices_MRC: Tensor) -> Tensor:
    """Approximately U V^T for each of M matrices U S V^T, by Newton-Schulz iterations: float32, [M, R, C].

    R: rows, C: columns. In the names below, S is the shorter side of a matrix and L the longer one.
    """
    a, b, c = COEFFICIENTS
    wide = matrices_MRC.shape[1] <= matrices_MRC.shape[2]  # the products below then have the size of the shorter side
    dtype = torch.bfloat16 if multiplies_bfloat16(matrices_MRC.device) else torch.float32  # bfloat16 is exact enough
    x_MSL = (matrices_MRC if wide else matrices_MRC.mT).to(dtype)
    x_MSL = x_MSL / x_MSL.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram_MSS = x_MSL @ x_MSL.mT
        polynomial_MSS = torch.baddbmm(gram_MSS, gram_MSS, gram_MSS, beta=b, alpha=c)
        x_MSL = torch.baddbmm(x_MSL, polynomial_MSS, x_MSL, beta=a)
    x_MRC = x_MSL if wide else x_MSL.mT
    return x_MRC.to(torch.float32, memory_format=torch.contiguous_format)  # copies only if it was narrow
