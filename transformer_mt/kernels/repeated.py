"""What search and streams write out again instead of calling the model: the attention of its layers."""

from __future__ import annotations

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
