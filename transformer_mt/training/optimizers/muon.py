"""Muon for the matrices of the layers, AdamW for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transformer_mt.training.optimizers.adam import adam
from transformer_mt.training.optimizers.base import OptimizerKind

if TYPE_CHECKING:
    import torch
    from torch import nn


class MuonAndAdamW(OptimizerKind):
    """Muon's updates are as large as Adam's, so both take the same learning rate.

    AdamW trains embeddings, output layer, biases and gains, as Muon's authors advise.
    """

    scales = False  # an overflow would have to skip the step of both optimizers

    def make(self, model: nn.Module) -> list[torch.optim.Optimizer]:
        from transformer_mt.training.muon import Muon

        matrices: dict[nn.Parameter, int] = {}
        others: list[nn.Parameter] = []
        for name, parameter in model.named_parameters():
            if ".layers." in name and parameter.ndim == 2:
                matrices[parameter] = 3 if name.endswith("query_key_value.weight") else 1
            else:
                others.append(parameter)
        muon = Muon(matrices, lr=0.0, weight_decay=self.training.weight_decay)
        return [muon, adam(others, self.training, decoupled=True)]
