"""The parts of a model depend on the device and on what the config sets to `handmade`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close

from transformer_mt.config.model import ModelConfig
from transformer_mt.kernels.attention import FEW_HEADS, MANY_HEADS, attention_to_past, cpu_attention, fused_attention
from transformer_mt.kernels.build import parts_for
from transformer_mt.kernels.dropout import ByteDropout, FusedDropout
from transformer_mt.kernels.linear import CpuLinear, FusedLinear
from transformer_mt.kernels.normalization import FusedLayerNorm, FusedRMSNorm
from transformer_mt.model.attention import scaled_dot_product_attention
from transformer_mt.model.normalization import LayerNorm, RMSNorm
from transformer_mt.model.transformer import Transformer

SIZES = {"d_model": 16, "n_heads": 2, "d_ff": 24, "encoder_layers": 1, "decoder_layers": 1}
DEVICES = {"cpu": (CpuLinear, ByteDropout, cpu_attention), "meta": (FusedLinear, FusedDropout, fused_attention)}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("attention", ["fused", "handmade"])
@pytest.mark.parametrize("norm", ["fused", "handmade"])
def test_parts_by_device_and_config(device: str, attention: str, norm: str) -> None:
    parts = parts_for(ModelConfig(attention=attention, norm_kernel=norm), device)  # type: ignore[arg-type]
    linear, dropout, fused = DEVICES[device]
    assert (parts.linear, parts.dropout) == (linear, dropout)
    assert parts.attention is (fused if attention == "fused" else scaled_dot_product_attention)
    norms = (FusedLayerNorm, FusedRMSNorm) if norm == "fused" else (LayerNorm, RMSNorm)
    assert (parts.layer_norm, parts.rms_norm) == norms


def test_a_model_that_moved_to_another_device_trains_there() -> None:
    config = ModelConfig(**SIZES, dropout=0.3)
    moved = Transformer(config, 9, 9, parts=parts_for(config, "cpu")).to("meta").train()
    ids = torch.ones(2, 3, dtype=torch.long, device="meta")
    assert moved(ids, ids).shape == (2, 3, 16)


def test_attention_on_a_cpu_stays_float32_forward_and_backward() -> None:
    torch.manual_seed(0)
    tensors = [torch.randn(2, 2, 5, 8, requires_grad=True) for _ in range(3)]
    results: list[Any] = []
    for narrow in (True, False):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow):
            output = cpu_attention(*tensors, causal=True)
        results.append((output, *torch.autograd.grad(output.square().sum(), tensors)))
    for one, other in zip(*results, strict=True):
        assert one.dtype is torch.float32
        assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("device", ["cpu", "other"])
@pytest.mark.parametrize(("rows", "queries"), [(2, 4), (2, 1), (FEW_HEADS // 3 + 1, 4), (MANY_HEADS // 3 + 1, 1)])
def test_attention_to_a_past_equals_the_readable_one(
    rows: int, queries: int, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    if device == "other":  # take the branches of other devices
        monkeypatch.setattr(torch.Tensor, "device", property(lambda self: torch.device("meta")))
    query, key, value = torch.randn(rows, 3, queries, 8), torch.randn(rows, 3, 4, 8), torch.randn(rows, 3, 4, 8)
    mask = torch.ones(queries, 4).tril(4 - queries).bool()[None, None]
    mask[..., 1] = queries > 1
    bias = torch.zeros(1, 1, queries, 4).masked_fill(~mask, float("-inf"))
    assert_close(attention_to_past(query, key, value, bias), scaled_dot_product_attention(query, key, value, mask))
    assert_close(attention_to_past(query, key, value), scaled_dot_product_attention(query, key, value))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Guards may run slower:RuntimeWarning")  # on Python 3.13.0
def test_a_compiled_model_computes_the_same() -> None:
    torch.manual_seed(0)
    config = ModelConfig(**SIZES, dropout=0.0)
    model = Transformer(config, 9, 9, parts=parts_for(config, "cpu")).train()
    ids = torch.randint(4, 9, (2, 5))
    compiled = torch.compile(model, backend="aot_eager", dynamic=True)
    hidden, again = model(ids, ids), compiled(ids, ids)
    assert_close(hidden, again)
    assert_close(
        torch.autograd.grad(hidden.square().sum(), [*model.parameters()], allow_unused=True),
        torch.autograd.grad(again.square().sum(), [*model.parameters()], allow_unused=True),
    )
