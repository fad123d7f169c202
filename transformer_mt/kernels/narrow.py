"""A model with weights in bfloat16: hidden states then have it too, and cost half of the traffic with memory."""

from __future__ import annotations

from torch import nn

from transformer_mt.model.positions import SinusoidalPositions


def round_to_bfloat16(model: nn.Module) -> None:
    """Round all weights of a model, in place, and the tables of positions that are added to hidden states.

    Not the angles of rotary positions, which need more digits.
    """
    for parameter in model.parameters():
        parameter.data = parameter.data.bfloat16()
    for module in model.modules():
        if isinstance(module, SinusoidalPositions):
            module.table_PD = module.table_PD.bfloat16()
