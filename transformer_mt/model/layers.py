"""Encoder and decoder layers and their stacks (section 3.1, figure 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

from transformer_mt.config.model import ModelConfig
from transformer_mt.model.attention import KeyValue, MultiHeadAttention
from transformer_mt.model.cache import DecoderCache
from transformer_mt.model.dropout import Dropout
from transformer_mt.model.feed_forward import FeedForward
from transformer_mt.model.normalization import LayerNorm, RMSNorm
from transformer_mt.model.positions import RotaryPositions
from transformer_mt.model.watch import note


class Residual(nn.Module):
    """The residual connection around a sub-layer, with its normalisation and dropout.

    post-norm, the paper's:  LayerNorm(x + Dropout(Sublayer(x)))   (sections 3.1 and 5.4)
    pre-norm:                x + Dropout(Sublayer(LayerNorm(x)))   (Xiong et al. 2020, arXiv:2002.04745)
    """

    def __init__(self, norm: nn.Module, dropout: float, pre: bool) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = Dropout(dropout)
        self.pre = pre

    def forward(self, x_BTD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.pre:
            normalized_BTD = self.norm(x_BTD)
            note(normalized_BTD=normalized_BTD)
            output_BTD = x_BTD + self.dropout(sublayer(normalized_BTD))
        else:
            output_BTD = self.norm(x_BTD + self.dropout(sublayer(x_BTD)))
        note(output_BTD=output_BTD)
        return output_BTD


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each inside a residual connection."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = _attention(config, rotary=config.positions == "rotary")
        self.feed_forward = _feed_forward(config)
        self.around_self_attention = _residual(config)
        self.around_feed_forward = _residual(config)

    def forward(self, x_BSD: Tensor, mask_BHQM: Tensor | None) -> Tensor:
        """All source positions at once; each sees every position the mask allows."""
        x_BSD = self.around_self_attention(x_BSD, lambda x: self.self_attention(x, mask_BHQM=mask_BHQM))
        return self.around_feed_forward(x_BSD, self.feed_forward)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = _attention(config, rotary=config.positions == "rotary")
        self.cross_attention = _attention(config)  # never rotary: source and target share no distance
        self.feed_forward = _feed_forward(config)
        self.around_self_attention = _residual(config)
        self.around_cross_attention = _residual(config)
        self.around_feed_forward = _residual(config)

    def forward(self, x_BTD: Tensor, memory_BSD: Tensor, memory_mask_B11S: Tensor | None) -> Tensor:
        """All target positions at once; each sees itself and those before it."""
        x_BTD = self.around_self_attention(x_BTD, lambda x: self.self_attention(x, causal=True))
        x_BTD = self.around_cross_attention(x_BTD, lambda x: self.cross_attention(x, memory_BSD, memory_mask_B11S))
        return self.around_feed_forward(x_BTD, self.feed_forward)

    def step(self, x_N1D: Tensor, cache: DecoderCache, layer: int) -> Tensor:
        """The newest position only; it sees itself, whose cell in the opened cache it fills, and its row's past.

        layer: which entries of the cache are this layer's.
        """
        plain = _plain_is_faster(x_N1D)

        def attend_to_past(x_N1D: Tensor) -> Tensor:
            query_NH1K, new = self.self_attention.project(x_N1D, cache.length - 1)
            so_far = cache.write(layer, KeyValue(*(_by_family(x_NH1K, cache.n_families) for x_NH1K in new)))
            query_GHWK = _by_family(query_NH1K, cache.n_families)
            return self.self_attention.attend(query_GHWK, so_far, cache.asked_G1WC, plain=plain).view_as(x_N1D)

        def attend_to_memory(x_BWD: Tensor) -> Tensor:
            return self.cross_attention(x_BWD, memory, cache.memory_mask, plain=plain)

        memory = cache.memory[layer]
        x_N1D = self.around_self_attention(x_N1D, attend_to_past)
        x_BWD = x_N1D.view(memory.key_BHMK.shape[0], -1, x_N1D.shape[-1])  # W rows ask the memory of one sentence
        x_BWD = self.around_cross_attention(x_BWD, attend_to_memory)
        return self.around_feed_forward(x_BWD, self.feed_forward).view_as(x_N1D)


def _plain_is_faster(x_N1D: Tensor) -> bool:
    """At attention of one query a row. On a GPU the fused kernel is."""
    return x_N1D.device.type == "cpu"


def _by_family(x_NH1K: Tensor, n_families: int) -> Tensor:
    """[N, H, 1, K] to [G, H, W, K]: the rows of a family as if they were positions."""
    return x_NH1K.unflatten(0, (n_families, -1)).squeeze(3).transpose(1, 2)


class Encoder(nn.Module):
    """A stack of encoder layers: embeddings [B, S, D] to memory [B, S, D]."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers: Sequence[EncoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            EncoderLayer(config) for _ in range(config.encoder_layers)
        )
        self.final_norm = _norm(config) if config.has_final_norm else None

    def forward(self, x_BSD: Tensor, mask_BHQM: Tensor | None) -> Tensor:
        for layer in self.layers:
            x_BSD = layer(x_BSD, mask_BHQM)
        memory_BSD = x_BSD if self.final_norm is None else self.final_norm(x_BSD)
        note(memory_BSD=memory_BSD)
        return memory_BSD


class Decoder(nn.Module):
    """A stack of decoder layers: embeddings [B, T, D] and memory to hidden states [B, T, D]."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers: Sequence[DecoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            DecoderLayer(config) for _ in range(config.decoder_layers)
        )
        self.final_norm = _norm(config) if config.has_final_norm else None

    def project_memory(self, memory_BSD: Tensor) -> tuple[KeyValue, ...]:
        """Each layer's keys and values of the encoder's output."""
        return tuple(layer.cross_attention.project_memory(memory_BSD) for layer in self.layers)

    def forward(self, x_BTD: Tensor, memory_BSD: Tensor, memory_mask_B11S: Tensor | None) -> Tensor:
        for layer in self.layers:
            x_BTD = layer(x_BTD, memory_BSD, memory_mask_B11S)
        return self._normalized(x_BTD)

    def step(self, x_N1D: Tensor, cache: DecoderCache) -> tuple[Tensor, DecoderCache]:
        """The newest position only, and the cache that knows it too."""
        cache = cache.opened(len(x_N1D))
        for index, layer in enumerate(self.layers):
            x_N1D = layer.step(x_N1D, cache, index)
        return self._normalized(x_N1D), cache

    def _normalized(self, x_BTD: Tensor) -> Tensor:
        hidden_BTD = x_BTD if self.final_norm is None else self.final_norm(x_BTD)
        note(hidden_BTD=hidden_BTD)
        return hidden_BTD


def _attention(config: ModelConfig, rotary: bool = False) -> MultiHeadAttention:
    turn = RotaryPositions(config.d_model // config.n_heads) if rotary else None
    fused = config.attention == "fused"
    return MultiHeadAttention(config.d_model, config.n_heads, config.attention_dropout, config.bias, fused, turn)


def _feed_forward(config: ModelConfig) -> FeedForward:
    return FeedForward(config.d_model, config.d_ff, config.feed_forward_dropout, config.activation, config.bias)


def _residual(config: ModelConfig) -> Residual:
    return Residual(_norm(config), config.dropout, pre=config.norm == "pre")


def _norm(config: ModelConfig) -> LayerNorm | RMSNorm:
    fused = config.norm_kernel == "fused"
    if config.normalization == "rms":
        return RMSNorm(config.d_model, config.layer_norm_epsilon, fused)
    return LayerNorm(config.d_model, config.layer_norm_epsilon, config.epsilon_on, fused)
