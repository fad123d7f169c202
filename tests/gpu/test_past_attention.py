"""Our attention to a past is the readable one: on a GPU, or with TRITON_INTERPRET=1 on any machine that has Triton."""

from __future__ import annotations

import math
import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from transformer_mt.kernels import attention
from transformer_mt.kernels.attention import MANY_HEADS, attention_to_past
from transformer_mt.model.attention import scaled_dot_product_attention

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
on_a_gpu = pytest.mark.skipif(False, reason="") if INTERPRETED else pytest.mark.gpu

SENTENCES, HEADS, CAPACITY = 5, 3, 90


def keys_and_queries(n_keys: int, n_queries: int, width: int, dtype: torch.dtype) -> list[Tensor]:
    """Queries, keys and values as a search has them: views of projections and of larger places."""
    torch.manual_seed(1)
    projected = torch.randn(SENTENCES, n_queries, HEADS, width).transpose(1, 2)
    places = [torch.randn(SENTENCES, HEADS, CAPACITY, width) for _ in range(2)]
    query, key, value = (x.to(DEVICE, dtype) for x in (projected, *places))
    return [query, key[:, :, :n_keys], value[:, :, :n_keys]]


def masks(n_keys: int, n_queries: int) -> dict[str, Tensor | None]:
    """Which queries may attend to which keys."""
    torch.manual_seed(2)
    padding = torch.arange(n_keys) < torch.tensor([n_keys, 1, n_keys // 2 + 1, n_keys, 2])[:, None]
    some = torch.rand(SENTENCES, 1, n_queries, n_keys) < 0.3
    some[..., -1] = True  # the newest cell, with nothing before it in some blocks
    some[0, ..., :-1] = False
    filled = torch.arange(n_keys) < max(1, n_keys - 3)
    return {"all": None, "padding": padding[:, None, None], "a beam": some, "filled up": filled[None, None, None]}


@on_a_gpu
@pytest.mark.parametrize("width", [16, 64, 128])
@pytest.mark.parametrize("n_queries", [1, 2, 5, 16])
@pytest.mark.parametrize("n_keys", [1, 16, 37, 80])
def test_contexts_are_those_of_the_readable_attention(n_keys: int, n_queries: int, width: int) -> None:
    own = pytest.importorskip("transformer_mt.kernels.past_attention", exc_type=ImportError)
    tensors = keys_and_queries(n_keys, n_queries, width, torch.float32)
    for mask in masks(n_keys, n_queries).values():
        allowed = None if mask is None else mask.to(DEVICE)
        bias = None if allowed is None else torch.zeros(mask.shape, device=DEVICE).masked_fill(~allowed, -math.inf)
        expected = scaled_dot_product_attention(*(x.double() for x in tensors), allowed)
        assert_close(own.attend(*tensors, bias).double(), expected, rtol=1e-4, atol=1e-5)


@on_a_gpu
@pytest.mark.parametrize("n_queries", [1, 5])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_numbers_differ_by_rounding_only(dtype: torch.dtype, n_queries: int) -> None:
    own = pytest.importorskip("transformer_mt.kernels.past_attention", exc_type=ImportError)
    if DEVICE == "cpu" and dtype is torch.bfloat16:
        pytest.skip("Triton's interpreter has no bfloat16")
    tensors = keys_and_queries(70, n_queries, 64, dtype)
    expected = scaled_dot_product_attention(*(x.double() for x in tensors))
    assert float((own.attend(*tensors).double() - expected).norm() / expected.norm()) < 0.01


@on_a_gpu
def test_keys_that_no_query_may_attend_to_are_not_read() -> None:
    own = pytest.importorskip("transformer_mt.kernels.past_attention", exc_type=ImportError)
    query, key, value = keys_and_queries(40, 2, 64, torch.float32)
    bias = torch.zeros(SENTENCES, 1, 1, 40, device=DEVICE)
    bias[..., 20:] = -math.inf
    expected = own.attend(query, key, value, bias)
    key[:, :, 20:], value[:, :, 20:] = math.nan, math.nan
    assert_close(own.attend(query, key, value, bias), expected, rtol=0, atol=0)


@on_a_gpu
def test_a_kernel_with_wrong_results_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    own = pytest.importorskip("transformer_mt.kernels.past_attention", exc_type=ImportError)
    where = torch.device(DEVICE), torch.float32, 32, 2
    assert own.works.__wrapped__(*where)
    right = own.attend
    monkeypatch.setattr(own, "attend", lambda *given: right(*given) * 1.001)
    assert not own.works.__wrapped__(*where)
    monkeypatch.setattr(own, "attend", lambda *_: 1 / 0)
    assert not own.works.__wrapped__(*where)


class OnCuda(torch.Tensor):
    """A tensor that says it is on a GPU."""

    is_cuda = True  # type: ignore[assignment]
    device = torch.device("cuda")


@pytest.mark.parametrize(
    ("rows", "values", "fits", "is_ours"),
    [
        (MANY_HEADS // 2, "like keys", True, True),
        (MANY_HEADS // 2 - 1, "like keys", True, False),
        (MANY_HEADS // 2, "unit vectors", True, False),
        (MANY_HEADS // 2, "like keys", False, False),
    ],
)
def test_only_many_rows_take_it(
    rows: int, values: str, fits: bool, is_ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = SimpleNamespace(fits=lambda _: fits, attend=lambda *_: "ours")
    monkeypatch.setattr(attention, "_past_attention", lambda: module)
    query, key = (torch.randn(rows, 2, 1, 4).as_subclass(OnCuda) for _ in range(2))
    value = key if values == "like keys" else torch.eye(1).as_subclass(OnCuda)
    with torch.inference_mode():
        found: Any = attention_to_past(query, key, value)
    assert isinstance(found, str) is is_ours
    assert not isinstance(attention_to_past(query, key, key), str), "there is no backward pass"


def test_without_triton_there_is_another_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys.modules["transformer_mt.kernels"], "past_attention", raising=False)
    monkeypatch.setitem(sys.modules, "transformer_mt.kernels.past_attention", None)
    assert attention._past_attention.__wrapped__() is None
