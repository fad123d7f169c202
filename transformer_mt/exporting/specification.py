"""Our weights in CTranslate2's own specification classes.

Its classes know the layout and say what is missing; here stands only which of our tensors goes where, and which
options have no place there. Imports CTranslate2, so it is imported only where that is known to be installed.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from ctranslate2.converters import Converter
from ctranslate2.specs import TransformerDecoderSpec, TransformerEncoderSpec, TransformerSpec
from ctranslate2.specs.common_spec import Activation, LayerNormSpec
from torch import Tensor, nn

from transformer_mt.config.model import ModelConfig
from transformer_mt.errors import TmtError
from transformer_mt.exporting.ctranslate2 import POSITIONS
from transformer_mt.model.embedding import Embedding
from transformer_mt.model.feed_forward import FeedForward
from transformer_mt.model.layers import Residual
from transformer_mt.model.multi_head_attention import MultiHeadAttention
from transformer_mt.model.positions import LearnedPositions, sinusoidal_positions
from transformer_mt.model.transformer import Transformer
from transformer_mt.text.vocabulary import BOS, EOS, MARKS, UNK

_ACTIVATIONS = {"relu": Activation.RELU, "gelu": Activation.GELU, "swiglu": Activation.SWISH}


class _Stack:
    """CTranslate2 can normalise the output of a post-norm stack, but its specification has no place for it."""

    def __init__(self, *sizes: int, final_norm: bool, **options: Any) -> None:
        super().__init__(*sizes, no_final_norm=True, **options)  # type: ignore[call-arg]
        if final_norm:
            self.layer_norm = LayerNormSpec(rms_norm=options["rms_norm"])


class _Encoder(_Stack, TransformerEncoderSpec):
    pass


class _Decoder(_Stack, TransformerDecoderSpec):
    pass


class ModelConverter(Converter):
    """CTranslate2's converter (validation, aliases, quantisation, writing) around our model."""

    def __init__(self, model: Transformer, source: list[str], target: list[str], positions: int) -> None:
        """source, target: all tokens by id. positions: rows of the tables of sinusoidal positions.

        Raises TmtError that names every option CTranslate2 cannot express.
        """
        refuse_inexpressible(model.config)
        self._model = model
        self._source, self._target = source, target
        self._positions = model.max_positions or positions

    def _load(self) -> TransformerSpec:
        """The complete specification; called by `convert`."""
        spec = TransformerSpec(*_stacks(self._model.config))
        _fill_encoder(spec.encoder, self._model, self._positions)
        _fill_decoder(spec.decoder, self._model, self._positions)
        spec.register_source_vocabulary(self._source)
        spec.register_target_vocabulary(self._target)
        spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = MARKS[UNK], MARKS[BOS], MARKS[EOS]
        spec.config.decoder_start_token = MARKS[BOS]
        spec.config.layer_norm_epsilon = self._model.config.layer_norm_epsilon
        spec.config.add_attribute(POSITIONS, self._positions)
        return spec


def refuse_inexpressible(config: ModelConfig) -> None:
    """Raises TmtError that names all options at once which CTranslate2 has no form for."""
    problems = []
    if config.epsilon_on == "deviation" and config.normalization == "layer":
        problems.append("model.epsilon_on: deviation (it adds epsilon to the variance)")
    if config.positions == "rotary" and "rotary_dim" not in signature(TransformerEncoderSpec.__init__).parameters:
        problems.append("model.positions: rotary (before its version 4.7)")
    if problems:
        raise TmtError(
            f"CTranslate2 cannot express {'; '.join(problems)}",
            remedy="Train with other settings of these options to export, or keep to --engine tmt.",
        )


def _stacks(config: ModelConfig) -> tuple[TransformerEncoderSpec, TransformerDecoderSpec]:
    options = {
        "final_norm": config.has_final_norm,
        "pre_norm": config.norm == "pre",
        "activation": _ACTIVATIONS[config.activation],
        "ffn_glu": config.activation == "swiglu",
        "rms_norm": config.normalization == "rms",
    }
    if config.positions == "rotary":
        options |= {"rotary_dim": config.d_model // config.n_heads, "rotary_interleave": False}
    encoder = _Encoder(config.encoder_layers, config.n_heads, **options)
    # Attention handed out is that of the last layer, averaged over all heads (0): as in our alignments.
    return encoder, _Decoder(config.decoder_layers, config.n_heads, alignment_heads=0, **options)


def _fill_encoder(spec: TransformerEncoderSpec, model: Transformer, positions: int) -> None:
    spec.scale_embeddings = model.config.scale_embeddings
    _fill_embedding(spec.embeddings[0], model.source_embedding)
    _fill_positions(spec, model.source_embedding, model.config, positions)
    for part, layer in zip(spec.layer, model.encoder.layers, strict=True):
        _fill_self_attention(part.self_attention, layer.self_attention, layer.around_self_attention)
        _fill_feed_forward(part.ffn, layer.feed_forward, layer.around_feed_forward)
    if model.config.has_final_norm:
        _fill_norm(spec.layer_norm, model.encoder.final_norm)


def _fill_decoder(spec: TransformerDecoderSpec, model: Transformer, positions: int) -> None:
    spec.scale_embeddings = model.config.scale_embeddings
    _fill_embedding(spec.embeddings, model.target_embedding)
    _fill_positions(spec, model.target_embedding, model.config, positions)
    for part, layer in zip(spec.layer, model.decoder.layers, strict=True):
        _fill_self_attention(part.self_attention, layer.self_attention, layer.around_self_attention)
        _fill_cross_attention(part.attention, layer.cross_attention, layer.around_cross_attention)
        _fill_feed_forward(part.ffn, layer.feed_forward, layer.around_feed_forward)
    if model.config.has_final_norm:
        _fill_norm(spec.layer_norm, model.decoder.final_norm)
    _fill_linear(spec.projection, model.generator.weight, model.generator.bias)


def _fill_embedding(spec: Any, embedding: Embedding) -> None:
    spec.weight = _array(embedding.tokens.weight)


def _fill_positions(spec: Any, embedding: Embedding, config: ModelConfig, positions: int) -> None:
    """Tables stand in the file; rotary positions are computed. Ours interleave sine and cosine, theirs do not."""
    if config.positions == "sinusoidal":
        spec.position_encodings.encodings = _array(sinusoidal_positions(positions, config.d_model))
    elif isinstance(embedding.positions, LearnedPositions):
        spec.position_encodings.encodings = _array(embedding.positions.table.weight)


def _fill_self_attention(spec: Any, attention: MultiHeadAttention, around: Residual) -> None:
    _fill_norm(spec.layer_norm, around.norm)
    _fill_linear(spec.linear[0], attention.query_key_value.weight, attention.query_key_value.bias)
    _fill_linear(spec.linear[1], attention.output.weight, attention.output.bias)


def _fill_cross_attention(spec: Any, attention: MultiHeadAttention, around: Residual) -> None:
    """Queries apart from keys and values, which are asked of another sequence."""
    stacked, bias = attention.query_key_value.weight, attention.query_key_value.bias
    d_model = stacked.shape[1]
    _fill_norm(spec.layer_norm, around.norm)
    _fill_linear(spec.linear[0], stacked[:d_model], None if bias is None else bias[:d_model])
    _fill_linear(spec.linear[1], stacked[d_model:], None if bias is None else bias[d_model:])
    _fill_linear(spec.linear[2], attention.output.weight, attention.output.bias)


def _fill_feed_forward(spec: Any, network: FeedForward, around: Residual) -> None:
    """Theirs applies the activation to `linear_0`: with a gate that is the gate."""
    _fill_norm(spec.layer_norm, around.norm)
    activated = network.inner if network.gate is None else network.gate
    _fill_linear(spec.linear_0, activated.weight, activated.bias)
    if network.gate is not None:
        _fill_linear(spec.linear_0_noact, network.inner.weight, network.inner.bias)
    _fill_linear(spec.linear_1, network.outer.weight, network.outer.bias)


def _fill_norm(spec: Any, norm: nn.Module) -> None:
    for name, parameter in norm.named_parameters():  # gamma, and beta where there is one: as theirs are named
        setattr(spec, name, _array(parameter))


def _fill_linear(spec: Any, weight: Tensor, bias: Tensor | None) -> None:
    spec.weight = _array(weight)
    if bias is not None:
        spec.bias = _array(bias)


def _array(tensor: Tensor) -> np.ndarray[Any, Any]:
    """A copy: CTranslate2 quantises in place, and the model is still needed."""
    return np.array(tensor.detach().cpu().float().numpy())
