"""Muon for the matrices of the layers, AdamW for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transformer_mt.training.optimizers.adam import adam
from transformer_mt.training.optimizers.base import OptimizerKind

if TYPE_CHECKING:
    import torch
    from torch import nn


class MuonAndAdamW(OptimizerKind):
    """Muon's updates are as large as Adam's, so one learning rate serves both.

    Embeddings, output layer, biases and gains are AdamW's, as Muon's authors found best.
    """

    scales = False  # a gradient that overflows would have to stop both

    def make(self, model: nn.Module) -> list[torch.optim.Optimizer]:
        import torch

        from transformer_mt.training.muon import Muon

        matrices: dict[nn.Parameter, int] = {}
        others: list[nn.Parameter] = []
        for name, parameter in model.named_parameters():
            if ".layers." in name and parameter.ndim == 2:
                matrices[parameter] = 3 if name.endswith("query_key_value.weight") else 1
            else:
                others.append(parameter)
        decay = self.training.weight_decay
        return [Muon(matrices, lr=0.0, weight_decay=decay), adam(torch.optim.AdamW, others, self.training)]
