"""Search and streams compute attention again: a model whose attention has more must not lose it in silence."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from transformer_mt.config.model import ModelConfig
from transformer_mt.decoding.incremental import IncrementalDecoder
from transformer_mt.kernels.repeated import require_known_attention
from transformer_mt.model.multi_head_attention import MultiHeadAttention
from transformer_mt.model.transformer import Transformer


class Halved(MultiHeadAttention):
    """Computes something else with the same weights."""

    def combine(self, context_BHQK: Tensor) -> Tensor:
        return super().combine(context_BHQK) / 2


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_an_attention_with_more_is_an_error(positions: str) -> None:
    config = ModelConfig.model_validate(
        {"d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 2, "decoder_layers": 2, "positions": positions}
    )
    model = Transformer(config, 9, 9)
    require_known_attention(model)
    IncrementalDecoder(model)
    attention = model.decoder.layers[1].cross_attention
    attention.gate = nn.Linear(8, 8)
    with pytest.raises(NotImplementedError, match=r"decoder\.layers\.1\.cross_attention has gate.*CONTRIBUTING"):
        IncrementalDecoder(model)
    del attention.gate
    attention.scale = nn.Parameter(torch.ones(1))
    with pytest.raises(NotImplementedError, match="has scale"):
        require_known_attention(model)
    del attention.scale
    model.encoder.layers[0].self_attention.__class__ = Halved
    with pytest.raises(NotImplementedError, match=r"encoder\.layers\.0\.self_attention is a Halved"):
        require_known_attention(model)
