"""The weights of a model in CTranslate2's specification classes.

These classes know the layout and report what is missing. This file decides which tensor goes where, and which options
are not supported. It imports CTranslate2, so import it only if CTranslate2 is installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np
from ctranslate2.specs import TransformerDecoderSpec, TransformerEncoderSpec, TransformerSpec
from ctranslate2.specs.common_spec import Activation, LayerNormSpec
from torch import Tensor, nn

from transformer_mt.config.model import ModelConfig
from transformer_mt.errors import TmtError
from transformer_mt.exporting.engine import POSITIONS
from transformer_mt.model.embedding import Embedding
from transformer_mt.model.feed_forward import FeedForward
from transformer_mt.model.layers import Decoder, DecoderLayer, Encoder, EncoderLayer, Residual
from transformer_mt.model.multi_head_attention import MultiHeadAttention
from transformer_mt.model.positions import LearnedPositions, sinusoidal_positions
from transformer_mt.model.transformer import Transformer
from transformer_mt.text.vocabulary import BOS, EOS, MARKS, UNK

_ACTIVATIONS = {"relu": Activation.RELU, "gelu": Activation.GELU, "silu": Activation.SWISH, "swiglu": Activation.SWISH}


def specification(model: Transformer, source: list[str], target: list[str], positions: int) -> TransformerSpec:
    """The complete specification of a model.

    source, target: all tokens, in the order of their ids
    positions:      rows of the tables of sinusoidal positions
    Raises TmtError if CTranslate2 does not support options of the model; the message names all of them.
    """
    config = model.config
    _require_supported(config)
    positions = model.max_positions or positions
    options: dict[str, Any] = {
        "no_final_norm": True,  # `_fill_stack` adds it
        "pre_norm": config.norm == "pre",
        "activation": _ACTIVATIONS[config.activation],
        "ffn_glu": config.activation == "swiglu",
        "rms_norm": config.normalization == "rms",
    }
    if config.positions == "rotary":
        options |= {"rotary_dim": config.d_model // config.n_heads, "rotary_interleave": False}
    encoder = TransformerEncoderSpec(config.encoder_layers, config.n_heads, **options)
    # Alignments use the attention of the last layer, averaged over all heads (0).
    decoder = TransformerDecoderSpec(config.decoder_layers, config.n_heads, alignment_heads=0, **options)
    _fill_stack(encoder, encoder.embeddings[0], model.encoder, model.source_embedding, config, positions)
    _fill_stack(decoder, decoder.embeddings, model.decoder, model.target_embedding, config, positions)
    _fill_linear(decoder.projection, model.generator.weight, model.generator.bias)
    spec = TransformerSpec(encoder, decoder)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = MARKS[UNK], MARKS[BOS], MARKS[EOS]
    spec.config.decoder_start_token = MARKS[BOS]
    spec.config.layer_norm_epsilon = config.layer_norm_epsilon
    spec.config.add_attribute(POSITIONS, positions)
    return spec


def _require_supported(config: ModelConfig) -> None:
    problems = [] if config.activation in _ACTIVATIONS else [f"model.activation: {config.activation}"]
    if config.epsilon_on == "deviation" and config.normalization == "layer":
        problems.append("model.epsilon_on: deviation")
    if config.positions == "rotary" and "rotary_dim" not in signature(TransformerEncoderSpec.__init__).parameters:
        problems.append("model.positions: rotary (only from version 4.7 on)")
    if problems:
        raise TmtError(
            f"CTranslate2 does not support {'; '.join(problems)}",
            remedy="To export, train with other values of these options; or translate with --engine tmt.",
        )


def _fill_stack(
    spec: Any, tokens: Any, stack: Encoder | Decoder, embedding: Embedding, config: ModelConfig, positions: int
) -> None:
    """Fill in the encoder or decoder with its embedding. tokens: the part of the specification for the embedding."""
    spec.scale_embeddings = config.scale_embeddings
    tokens.weight = _array(embedding.tokens.weight)
    # The paper interleaves sine and cosine and CTranslate2 does not, so the table is exported. Rotary needs no table.
    if config.positions == "sinusoidal":
        spec.position_encodings.encodings = _array(sinusoidal_positions(positions, config.d_model))
    elif isinstance(embedding.positions, LearnedPositions):
        spec.position_encodings.encodings = _array(embedding.positions.table.weight)
    layers: Sequence[EncoderLayer | DecoderLayer] = stack.layers
    for part, layer in zip(spec.layer, layers, strict=True):
        _fill_attention(part.self_attention, layer.self_attention, layer.around_self_attention)
        if isinstance(layer, DecoderLayer):
            _fill_attention(part.attention, layer.cross_attention, layer.around_cross_attention)
        _fill_feed_forward(part.ffn, layer.feed_forward, layer.around_feed_forward)
    if config.has_final_norm:
        # CTranslate2 reads it after a post-norm stack too, but its specification does not allow the attribute there.
        vars(spec)["layer_norm"] = LayerNormSpec(rms_norm=config.normalization == "rms")
        _fill_norm(spec.layer_norm, stack.final_norm)


def _fill_attention(spec: Any, attention: MultiHeadAttention, around: Residual) -> None:
    """Self-attention has one matrix for queries, keys and values; cross-attention has one for queries and one for both
    others."""
    stacked, bias = attention.query_key_value.weight, attention.query_key_value.bias
    *inputs, output = spec.linear
    d_model = stacked.shape[1]
    pieces = [slice(None)] if len(inputs) == 1 else [slice(0, d_model), slice(d_model, None)]
    for linear, rows in zip(inputs, pieces, strict=True):
        _fill_linear(linear, stacked[rows], None if bias is None else bias[rows])
    _fill_linear(output, attention.output.weight, attention.output.bias)
    _fill_norm(spec.layer_norm, around.norm)


def _fill_feed_forward(spec: Any, network: FeedForward, around: Residual) -> None:
    """CTranslate2 applies the activation to `linear_0`, which is the gate if there is one."""
    activated = network.inner if network.gate is None else network.gate
    _fill_linear(spec.linear_0, activated.weight, activated.bias)
    if network.gate is not None:
        _fill_linear(spec.linear_0_noact, network.inner.weight, network.inner.bias)
    _fill_linear(spec.linear_1, network.outer.weight, network.outer.bias)
    _fill_norm(spec.layer_norm, around.norm)


def _fill_norm(spec: Any, norm: nn.Module) -> None:
    for name, parameter in norm.named_parameters():  # gamma, and beta if there is one; CTranslate2 has the same names
        setattr(spec, name, _array(parameter))


def _fill_linear(spec: Any, weight: Tensor, bias: Tensor | None) -> None:
    spec.weight = _array(weight)
    if bias is not None:
        spec.bias = _array(bias)


def _array(tensor: Tensor) -> np.ndarray[Any, Any]:
    """A copy: CTranslate2 quantises in place, and the model is still needed."""
    return np.array(tensor.detach().cpu().float().numpy())
