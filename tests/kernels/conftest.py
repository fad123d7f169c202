"""A fixture for tests of products."""

from __future__ import annotations

import pytest
import torch

from transformer_mt.kernels import onednn


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """All float32 products by oneDNN, also small ones, and whatever the processor is."""
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        pytest.skip("this PyTorch has no oneDNN")
    monkeypatch.setattr(onednn, "smallest_weight", lambda: 0)
    monkeypatch.setattr(onednn, "SMALL", 1)
