"""The readable kernels and PyTorch's fused ones are the same functions; in bfloat16, nearly."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from transformer_mt.config.model import ModelConfig
from transformer_mt.kernels.build import parts_for
from transformer_mt.model.attention import scaled_dot_product_attention
from transformer_mt.model.transformer import Transformer

PAD = 0
SIZES = {"d_model": 32, "n_heads": 4, "d_ff": 48, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}


def model(**options: object) -> Transformer:
    torch.manual_seed(11)
    config = ModelConfig(**SIZES, **options)
    return Transformer(config, 23, 19, PAD, parts=parts_for(config, "cpu"))


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(12)
    source_BS, target_BT = torch.randint(1, 23, (4, 9)), torch.randint(1, 19, (4, 8))
    source_BS[1, 5:], source_BS[3, :], target_BT[2, 3:] = PAD, PAD, PAD
    return source_BS, target_BT


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
@pytest.mark.parametrize("normalization", ["layer", "rms"])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize(("dtype", "close"), [(torch.float64, 1e-10), (torch.float32, 2e-5)], ids=["f64", "f32"])
def test_handmade_and_fused_agree_in_logits_and_gradients(norm, normalization, positions, training, dtype, close):
    results = []
    for kernels in ("handmade", "fused"):
        transformer = model(
            norm=norm, normalization=normalization, positions=positions, attention=kernels, norm_kernel=kernels
        )
        transformer = transformer.to(dtype).train(training)
        logits_BTV = transformer.generate_logits(transformer(*batch()))
        logits_BTV.logsumexp(dim=-1).mean().backward()
        results.append((logits_BTV, {name: parameter.grad for name, parameter in transformer.named_parameters()}))
    (handmade, gradients), (fused, others) = results
    assert_close(handmade, fused, rtol=close, atol=close)
    for name in gradients:
        assert_close(
            gradients[name], others[name], rtol=close, atol=close, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize("attention", ["handmade", "fused"])
def test_attention_dropout_keeps_the_expectation_while_training_only(attention):
    torch.manual_seed(13)
    config = ModelConfig(**SIZES, attention=attention, attention_dropout=0.4)
    layer = Transformer(config, 23, 19, PAD, parts=parts_for(config, "cpu")).decoder.layers[0].cross_attention
    x_BQD, memory_BMD = torch.randn(1, 6, 32), torch.randn(1, 7, 32)
    with torch.no_grad():
        expected = layer.eval()(x_BQD, memory_BMD)
        assert torch.equal(expected, layer(x_BQD, memory_BMD))
        drawn = torch.stack([layer.train()(x_BQD, memory_BMD) for _ in range(1500)])
    assert drawn.std(dim=0).min() > 0
    error = (drawn.mean(dim=0) - expected).abs() / (drawn.std(dim=0) / 1500**0.5)
    assert error.max() < 5  # standard errors


@pytest.mark.parametrize("kernels", ["handmade", "fused"])
@pytest.mark.parametrize("mode", ["autocast", "weights"])
def test_bfloat16_runs_and_stays_close(kernels, mode):
    transformer = model(attention=kernels, norm_kernel=kernels)
    expected_BTV = transformer.generate_logits(transformer(*batch())).detach()
    if mode == "weights":
        transformer = transformer.bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mode == "autocast"):
        logits_BTV = transformer.generate_logits(transformer(*batch()))
    assert logits_BTV.dtype == (torch.bfloat16 if mode == "weights" else torch.float32)  # products only, or everything
    assert not torch.equal(logits_BTV.float(), expected_BTV)
    assert (logits_BTV.float() - expected_BTV).abs().mean() < 0.02 * expected_BTV.std()
    logits_BTV.float().logsumexp(dim=-1).mean().backward()
    assert all(parameter.grad.isfinite().all() for parameter in transformer.parameters())


def test_the_handmade_function_equals_the_fused_one_for_any_mask():
    torch.manual_seed(14)
    query, key, value = (torch.randn(3, 2, length, 8, dtype=torch.float64) for length in (5, 7, 7))
    mask_BHQM = torch.rand(3, 1, 5, 7) < 0.5
    mask_BHQM[0, 0, 2] = False  # a query that may attend nowhere
    context_BHQK = scaled_dot_product_attention(query, key, value, mask_BHQM)
    assert_close(context_BHQK, F.scaled_dot_product_attention(query, key, value, mask_BHQM), rtol=1e-12, atol=1e-12)
    assert (context_BHQK[0, :, 2] == 0).all()
    weights_BHQM = scaled_dot_product_attention(query, key, torch.eye(7, dtype=torch.float64), mask_BHQM)
    assert (weights_BHQM.masked_select(~mask_BHQM.expand_as(weights_BHQM)) == 0).all()
