"""Our attention for spans is the readable one: on a GPU, or with TRITON_INTERPRET=1 on any machine that has Triton."""

from __future__ import annotations

import itertools
import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from transformer_mt.kernels import packing
from transformer_mt.kernels.packing import Spans, for_sentences, masked_attention

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
on_a_gpu = pytest.mark.skipif(False, reason="") if INTERPRETED else pytest.mark.gpu

HEADS = 3
SPANS = {  # tokens of the spans of queries and of keys; the last are pieces of padding, or empty
    "equal": ([5, 33, 1, 64, 40, 0, 0], [5, 33, 1, 64, 40, 0, 0]),
    "other lengths": ([7, 31, 40, 3, 0], [50, 2, 33, 90, 0]),
    "blocks that are full": ([16, 32, 48], [16, 32, 48]),
    "queries without keys": ([4, 9, 20], [6, 0, 20]),
    "one of many tokens": ([200, 2], [200, 2]),
}


def spans(lengths: list[int]) -> Spans:
    starts = torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32, device=DEVICE)
    positions = torch.cat([torch.arange(length) for length in lengths]).to(DEVICE)
    return Spans(positions, starts, max(lengths))


def never(*_: Any) -> Any:
    raise AssertionError("another attention was used")


def both_ways(
    kind: str, causal: bool, width: int, dtype: torch.dtype, side_by_side: bool = False
) -> list[tuple[Tensor, ...]]:
    """Contexts and gradients of our attention, and of the readable one on the same numbers in float64."""
    torch.manual_seed(1)
    queries, keys = map(spans, SPANS[kind])
    n_queries, n_keys = (len(one.positions_L) for one in (queries, keys))
    projected = torch.randn(n_queries, 3, HEADS, width, device=DEVICE, dtype=dtype)
    key, value, weight = (torch.randn(n, HEADS, width, device=DEVICE, dtype=dtype) for n in (n_keys, n_keys, n_queries))
    query = projected[:, 1]
    if side_by_side:  # as a product makes them
        query, key, value = projected.unbind(1)
    results = []
    ours = for_sentences(torch.device(DEVICE), dtype, width, never)
    for attention, kind_of_number in ((ours, dtype), (masked_attention, torch.float64)):
        leaves = [one.detach().to(kind_of_number) for one in (query, key, value)]
        if kind_of_number is dtype:
            leaves = [query.detach(), key.detach(), value.detach()]  # with the strides that they have
        leaves = [one.requires_grad_() for one in leaves]
        context = attention(queries, keys, causal)(*leaves)
        gradients = torch.autograd.grad(context, leaves, weight.to(kind_of_number))
        results.append((context.detach(), *gradients))
    return results


@on_a_gpu
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", SPANS)
def test_contexts_and_gradients_are_those_of_the_readable_attention(kind: str, causal: bool) -> None:
    pytest.importorskip("triton")
    if causal and len(set(map(tuple, SPANS[kind]))) > 1:
        pytest.skip("only equal spans have an order")
    found, expected = both_ways(kind, causal, 64, torch.float32)
    for one, other in zip(found, expected, strict=True):
        assert_close(one.double(), other.nan_to_num(), rtol=1e-4, atol=1e-4)


@on_a_gpu
@pytest.mark.parametrize("width", [16, 32, 128])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_numbers_differ_by_rounding_only(dtype: torch.dtype, width: int) -> None:
    pytest.importorskip("triton")
    if DEVICE == "cpu" and dtype is torch.bfloat16:
        pytest.skip("Triton's interpreter has no bfloat16")
    found, expected = both_ways("equal", True, width, dtype, side_by_side=True)
    for one, other in zip(found, expected, strict=True):
        assert float((one.double() - other).norm() / other.norm()) < 0.01


@pytest.mark.parametrize(
    ("width", "longest", "works", "is_ours"),
    [(64, 256, True, True), (48, 9, True, False), (64, 257, True, False), (64, 9, False, False)],
)
def test_another_attention_takes_what_ours_is_not_made_for(
    width: int, longest: int, works: bool, is_ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = SimpleNamespace(HEAD_WIDTHS=(16, 32, 64), LONGEST=256, works=lambda *_: works, attend=lambda *_: "ours")
    monkeypatch.setitem(sys.modules, "transformer_mt.kernels.span_attention", own)
    monkeypatch.setattr(sys.modules["transformer_mt.kernels"], "span_attention", own, raising=False)
    attention = for_sentences(torch.device("cpu"), torch.float32, width, lambda *_: lambda *_: "other")
    some = spans([2, 3])._replace(longest=longest)
    assert attention(some, some, False)(some, some, some) == ("ours" if is_ours else "other")


def test_without_triton_there_is_another_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys.modules["transformer_mt.kernels"], "span_attention", raising=False)
    monkeypatch.setitem(sys.modules, "transformer_mt.kernels.span_attention", None)
    assert packing.for_sentences(torch.device("cpu"), torch.float32, 64, never) is never


@on_a_gpu
def test_a_kernel_with_wrong_results_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    own = pytest.importorskip("transformer_mt.kernels.span_attention", exc_type=ImportError)
    where = torch.device(DEVICE), torch.float32, 32
    with torch.inference_mode():
        assert own.works.__wrapped__(*where)
    right, backward = own.attend, own.span_attention_backward
    monkeypatch.setattr(own, "attend", lambda *given: right(*given) * 1.001)
    assert not own.works.__wrapped__(*where)
    monkeypatch.setattr(own, "attend", lambda *_: 1 / 0)
    assert not own.works.__wrapped__(*where)
    monkeypatch.setattr(own, "attend", right)
    monkeypatch.setattr(own, "span_attention_backward", lambda *given: [1.001 * one for one in backward(*given)])
    assert not own.works.__wrapped__(*where)
