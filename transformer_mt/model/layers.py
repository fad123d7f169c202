"""Encoder and decoder: their layers and stacks (section 3.1, figure 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

from transformer_mt.config.model import ModelConfig
from transformer_mt.model.feed_forward import FeedForward
from transformer_mt.model.multi_head_attention import MultiHeadAttention
from transformer_mt.model.normalization import LayerNorm, RMSNorm
from transformer_mt.model.parts import READABLE, Parts
from transformer_mt.model.positions import RotaryPositions


class Residual(nn.Module):
    """The residual connection around a sub-layer, with normalisation and dropout.

    post-norm, the paper's:  LayerNorm(x + Dropout(Sublayer(x)))   (sections 3.1 and 5.4)
    pre-norm:                x + Dropout(Sublayer(LayerNorm(x)))   (analysed by Xiong et al. 2020, arXiv:2002.04745)
    """

    def __init__(self, norm: nn.Module, dropout: float, pre: bool, parts: Parts = READABLE) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = parts.dropout(dropout)
        self.pre = pre

    def forward(self, x_BTD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """x [B, T, D] to [B, T, D]. sublayer: a function from [B, T, D] to [B, T, D]."""
        if self.pre:
            normalized_BTD = self.norm(x_BTD)
            output_BTD = x_BTD + self.dropout(sublayer(normalized_BTD))
        else:
            output_BTD = self.norm(x_BTD + self.dropout(sublayer(x_BTD)))
        return output_BTD


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each in a residual connection (section 3.1)."""

    def __init__(self, config: ModelConfig, parts: Parts = READABLE) -> None:
        super().__init__()
        self.self_attention = _attention(config, parts, rotary=config.positions == "rotary")
        self.feed_forward = _feed_forward(config, parts)
        self.around_self_attention = _residual(config, parts)
        self.around_feed_forward = _residual(config, parts)

    def forward(self, x_BSD: Tensor, mask_B11S: Tensor) -> Tensor:
        """x [B, S, D] to [B, S, D]: each source position attends to all real source positions (mask True)."""
        x_BSD = self.around_self_attention(x_BSD, lambda x: self.self_attention(x, mask_BHQM=mask_B11S))
        return self.around_feed_forward(x_BSD, self.feed_forward)


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention and feed-forward, each in a residual connection (section 3.1)."""

    def __init__(self, config: ModelConfig, parts: Parts = READABLE) -> None:
        super().__init__()
        self.self_attention = _attention(config, parts, rotary=config.positions == "rotary")
        self.cross_attention = _attention(config, parts)  # never rotary: the two sides count positions apart
        self.feed_forward = _feed_forward(config, parts)
        self.around_self_attention = _residual(config, parts)
        self.around_cross_attention = _residual(config, parts)
        self.around_feed_forward = _residual(config, parts)

    def forward(self, x_BTD: Tensor, memory_BSD: Tensor, memory_mask_B11S: Tensor) -> Tensor:
        """x [B, T, D] to [B, T, D]: a target position attends to itself, to earlier ones, and to the memory [B, S, D].

        memory_mask: [B, 1, 1, S], True at real source positions.
        """
        x_BTD = self.around_self_attention(x_BTD, lambda x: self.self_attention(x, causal=True))
        x_BTD = self.around_cross_attention(x_BTD, lambda x: self.cross_attention(x, memory_BSD, memory_mask_B11S))
        return self.around_feed_forward(x_BTD, self.feed_forward)


class Encoder(nn.Module):
    """A stack of encoder layers (section 3.1): embeddings [B, S, D] to memory [B, S, D]."""

    def __init__(self, config: ModelConfig, parts: Parts = READABLE) -> None:
        super().__init__()
        layers = [EncoderLayer(config, parts) for _ in range(config.encoder_layers)]
        self.layers: Sequence[EncoderLayer] = nn.ModuleList(layers)  # type: ignore[assignment]
        # With pre-norm, nothing else normalises the sum of the last residual connection.
        self.final_norm = _norm(config, parts) if config.has_final_norm else nn.Identity()

    def forward(self, x_BSD: Tensor, mask_B11S: Tensor) -> Tensor:
        for layer in self.layers:
            x_BSD = layer(x_BSD, mask_B11S)
        memory_BSD = self.final_norm(x_BSD)
        return memory_BSD


class Decoder(nn.Module):
    """A stack of decoder layers (section 3.1): embeddings [B, T, D] and memory [B, S, D] to hidden states [B, T, D]."""

    def __init__(self, config: ModelConfig, parts: Parts = READABLE) -> None:
        super().__init__()
        layers = [DecoderLayer(config, parts) for _ in range(config.decoder_layers)]
        self.layers: Sequence[DecoderLayer] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.final_norm = _norm(config, parts) if config.has_final_norm else nn.Identity()

    def forward(self, x_BTD: Tensor, memory_BSD: Tensor, memory_mask_B11S: Tensor) -> Tensor:
        for layer in self.layers:
            x_BTD = layer(x_BTD, memory_BSD, memory_mask_B11S)
        hidden_BTD = self.final_norm(x_BTD)
        return hidden_BTD


def _attention(config: ModelConfig, parts: Parts, rotary: bool = False) -> MultiHeadAttention:
    positions = RotaryPositions(config.d_model // config.n_heads) if rotary else None
    return MultiHeadAttention(config.d_model, config.n_heads, config.attention_dropout, config.bias, positions, parts)


def _feed_forward(config: ModelConfig, parts: Parts) -> FeedForward:
    return FeedForward(config.d_model, config.d_ff, config.feed_forward_dropout, config.activation, config.bias, parts)


def _residual(config: ModelConfig, parts: Parts) -> Residual:
    return Residual(_norm(config, parts), config.dropout, config.norm == "pre", parts)


def _norm(config: ModelConfig, parts: Parts) -> LayerNorm | RMSNorm:
    if config.normalization == "rms":
        return parts.rms_norm(config.d_model, config.layer_norm_epsilon)
    return parts.layer_norm(config.d_model, config.layer_norm_epsilon, config.epsilon_on)
