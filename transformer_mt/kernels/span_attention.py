"""Attention inside the sentences of a stream, by our own kernels in Triton: for GPUs, and sentences of tens of tokens.

FlashAttention computes blocks of 128 queries of one sentence. Of sentences with 26 tokens, four fifths of a block are
nothing. Here a block has 16 queries, so a sentence is a few blocks, and its keys are few enough to be read again
wherever they are needed. Queries, keys and values are read where they are; sums and the softmax are float32.

The softmax is computed block by block, with the highest score so far (Milakov & Gimelshein 2018, arXiv:1805.02867). The
backward pass computes the weights again, from the logarithm of their sum (Dao et al. 2022, arXiv:2205.14135, B.2).

Letters as in `packing`: L tokens of a stream, X spans, H heads, K coordinates of a head. This file imports Triton, so
only GPUs import it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from transformer_mt.model.attention import scaled_dot_product_attention

BLOCK = 16  # queries or keys
WARPS = 1
LONGEST = 256  # tokens of the longest sentence; with longer ones, keys are read again too often
HEAD_WIDTHS = (16, 32, 64, 128)
_TOLERANCE = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 2e-2}  # of `works`


@triton.jit
def _rows_of(base, stride_l, stride_h, head, rows_n, end, WIDTH: tl.constexpr):
    """Rows of one head of a tensor [L, H, K]: [n, K], zeros from the row `end` on."""
    places_nK = rows_n.to(tl.int64)[:, None] * stride_l + head * stride_h + tl.arange(0, WIDTH)[None, :]
    return tl.load(base + places_nK, mask=(rows_n < end)[:, None], other=0.0)


@triton.jit
def _write_rows(base, heads, head, rows_n, end, values_nK, WIDTH: tl.constexpr):
    """Write rows of one head of a contiguous tensor [L, H, K]."""
    places_nK = (rows_n.to(tl.int64)[:, None] * heads + head) * WIDTH + tl.arange(0, WIDTH)[None, :]
    tl.store(base + places_nK, values_nK.to(base.dtype.element_ty), mask=(rows_n < end)[:, None])


@triton.jit
def _scores(q_nK, k_mK, rows_n, cols_m, first_q, first_k, end_k, scale, CAUSAL: tl.constexpr):
    """q k^T / sqrt(K), minus infinity where a query may not attend: float32 [n, m]."""
    scores_nm = tl.dot(q_nK, tl.trans(k_mK), input_precision="ieee") * scale
    may_attend_nm = (cols_m < end_k)[None, :] & (rows_n >= first_q)[:, None]
    if CAUSAL:
        may_attend_nm &= (cols_m - first_k)[None, :] <= (rows_n - first_q)[:, None]
    return tl.where(may_attend_nm, scores_nm, float("-inf"))


@triton.jit
def _forward(
    query, key, value, context, log_sum, starts_q, starts_k, scale, heads,
    q_l, q_h, k_l, k_h, v_l, v_h,
    CAUSAL: tl.constexpr, WIDTH: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Contexts, and the logarithms of the sums of the softmax, of a block of queries of one span and head."""
    span, head, block = tl.program_id(0) // heads, tl.program_id(0) % heads, tl.program_id(1)
    first_q, end_q = tl.load(starts_q + span), tl.load(starts_q + span + 1)
    first_k, end_k = tl.load(starts_k + span), tl.load(starts_k + span + 1)
    rows_n = first_q + block * SIZE + tl.arange(0, SIZE)
    if first_q + block * SIZE < end_q:
        q_nK = _rows_of(query, q_l, q_h, head, rows_n, end_q, WIDTH)
        highest_n = tl.full((SIZE,), float("-inf"), tl.float32)
        sum_n = tl.zeros((SIZE,), tl.float32)
        context_nK = tl.zeros((SIZE, WIDTH), tl.float32)
        n_keys = end_k - first_k
        if CAUSAL:
            n_keys = tl.minimum(n_keys, (block + 1) * SIZE)
        for start in range(0, n_keys, SIZE):
            cols_m = first_k + start + tl.arange(0, SIZE)
            k_mK = _rows_of(key, k_l, k_h, head, cols_m, end_k, WIDTH)
            v_mK = _rows_of(value, v_l, v_h, head, cols_m, end_k, WIDTH)
            scores_nm = _scores(q_nK, k_mK, rows_n, cols_m, first_q, first_k, end_k, scale, CAUSAL)
            higher_n = tl.maximum(highest_n, tl.max(scores_nm, axis=1))
            weights_nm = tl.exp(scores_nm - higher_n[:, None])
            shrunk_n = tl.exp(highest_n - higher_n)
            sum_n = sum_n * shrunk_n + tl.sum(weights_nm, axis=1)
            added_nK = tl.dot(weights_nm.to(v_mK.dtype), v_mK, input_precision="ieee")
            context_nK = context_nK * shrunk_n[:, None] + added_nK
            highest_n = higher_n
        is_empty_n = sum_n == 0.0
        context_nK = context_nK / tl.where(is_empty_n, 1.0, sum_n)[:, None]
        _write_rows(context, heads, head, rows_n, end_q, context_nK, WIDTH)
        log_sum_n = tl.where(is_empty_n, 0.0, highest_n + tl.log(sum_n))
        tl.store(log_sum + rows_n.to(tl.int64) * heads + head, log_sum_n, mask=rows_n < end_q)


@triton.jit
def _backward(
    query, key, value, context, log_sum, of_context, of_query, of_key, of_value, starts_q, starts_k, scale, heads,
    q_l, q_h, k_l, k_h, v_l, v_h, g_l, g_h,
    CAUSAL: tl.constexpr, WIDTH: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Gradients of a block of queries, and of the block of keys and values with the same number."""
    span, head, block = tl.program_id(0) // heads, tl.program_id(0) % heads, tl.program_id(1)
    first_q, end_q = tl.load(starts_q + span), tl.load(starts_q + span + 1)
    first_k, end_k = tl.load(starts_k + span), tl.load(starts_k + span + 1)
    if first_q + block * SIZE < end_q:
        rows_n = first_q + block * SIZE + tl.arange(0, SIZE)
        q_nK = _rows_of(query, q_l, q_h, head, rows_n, end_q, WIDTH)
        g_nK = _rows_of(of_context, g_l, g_h, head, rows_n, end_q, WIDTH)
        c_nK = _rows_of(context, heads * WIDTH, WIDTH, head, rows_n, end_q, WIDTH)
        delta_n = tl.sum(g_nK.to(tl.float32) * c_nK.to(tl.float32), axis=1)
        log_sum_n = tl.load(log_sum + rows_n.to(tl.int64) * heads + head, mask=rows_n < end_q, other=0.0)
        of_q_nK = tl.zeros((SIZE, WIDTH), tl.float32)
        n_keys = end_k - first_k
        if CAUSAL:
            n_keys = tl.minimum(n_keys, (block + 1) * SIZE)
        for start in range(0, n_keys, SIZE):
            cols_m = first_k + start + tl.arange(0, SIZE)
            k_mK = _rows_of(key, k_l, k_h, head, cols_m, end_k, WIDTH)
            v_mK = _rows_of(value, v_l, v_h, head, cols_m, end_k, WIDTH)
            scores_nm = _scores(q_nK, k_mK, rows_n, cols_m, first_q, first_k, end_k, scale, CAUSAL)
            of_weights_nm = tl.dot(g_nK, tl.trans(v_mK), input_precision="ieee")
            of_scores_nm = tl.exp(scores_nm - log_sum_n[:, None]) * (of_weights_nm - delta_n[:, None]) * scale
            of_q_nK += tl.dot(of_scores_nm.to(k_mK.dtype), k_mK, input_precision="ieee")
        _write_rows(of_query, heads, head, rows_n, end_q, of_q_nK, WIDTH)
    if first_k + block * SIZE < end_k:
        cols_m = first_k + block * SIZE + tl.arange(0, SIZE)
        k_mK = _rows_of(key, k_l, k_h, head, cols_m, end_k, WIDTH)
        v_mK = _rows_of(value, v_l, v_h, head, cols_m, end_k, WIDTH)
        of_k_mK = tl.zeros((SIZE, WIDTH), tl.float32)
        of_v_mK = tl.zeros((SIZE, WIDTH), tl.float32)
        first_block = 0
        if CAUSAL:
            first_block = block * SIZE
        for start in range(first_block, end_q - first_q, SIZE):
            rows_n = first_q + start + tl.arange(0, SIZE)
            q_nK = _rows_of(query, q_l, q_h, head, rows_n, end_q, WIDTH)
            g_nK = _rows_of(of_context, g_l, g_h, head, rows_n, end_q, WIDTH)
            c_nK = _rows_of(context, heads * WIDTH, WIDTH, head, rows_n, end_q, WIDTH)
            delta_n = tl.sum(g_nK.to(tl.float32) * c_nK.to(tl.float32), axis=1)
            log_sum_n = tl.load(log_sum + rows_n.to(tl.int64) * heads + head, mask=rows_n < end_q, other=0.0)
            scores_nm = _scores(q_nK, k_mK, rows_n, cols_m, first_q, first_k, end_k, scale, CAUSAL)
            weights_nm = tl.where((rows_n < end_q)[:, None], tl.exp(scores_nm - log_sum_n[:, None]), 0.0)
            of_v_mK += tl.dot(tl.trans(weights_nm.to(g_nK.dtype)), g_nK, input_precision="ieee")
            of_weights_nm = tl.dot(g_nK, tl.trans(v_mK), input_precision="ieee")
            of_scores_nm = weights_nm * (of_weights_nm - delta_n[:, None]) * scale
            of_k_mK += tl.dot(tl.trans(of_scores_nm.to(q_nK.dtype)), q_nK, input_precision="ieee")
        _write_rows(of_key, heads, head, cols_m, end_k, of_k_mK, WIDTH)
        _write_rows(of_value, heads, head, cols_m, end_k, of_v_mK, WIDTH)


def _readable(x_LHK: Tensor) -> Tensor:
    """The tensor, copied if the coordinates of a head are not side by side."""
    return x_LHK if x_LHK.stride(2) == 1 else x_LHK.contiguous()


def _grid(starts_X: Tensor, heads: int, longest: int) -> tuple[int, int]:
    return (len(starts_X) - 1) * heads, -(-longest // BLOCK)


@torch.library.custom_op("transformer_mt::span_attention", mutates_args=())
def span_attention(
    query_LHK: Tensor,
    key_LHK: Tensor,
    value_LHK: Tensor,
    query_starts_X: Tensor,
    key_starts_X: Tensor,
    longest: int,
    causal: bool,
) -> tuple[Tensor, Tensor]:
    """Contexts [L, H, K] of queries that attend to the keys of their own span, and log-sums [L, H], float32.

    starts: as in `packing.Spans`; longest: no span of queries or keys has more tokens
    """
    query_LHK, key_LHK, value_LHK = map(_readable, (query_LHK, key_LHK, value_LHK))
    length, heads, width = query_LHK.shape
    context_LHK = torch.empty(length, heads, width, dtype=query_LHK.dtype, device=query_LHK.device)
    log_sum_LH = torch.empty(length, heads, dtype=torch.float32, device=query_LHK.device)
    strides = [stride for one in (query_LHK, key_LHK, value_LHK) for stride in one.stride()[:2]]
    _forward[_grid(query_starts_X, heads, longest)](
        query_LHK, key_LHK, value_LHK, context_LHK, log_sum_LH, query_starts_X, key_starts_X, width**-0.5, heads,
        *strides, CAUSAL=causal, WIDTH=width, SIZE=BLOCK, num_warps=WARPS,
    )  # fmt: skip
    return context_LHK, log_sum_LH


@torch.library.custom_op("transformer_mt::span_attention_backward", mutates_args=())
def span_attention_backward(
    of_context_LHK: Tensor,
    query_LHK: Tensor,
    key_LHK: Tensor,
    value_LHK: Tensor,
    context_LHK: Tensor,
    log_sum_LH: Tensor,
    query_starts_X: Tensor,
    key_starts_X: Tensor,
    longest: int,
    causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients with respect to queries, keys and values, each [L, H, K]."""
    readable = [_readable(one) for one in (query_LHK, key_LHK, value_LHK, of_context_LHK)]
    gradients = [torch.empty(one.shape, dtype=one.dtype, device=one.device) for one in readable[:3]]
    strides = [stride for one in readable for stride in one.stride()[:2]]
    heads, width = query_LHK.shape[1:]
    _backward[_grid(query_starts_X, heads, longest)](
        *readable[:3], context_LHK.contiguous(), log_sum_LH, readable[3], *gradients, query_starts_X, key_starts_X,
        width**-0.5, heads, *strides, CAUSAL=causal, WIDTH=width, SIZE=BLOCK, num_warps=WARPS,
    )  # fmt: skip
    of_query_LHK, of_key_LHK, of_value_LHK = gradients
    return of_query_LHK, of_key_LHK, of_value_LHK


@span_attention.register_fake
def _(query_LHK: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    shape = query_LHK.shape
    return query_LHK.new_empty(shape), query_LHK.new_empty(shape[:2], dtype=torch.float32)


@span_attention_backward.register_fake
def _(_of_context: Tensor, *tensors: Any) -> tuple[Tensor, Tensor, Tensor]:
    of_query_LHK, of_key_LHK, of_value_LHK = (one.new_empty(one.shape) for one in tensors[:3])
    return of_query_LHK, of_key_LHK, of_value_LHK


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.longest, ctx.causal = inputs
    ctx.save_for_backward(*tensors, *output)


def _differentiate(ctx: Any, of_context_LHK: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    *values, query_starts_X, key_starts_X, context_LHK, log_sum_LH = ctx.saved_tensors
    gradients = span_attention_backward(
        of_context_LHK, *values, context_LHK, log_sum_LH, query_starts_X, key_starts_X, ctx.longest, ctx.causal
    )
    return (*gradients, None, None, None, None)


span_attention.register_autograd(_differentiate, setup_context=_remember)


@functools.cache
@torch.inference_mode(False)
@torch.enable_grad()
def works(device: torch.device, dtype: torch.dtype, width: int) -> bool:
    """Whether Triton can start the kernels on a device, and random contexts and gradients are the readable ones."""
    generator = torch.Generator().manual_seed(1)
    numbers = [torch.randn(40, 2, width, generator=generator).to(dtype) for _ in range(4)]
    lengths = [19, 21]

    def readable(causal: bool, *inputs_LHK: Tensor) -> Tensor:
        spans = zip(*(one_LHK.transpose(0, 1)[None].split(lengths, dim=2) for one_LHK in inputs_LHK), strict=True)
        contexts = [scaled_dot_product_attention(query, key, value, causal=causal) for query, key, value in spans]
        return torch.cat(contexts, dim=2)[0].transpose(0, 1)

    def results(attention: Callable[..., Tensor], device: torch.device, dtype: torch.dtype) -> list[Tensor]:
        *inputs, of_context = (one.to(device, dtype) for one in numbers)
        context = attention(*(one.requires_grad_() for one in inputs))
        found = context, *torch.autograd.grad(context, inputs, of_context)
        return [one.detach().cpu().double() for one in found]

    for causal in (False, True):
        try:
            starts_X = torch.tensor([0, lengths[0], sum(lengths)], dtype=torch.int32, device=device)
            found = results(functools.partial(attend, (starts_X, starts_X, max(lengths)), causal), device, dtype)
        except Exception:  # Triton needs a C compiler and Python's headers; packages may be missing, or too old
            return False
        expected = results(functools.partial(readable, causal), torch.device("cpu"), torch.float64)
        for one, other in zip(found, expected, strict=True):
            if not bool((one - other).norm() < _TOLERANCE[dtype] * other.norm()):
                return False
    return True


def attend(
    where: tuple[Tensor, Tensor, int], causal: bool, query_LHK: Tensor, key_LHK: Tensor, value_LHK: Tensor
) -> Tensor:
    """Contexts [L, H, K]. where: the starts of the spans of queries and of keys, and the tokens of the longest."""
    context_LHK: Tensor = span_attention(query_LHK, key_LHK, value_LHK, *where, causal)[0]
    return context_LHK
