"""Our kernels for logits give PyTorch's results: on a GPU, or with TRITON_INTERPRET=1 where there is Triton."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from tests.gpu.test_past_attention import DEVICE, on_a_gpu
from transformer_mt.decoding.step import log_probabilities, summands
from transformer_mt.kernels import top_candidates


@on_a_gpu
@pytest.mark.parametrize("n_logits", [1, 300, 4096, 9001])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_sums_are_those_of_the_formula(n_logits: int, dtype: torch.dtype) -> None:
    own = pytest.importorskip("transformer_mt.kernels.logits", exc_type=ImportError)
    torch.manual_seed(1)
    wide_NV = 20 * torch.randn(6, n_logits + 3)
    wide_NV[1, : n_logits // 2] = -math.inf
    wide_NV[2] = -math.inf
    for logits_NV in (wide_NV[:, :n_logits].to(DEVICE, dtype), wide_NV.t()[:n_logits].t().to(DEVICE, dtype)):
        assert_close(own.log_sums(logits_NV), logits_NV.double().logsumexp(dim=1).float(), rtol=1e-5, atol=1e-4)


@on_a_gpu
@pytest.mark.parametrize("n_logits", [64, 2048, 2049, 9001])
def test_candidates_are_the_same(n_logits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    own = pytest.importorskip("transformer_mt.kernels.logits", exc_type=ImportError)
    torch.manual_seed(3)
    logits_NV, scores_BW = torch.randn(8, n_logits, device=DEVICE), torch.randn(2, 4, device=DEVICE)
    logits_NV[:, -1] += 5
    expected = top_candidates.top_candidates(logits_NV, scores_BW, 8)
    blocks = own.highest_of_blocks(logits_NV, 64)
    assert blocks.shape == (8, -(-n_logits // 64))
    assert torch.equal(blocks[:, -1], logits_NV[:, (n_logits - 1) // 64 * 64 :].amax(dim=1))
    monkeypatch.setattr(top_candidates, "own_kernels", lambda _: own)
    for one, other in zip(top_candidates.top_candidates(logits_NV, scores_BW, 8), expected, strict=True):
        assert torch.equal(one, other)


@on_a_gpu
def test_a_step_of_a_search_takes_them_for_log_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    own = pytest.importorskip("transformer_mt.kernels.logits", exc_type=ImportError)
    torch.manual_seed(2)
    logits_NV, scores_BW = torch.randn(8, 500, device=DEVICE), torch.randn(2, 4, device=DEVICE)
    scores_BW[1, 3] = -math.inf
    expected = log_probabilities(logits_NV).view(2, 4, 500) + scores_BW[:, :, None]
    monkeypatch.setattr("transformer_mt.decoding.step.own_kernels", lambda _: own)
    tokens_NV, sums_BW = summands(logits_NV, scores_BW)
    assert tokens_NV is logits_NV
    assert_close(tokens_NV.view(2, 4, 500) + sums_BW[:, :, None], expected)


@pytest.mark.gpu
def test_only_many_rows_have_it() -> None:
    rows = top_candidates.MANY_ROWS
    with torch.inference_mode():
        assert top_candidates.own_kernels(torch.randn(rows, 40, device="cuda")) is not None
        assert top_candidates.own_kernels(torch.randn(rows - 1, 40, device="cuda")) is None
    assert top_candidates.own_kernels(torch.randn(rows, 40, device="cuda")) is None
