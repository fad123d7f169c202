"""What search and streams write out again instead of calling the model: its layers, and the attention in them."""

from __future__ import annotations

import torch

from transformer_mt.config.model import ModelConfig
from transformer_mt.kernels.changed import numbers
from transformer_mt.model.multi_head_attention import MultiHeadAttention
from transformer_mt.model.transformer import Transformer

_KNOWN = {"query_key_value", "output", "rotary"}


def require_known_attention(model: Transformer) -> None:
    """Raises NotImplementedError if an attention has parts that these would leave out in silence."""
    encoder = ((f"encoder.layers.{n}.self_attention", one.self_attention) for n, one in enumerate(model.encoder.layers))
    decoder = (
        (f"decoder.layers.{n}.{name}", getattr(one, name))
        for n, one in enumerate(model.decoder.layers)
        for name in ("self_attention", "cross_attention")
    )
    for name, attention in (*encoder, *decoder):
        added = {*attention._modules, *attention._parameters} - _KNOWN
        if added or type(attention) is not MultiHeadAttention:
            what = f"has {', '.join(sorted(added))}" if added else f"is a {type(attention).__name__}"
            raise NotImplementedError(
                f"{name} {what}, which search (decoding/incremental.py) and streams (kernels/packing.py) do not"
                " compute: see `A variant of the model` in CONTRIBUTING.md"
            )


def small_twin(config: ModelConfig) -> Transformer:
    """A small model with these options and the readable parts, in float64. No weight is 0, so that each part counts."""
    small = {"d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1, "decoder_layers": 2}
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):  # its first weights are drawn, and replaced
        model = Transformer(config.model_copy(update=small), 9, 9, max_positions=9).double().eval()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(numbers(*parameter.shape, start=number))
    return model
