"""Attention of the few queries of a search to a cached past, by our own kernel in Triton: for thousands of sentences.

PyTorch's fused kernels compute blocks of 64 queries or more; a search has one for each sentence, or as many as its
beam. Here each sentence and head has a program of its own. It reads each key and value once, and none that no query
may attend to, so padding costs no memory traffic. Scores and the softmax are float32, block by block of keys (Milakov &
Gimelshein 2018, arXiv:1805.02867). There is no backward pass.

This file imports Triton, so only GPUs import it.
"""

from __future__ import annotations

import functools
import math

import torch
import triton
import triton.language as tl
from torch import Tensor

HEAD_WIDTHS = (16, 32, 64, 128)
MOST_QUERIES = 16
_NUMBERS = 2048  # of keys that a program with one query reads at once
_BLOCK = 16  # keys that a program with several reads at once: with more, it needs too many registers
_TOLERANCE = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 2e-2}  # of `works`


@triton.jit(do_not_specialize=["n_keys", "bias_b", "bias_q"])  # they change at each step
def _attend(
    query, key, value, bias, context, n_keys, heads, scale,
    query_b, query_h, query_q, key_b, key_h, key_m, value_b, value_h, value_m, bias_b, bias_q,
    HAS_BIAS: tl.constexpr, QUERIES: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Contexts of all queries of one sentence and head. ROWS: the queries, filled up for products of matrices."""
    sentence, head = (tl.program_id(0) // heads).to(tl.int64), tl.program_id(0) % heads
    rows_q, coordinates_k = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    is_query_q1 = (rows_q < QUERIES)[:, None]
    places_qk = sentence * query_b + head * query_h + rows_q[:, None] * query_q + coordinates_k[None, :]
    q_qk = tl.load(query + places_qk, mask=is_query_q1, other=0.0)
    highest_q = tl.full((ROWS,), float("-inf"), tl.float32)
    sum_q = tl.zeros((ROWS,), tl.float32)
    context_qk = tl.zeros((ROWS, WIDTH), tl.float32)
    for start in range(0, n_keys, SIZE):
        cols_m = start + tl.arange(0, SIZE)
        is_read_m = cols_m < n_keys
        if HAS_BIAS:
            places_qm = sentence * bias_b + rows_q[:, None] * bias_q + cols_m[None, :]
            bias_qm = tl.load(bias + places_qm, mask=is_query_q1 & is_read_m[None, :], other=float("-inf"))
            bias_qm = bias_qm.to(tl.float32)
            is_read_m = tl.max(bias_qm, axis=0) > float("-inf")
        else:
            bias_qm = tl.where(is_query_q1 & is_read_m[None, :], 0.0, float("-inf"))
        k_places_mk = sentence * key_b + head * key_h + cols_m[:, None] * key_m + coordinates_k[None, :]
        v_places_mk = sentence * value_b + head * value_h + cols_m[:, None] * value_m + coordinates_k[None, :]
        k_mk = tl.load(key + k_places_mk, mask=is_read_m[:, None], other=0.0)
        v_mk = tl.load(value + v_places_mk, mask=is_read_m[:, None], other=0.0)
        if ROWS == 1:
            scores_qm = tl.sum(q_qk.to(tl.float32) * k_mk.to(tl.float32), axis=1)[None, :] * scale + bias_qm
        else:
            scores_qm = tl.dot(q_qk, tl.trans(k_mk), input_precision="ieee") * scale + bias_qm
        higher_q = tl.maximum(highest_q, tl.max(scores_qm, axis=1))
        finite_q = tl.where(higher_q == float("-inf"), 0.0, higher_q)  # as long as all keys are hidden
        weights_qm = tl.exp(scores_qm - finite_q[:, None])
        shrunk_q = tl.exp(highest_q - finite_q)
        sum_q = sum_q * shrunk_q + tl.sum(weights_qm, axis=1)
        if ROWS == 1:
            added_qk = tl.sum(tl.trans(weights_qm) * v_mk.to(tl.float32), axis=0)[None, :]
        else:
            added_qk = tl.dot(weights_qm.to(v_mk.dtype), v_mk, input_precision="ieee")
        context_qk = context_qk * shrunk_q[:, None] + added_qk
        highest_q = higher_q
    context_qk = context_qk / tl.where(sum_q == 0.0, 1.0, sum_q)[:, None]
    rows_of_context_q1 = ((sentence * QUERIES + rows_q[:, None]) * heads + head) * WIDTH
    tl.store(
        context + rows_of_context_q1 + coordinates_k[None, :], context_qk.to(context.dtype.element_ty), mask=is_query_q1
    )


def fits(query_BHQK: Tensor) -> bool:
    """Whether the kernel is made for such queries, and works on their device."""
    n_queries, width = query_BHQK.shape[2:]
    if n_queries > MOST_QUERIES or width not in HEAD_WIDTHS or query_BHQK.dtype not in _TOLERANCE:
        return False
    return works(query_BHQK.device, query_BHQK.dtype, width, n_queries)


def sizes(n_queries: int, width: int) -> dict[str, int]:
    """The constants of the kernel for so many queries of a head of this width."""
    if n_queries == 1:
        return {"QUERIES": 1, "ROWS": 1, "SIZE": min(64, _NUMBERS // width)}
    return {"QUERIES": n_queries, "ROWS": MOST_QUERIES, "SIZE": _BLOCK}


def attend(query_BHQK: Tensor, key_BHMK: Tensor, value_BHMK: Tensor, bias_BHQM: Tensor | None = None) -> Tensor:
    """The arguments and result of `kernels.attention.attention_to_past`. The bias must be equal for all heads.

    A query that may attend to no key has the context 0.
    """
    n_sentences, heads, n_queries, width = query_BHQK.shape
    query_BHQK, key_BHMK, value_BHMK = (
        x if x.stride(3) == 1 else x.contiguous() for x in (query_BHQK, key_BHMK, value_BHMK)
    )
    n_keys = key_BHMK.shape[2]
    bias_BQM = query_BHQK[:, 0]  # without a bias, nobody reads it
    if bias_BHQM is not None:
        bias_BQM = (bias_BHQM if bias_BHQM.stride(3) == 1 else bias_BHQM.contiguous())[:, 0]
        bias_BQM = bias_BQM.expand(n_sentences, n_queries, n_keys)
    context_BQHK = query_BHQK.new_empty(n_sentences, n_queries, heads, width)  # so that heads stand side by side
    strides = [stride for one in (query_BHQK, key_BHMK, value_BHMK) for stride in one.stride()[:3]]
    strides += bias_BQM.stride()[:2]
    _attend[(n_sentences * heads,)](
        query_BHQK, key_BHMK, value_BHMK, bias_BQM, context_BQHK, n_keys, heads, width**-0.5, *strides,
        HAS_BIAS=bias_BHQM is not None, WIDTH=width, num_warps=1, **sizes(n_queries, width),
    )  # fmt: skip
    return context_BQHK.transpose(1, 2)


@functools.cache
def works(device: torch.device, dtype: torch.dtype, width: int, n_queries: int) -> bool:
    """Whether Triton can start the kernel on a device, and random contexts there are those of the formula."""
    generator = torch.Generator().manual_seed(1)
    lengths = n_queries, 150, 150
    numbers = [torch.randn(3, 2, length, width, generator=generator) for length in lengths]
    allowed = torch.rand(3, 1, n_queries, 150, generator=generator) < 0.5
    allowed[0, ..., 70:], allowed[1, ..., :70], allowed[:2, ..., 69:71] = False, False, True
    numbers.append(torch.zeros(allowed.shape).masked_fill_(~allowed, -math.inf))
    try:
        query, key, value, bias = (x.to(device, dtype) for x in numbers)
        found = [attend(query, key, value, one) for one in (bias, None)]
    except Exception:  # Triton needs a C compiler and Python's headers; packages may be missing, or too old
        return False
    query, key, value, bias = (x.double() for x in (query, key, value, bias))
    scores = query @ key.transpose(-2, -1) / math.sqrt(width)
    expected = [(one.softmax(dim=-1) @ value) for one in (scores + bias, scores)]
    return all(
        bool((one.float() - other).norm() < _TOLERANCE[dtype] * other.norm())
        for one, other in zip(found, expected, strict=True)
    )
