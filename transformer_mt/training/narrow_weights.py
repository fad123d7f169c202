"""A bfloat16 copy of the model computes; the optimizer updates float32 weights (Micikevicius et al. 2018, section 3.1).

Weights, hidden states and gradients then cost half of the traffic with memory (arXiv:1710.03740). An update is often
smaller than the steps between bfloat16 numbers, so it is added to the float32 weights. They are also what is validated,
averaged and saved.
"""

from __future__ import annotations

import copy

import torch

from transformer_mt.kernels.narrow import round_to_bfloat16
from transformer_mt.model.transformer import Transformer


class NarrowCopy:
    """`model`: the copy, for the training step. Between steps its weights equal the rounded weights of the original."""

    def __init__(self, original: Transformer) -> None:
        self.original, self.model = original, copy.deepcopy(original)
        round_to_bfloat16(self.model)

    @torch.no_grad()
    def round_weights(self) -> None:
        """Copy the weights of the original, rounded."""
        torch._foreach_copy_(list(self.model.parameters()), list(self.original.parameters()))

    @torch.no_grad()
    def move_gradients(self) -> None:
        """Give the gradients of the copy to the original, in float32."""
        pairs = zip(self.original.parameters(), self.model.parameters(), strict=True)
        narrow = {parameter: copied.grad for parameter, copied in pairs if copied.grad is not None}
        wide = [torch.empty_like(parameter) for parameter in narrow]
        torch._foreach_copy_(wide, list(narrow.values()))
        for parameter, gradient in zip(narrow, wide, strict=True):
            parameter.grad = gradient
        self.model.zero_grad()
