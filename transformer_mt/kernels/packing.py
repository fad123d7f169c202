"""The model on streams: sentences concatenated, without padding between them (see `data.packing`).

It walks over the modules of `model` and computes the same as their `forward` on a padded batch, with three differences:

- a position counts from the start of its sentence, and attention stays inside a sentence;
- one product computes the memory's keys and values for all decoder layers;
- rotary angles are looked up once for each side, not twice in each layer.

Beside the letters of `model`: L tokens of a stream (S of the source, T of the target); X spans, which are its
sentences, pieces of the padding at its end, or empty. There is no dimension B: several streams are joined into one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.attention import flex_attention as flex

from transformer_mt.errors import TmtError
from transformer_mt.kernels.attention import cpu_attention
from transformer_mt.kernels.linear import uses_narrow_product
from transformer_mt.kernels.loss import matmul_dtype
from transformer_mt.kernels.repeated import require_known_attention, small_twin
from transformer_mt.model.embedding import Embedding
from transformer_mt.model.layers import DecoderLayer, EncoderLayer
from transformer_mt.model.multi_head_attention import MultiHeadAttention
from transformer_mt.model.positions import RotaryPositions, angles
from transformer_mt.model.transformer import Transformer

BLOCK = 128  # queries and keys in a block of FlexAttention's mask


class Spans(NamedTuple):
    """The spans of a stream.

    positions_L: the position of each token in its span
    starts_X:    int32 [X + 1]: the first token of each span, then the end of the stream
    longest:     no span has more tokens
    """

    positions_L: Tensor
    starts_X: Tensor
    longest: int

    def repeated(self, times: int) -> Spans:
        """The spans of `times` such streams joined into one."""
        if times == 1:
            return self
        ends_X = [self.starts_X[1:] + len(self.positions_L) * number for number in range(times)]
        return Spans(self.positions_L.repeat(times), torch.cat([self.starts_X[:1], *ends_X]), self.longest)

    def of_tokens(self) -> Tensor:
        """The number of each token's span: [L]."""
        tokens_L = torch.arange(len(self.positions_L), device=self.starts_X.device)
        span_L: Tensor = torch.searchsorted(self.starts_X[1:], tokens_L.to(self.starts_X), right=True)
        return span_L


Attend = Callable[[Tensor, Tensor, Tensor], Tensor]  # queries, keys and values [L, H, K] to contexts [L, H, K]
PackedAttention = Callable[[Spans, Spans, bool], Attend]  # spans of queries, spans of keys, whether it is causal


class Attends(NamedTuple):
    """How the source attends to itself, the target to itself, and the target to the source."""

    source: Attend
    target: Attend
    across: Attend


def encoder_layer(layer: EncoderLayer, x_SD: Tensor, inside: SelfAttention) -> Tensor:
    """`EncoderLayer.forward` on a stream: x [S, D] to [S, D]. inside: how to attend, the same for all layers."""
    x_SD = layer.around_self_attention(x_SD, functools.partial(inside, layer.self_attention))
    return layer.around_feed_forward(x_SD, layer.feed_forward)


def decoder_layer(layer: DecoderLayer, x_TD: Tensor, inside: SelfAttention, memory: Memory, across: Attend) -> Tensor:
    """`DecoderLayer.forward` on a stream: x [T, D] to [T, D]. memory: of this layer; across: how to attend to it."""
    x_TD = layer.around_self_attention(x_TD, functools.partial(inside, layer.self_attention))
    x_TD = layer.around_cross_attention(x_TD, functools.partial(memory, layer.cross_attention, across))
    return layer.around_feed_forward(x_TD, layer.feed_forward)


class StreamLayers(NamedTuple):
    """The functions for a layer of each stack: those above, or what torch.compile makes of them."""

    encoder: Callable[..., Tensor] = encoder_layer
    decoder: Callable[..., Tensor] = decoder_layer

    @classmethod
    def compiled(cls) -> StreamLayers:
        """All layers of a stack share one graph, for the one shape that streams have."""
        return cls(*(torch.compile(one, dynamic=False) for one in cls()))


AS_WRITTEN = StreamLayers()


def packed_hidden(
    model: Transformer,
    source_BS: Tensor,
    target_BT: Tensor,
    source: Spans,
    target: Spans,
    layers: StreamLayers = AS_WRITTEN,
) -> Tensor:
    """Hidden states [B, T, D] of streams, as from `model(source, target)`. B streams have the same spans.

    source, target: the spans of each side
    """
    rows, source, target = len(source_BS), source.repeated(len(source_BS)), target.repeated(len(target_BT))
    weight = model.generator.weight
    attention = attention_for(weight.device, matmul_dtype(weight), model.config.d_model // model.config.n_heads)
    attends = Attends(
        attention(source, source, False), attention(target, target, True), attention(target, source, False)
    )
    hidden_TD = stream_hidden(model, source_BS.flatten(), target_BT.flatten(), source, target, attends, layers)
    return hidden_TD.unflatten(0, (rows, -1))


def stream_hidden(
    model: Transformer,
    source_S: Tensor,
    target_T: Tensor,
    source: Spans,
    target: Spans,
    attends: Attends,
    layers: StreamLayers = AS_WRITTEN,
) -> Tensor:
    """Hidden states [T, D] of one stream. All shapes stay the same from batch to batch, for torch.compile."""
    encoder, decoder = model.encoder, model.decoder
    x_SD = _embed(model.source_embedding, source_S, source)
    dtype = x_SD.dtype if uses_narrow_product(x_SD) else matmul_dtype(x_SD)  # of queries and keys
    inside = SelfAttention(encoder.layers[0].self_attention, source, attends.source, dtype)
    for own in encoder.layers:
        x_SD = layers.encoder(own, x_SD, inside)
    memory_SD = encoder.final_norm(x_SD)

    x_TD = _embed(model.target_embedding, target_T, target)
    inside = SelfAttention(decoder.layers[0].self_attention, target, attends.target, dtype)
    for layer, memory in zip(decoder.layers, _memory_of_layers(decoder.layers, memory_SD), strict=True):
        x_TD = layers.decoder(layer, x_TD, inside, memory, attends.across)
    return decoder.final_norm(x_TD)


@torch.no_grad()
def require_same_streams(model: Transformer) -> None:
    """Raises TmtError unless streams compute what the model does. Takes some milliseconds.

    Raises NotImplementedError if this very model has more in an attention than its class.
    """
    require_known_attention(model)
    twin = small_twin(model.config)
    source_BS, target_BT = torch.tensor([[4, 5, 6], [7, 8, 4]]), torch.tensor([[8, 4], [5, 6]])
    source, target = (
        Spans(torch.arange(width).repeat(2), torch.arange(3, dtype=torch.int32) * width, width) for width in (3, 2)
    )
    found_1TD = packed_hidden(twin, source_BS.view(1, -1), target_BT.view(1, -1), source, target)
    if not torch.allclose(found_1TD.view(2, 2, -1), twin(source_BS, target_BT)):
        raise TmtError(
            "streams would compute something else than the layers in model/, so a change of these would be lost",
            place="transformer_mt/model",
            remedy="Change kernels/packing.py in the same way (see `A variant of the model` in CONTRIBUTING.md), or set"
            " training.packing: false.",
        )


def _embed(embedding: Embedding, ids_L: Tensor, spans: Spans) -> Tensor:
    """`Embedding.forward` with a position for each token: [L, D]."""
    x_LD = embedding.tokens(ids_L) * embedding.scale
    if embedding.positions is not None:
        table_PD = embedding.positions(0, spans.longest)
        x_LD = x_LD + table_PD.index_select(0, spans.positions_L)
    return embedding.dropout(x_LD)


class SelfAttention:
    """Self-attention of all layers of one side: they share the spans, and the rotation of each token."""

    def __init__(self, first: MultiHeadAttention, spans: Spans, attend: Attend, dtype: torch.dtype) -> None:
        self.attend, self.rotation = attend, None
        if first.rotary is not None:
            cos_PK, sin_PK = _rotary_tables(first.rotary, spans.longest, dtype)
            cos_LK, sin_LK = (table_PK.index_select(0, spans.positions_L) for table_PK in (cos_PK, sin_PK))
            self.rotation = cos_LK[:, None, None], sin_LK[:, None, None]

    def __call__(self, layer: MultiHeadAttention, x_LD: Tensor) -> Tensor:
        """`MultiHeadAttention.forward` without memory: x [L, D] to [L, D]."""
        projected_L3HK = layer.query_key_value(x_LD).unflatten(-1, (3, layer.n_heads, -1))
        if self.rotation is None:
            query_LHK, key_LHK, value_LHK = projected_L3HK.unbind(1)
        else:
            both_L2HK, value_L1HK = projected_L3HK.split([2, 1], dim=1)
            cos_L11K, sin_L11K = self.rotation
            partner_L2HK = both_L2HK.roll(both_L2HK.shape[-1] // 2, dims=-1)
            query_LHK, key_LHK = torch.addcmul(both_L2HK * cos_L11K, partner_L2HK, sin_L11K).unbind(1)
            value_LHK = value_L1HK.squeeze(1)
        return layer.output(self.attend(query_LHK, key_LHK, value_LHK).flatten(1))


def _rotary_tables(rotary: RotaryPositions, length: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosines, and sines with the sign of `RotaryPositions.forward`, of the first positions: each [length, K]."""
    angle_PI = rotary.angle_PI[:length]
    if len(angle_PI) < length:
        angle_PI = angles(length, 2 * angle_PI.shape[1]).to(angle_PI)
    cos_PI, sin_PI = angle_PI.cos().to(dtype), angle_PI.sin().to(dtype)
    return torch.cat([cos_PI, cos_PI], dim=-1), torch.cat([-sin_PI, sin_PI], dim=-1)


@dataclass(frozen=True, eq=False)  # torch.compile (2.11) needs its hash before it has fields
class Memory:
    """What a decoder layer needs of the source: keys and values [S, H, K], and the weight and bias of its queries."""

    key_SHK: Tensor
    value_SHK: Tensor
    query_weight_DD: Tensor
    query_bias_D: Tensor | None

    def __call__(self, layer: MultiHeadAttention, attend: Attend, x_TD: Tensor) -> Tensor:
        """`MultiHeadAttention.forward` with this memory: x [T, D] to [T, D]."""
        query_TD = layer.query_key_value.product(x_TD, self.query_weight_DD, self.query_bias_D)
        query_THK = query_TD.unflatten(-1, (layer.n_heads, -1))
        return layer.output(attend(query_THK, self.key_SHK, self.value_SHK).flatten(1))


def _memory_of_layers(layers: Sequence[DecoderLayer], memory_SD: Tensor) -> list[Memory]:
    """Keys and values of the memory for each layer, from one product with all their matrices."""
    d_model, first = memory_SD.shape[-1], layers[0].cross_attention
    maps = [layer.cross_attention.query_key_value for layer in layers]
    # each matrix is split once: the gradients of its parts are then joined by one kernel
    weights = [one.weight.split([d_model, 2 * d_model]) for one in maps]
    biases = [(None, None) if one.bias is None else one.bias.split([d_model, 2 * d_model]) for one in maps]
    weight_ED = torch.cat([weight for _, weight in weights])  # E = 2 D for each layer
    bias_E = None if maps[0].bias is None else torch.cat([bias for _, bias in biases if bias is not None])
    projected_SE = first.query_key_value.product(memory_SD, weight_ED, bias_E)
    heads = projected_SE.unflatten(-1, (2 * len(layers), first.n_heads, -1)).unbind(1)  # a key and a value in turn
    return [
        Memory(key_SHK, value_SHK, weight_DD, bias_D)
        for key_SHK, value_SHK, (weight_DD, _), (bias_D, _) in zip(
            heads[::2], heads[1::2], weights, biases, strict=True
        )
    ]


def attention_for(device: torch.device, dtype: torch.dtype, head_width: int) -> PackedAttention:
    """The fastest attention on a device. CUDA: our own for sentences, FlashAttention if the longest is too long for it,
    else FlexAttention.
    """
    if device.type != "cuda":
        return masked_attention
    has_flash = torch.backends.cuda.is_flash_attention_available() and torch.cuda.get_device_capability(device) >= (
        8,
        0,
    )
    is_narrow = dtype in (torch.bfloat16, torch.float16) and head_width % 8 == 0 and head_width <= 256
    flash = find_flash() if has_flash and is_narrow else None
    return for_sentences(device, dtype, head_width, flash or functools.partial(flex_attention, compiled_flex()))


def for_sentences(device: torch.device, dtype: torch.dtype, head_width: int, other: PackedAttention) -> PackedAttention:
    """Our own attention for spans that it is made for, if it works on the device; `other` for other spans."""
    try:
        from transformer_mt.kernels import span_attention as own
    except ImportError:  # Triton comes with PyTorch for CUDA on Linux only
        return other
    if head_width not in own.HEAD_WIDTHS or not own.works(device, dtype, head_width):
        return other

    def attention(queries: Spans, keys: Spans, causal: bool) -> Attend:
        longest = max(queries.longest, keys.longest)
        if longest > own.LONGEST:
            return other(queries, keys, causal)
        return functools.partial(own.attend, (queries.starts_X, keys.starts_X, longest), causal)

    return attention


def masked_attention(queries: Spans, keys: Spans, causal: bool) -> Attend:
    """With a mask [L, L], for CPUs: right, but its time grows with the square of the stream."""
    mask_QM = queries.of_tokens()[:, None] == keys.of_tokens()
    return functools.partial(_attend_with_mask, mask_QM.tril() if causal else mask_QM)


def _attend_with_mask(mask_QM: Tensor, query_LHK: Tensor, key_LHK: Tensor, value_LHK: Tensor) -> Tensor:
    query_1HQK, key_1HMK, value_1HMK = (x_LHK.transpose(0, 1)[None] for x_LHK in (query_LHK, key_LHK, value_LHK))
    return cpu_attention(query_1HQK, key_1HMK, value_1HMK, mask_QM)[0].transpose(0, 1)


@dataclass(frozen=True)
class FlashAttention:
    """PyTorch's FlashAttention span by span, on CUDA GPUs in bfloat16 or float16. It has no dropout."""

    everywhere: Callable[..., Any]
    causal: Callable[..., Any]

    def __call__(self, queries: Spans, keys: Spans, causal: bool) -> Attend:
        where = queries.starts_X, keys.starts_X, queries.longest, keys.longest
        return functools.partial(_attend_to_spans, self.causal if causal else self.everywhere, where)


def _attend_to_spans(
    function: Callable[..., Tensor],
    where: tuple[Tensor, Tensor, int, int],
    query_LHK: Tensor,
    key_LHK: Tensor,
    value_LHK: Tensor,
) -> Tensor:
    return function(query_LHK, key_LHK, value_LHK, *where)


@functools.cache
def find_flash() -> FlashAttention | None:
    """FlashAttention for sentences of different lengths; None in a version of PyTorch without it."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    has_window = "window_size" in inspect.signature(varlen_attn).parameters  # the first version had a flag
    causal: dict[str, Any] = {"window_size": (-1, 0)} if has_window else {"is_causal": True}
    return FlashAttention(varlen_attn, functools.partial(varlen_attn, **causal))


@functools.cache
def compiled_flex() -> Callable[..., Tensor]:
    return torch.compile(flex.flex_attention, dynamic=False)


def flex_attention(function: Callable[..., Tensor], queries: Spans, keys: Spans, causal: bool) -> Attend:
    """FlexAttention, which skips the blocks of the mask in which no query may attend to a key.

    function: PyTorch's flex_attention; on a GPU it must be compiled
    """
    return functools.partial(_attend_to_blocks, function, block_mask(queries, keys, causal))


def _attend_to_blocks(
    function: Callable[..., Tensor], mask: flex.BlockMask, query_LHK: Tensor, key_LHK: Tensor, value_LHK: Tensor
) -> Tensor:
    query_1HQK, key_1HMK, value_1HMK = (x_LHK.transpose(0, 1)[None] for x_LHK in (query_LHK, key_LHK, value_LHK))
    return function(query_1HQK, key_1HMK, value_1HMK, block_mask=mask)[0].transpose(0, 1)


def block_mask(queries: Spans, keys: Spans, causal: bool) -> flex.BlockMask:
    """FlexAttention's mask, from the starts of the spans: PyTorch's own function would make a tensor [L, L] first."""
    query_span_L, key_span_L = queries.of_tokens(), keys.of_tokens()

    def may_attend(_: Tensor, __: Tensor, query: Tensor, key: Tensor) -> Tensor:
        same = query_span_L[query] == key_span_L[key]
        return same & (query >= key) if causal else same

    n_queries, n_keys = len(query_span_L), len(key_span_L)
    first_query = torch.arange(0, n_queries, BLOCK, device=query_span_L.device)  # of each block of queries
    last_query = (first_query + (BLOCK - 1)).clamp(max=n_queries - 1)
    first_key, end_key = keys.starts_X[query_span_L[first_query]], keys.starts_X[query_span_L[last_query] + 1]
    if causal:
        end_key = end_key.minimum(last_query + 1)
    first = first_key // BLOCK
    blocks = torch.where(end_key > first_key, (end_key + (BLOCK - 1)) // BLOCK - first, 0)  # of keys
    most = -(-n_keys // BLOCK)
    numbers = (first[:, None] + torch.arange(most, device=first.device)).clamp(max=most - 1)
    return flex.BlockMask.from_kv_blocks(
        blocks.int()[None, None],
        numbers.int()[None, None],
        BLOCK_SIZE=BLOCK,
        mask_mod=may_attend,
        seq_lengths=(n_queries, n_keys),
    )
