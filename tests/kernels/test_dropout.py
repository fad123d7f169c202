"""The statistics of dropout: what is zeroed, how the rest is scaled; the gradient has the same mask."""

from __future__ import annotations

import math

import pytest
import torch

from transformer_mt.kernels.dropout import ByteDropout as Dropout
from transformer_mt.kernels.dropout import bytes_at_least

MANY = 400_003  # not a multiple of 8: only a part of the last random word is used


@pytest.mark.parametrize("p", [0.02, 0.1, 0.3, 0.5, 0.9])
def test_zero_rate_scale_and_expectation(p):
    torch.manual_seed(0)
    output = Dropout(p).train()(torch.ones(MANY))
    rounded = round(p * 256) / 256
    dropped = (output == 0).double().mean().item()
    assert abs(dropped - rounded) < 5 * math.sqrt(rounded * (1 - rounded) / MANY)
    assert output[output != 0].unique().tolist() == [pytest.approx(1 / (1 - rounded))]
    assert output.double().mean().item() == pytest.approx(1.0, abs=5 * math.sqrt(rounded / (1 - rounded) / MANY))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_kept_is_scaled_exactly(dtype):
    """The scale is 256 / 230; in bfloat16 it would be 1.1094 instead of 1.1130, and the mean 0.997."""
    x = torch.randn(4096, generator=torch.Generator().manual_seed(1)).to(dtype).requires_grad_()
    output = Dropout(0.1).train()(x)
    output.sum().backward()
    kept = output != 0
    nearly = {"rtol": torch.finfo(dtype).eps / (1 if dtype is torch.float32 else 2), "atol": 0.0}
    torch.testing.assert_close(output[kept], (x.detach().double() * 256 / 230).to(dtype)[kept], **nearly)
    torch.testing.assert_close(x.grad[kept], torch.full_like(x.grad, 256 / 230)[kept], **nearly)


def test_bytes_are_compared_as_numbers():
    words = torch.randint(-(2**63), 2**63 - 1, (500,))
    words[0], words[1], words[2] = -(2**63), 2**63 - 1, -1
    for threshold in range(256):
        assert torch.equal(bytes_at_least(threshold, words), (words.view(torch.uint8) >= threshold).to(torch.uint8))


def test_elements_are_dropped_independently():
    """Elements at each distance up to two random words, and elements of two calls, agree as often as by chance."""
    torch.manual_seed(1)
    dropout = Dropout(0.5).train()
    kept, again = ((dropout(torch.ones(MANY)) != 0).double() - 0.5 for _ in range(2))
    bound = 5 * 0.25 / math.sqrt(MANY)
    assert abs((kept * again).mean().item()) < bound
    for distance in range(1, 17):
        assert abs((kept[distance:] * kept[:-distance]).mean().item()) < bound


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 3, 8), (0, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_gradient_has_the_mask_of_the_output(shape, dtype):
    torch.manual_seed(2)
    x = torch.ones(shape, dtype=dtype, requires_grad=True)
    output = Dropout(0.4).train()(x)
    assert output.shape == x.shape
    assert output.dtype == dtype
    output.sum().backward()
    assert torch.equal(x.grad, output.detach())  # both are the mask times the scale, where x is 1


def test_a_strided_input_keeps_its_order():
    torch.manual_seed(3)
    x = torch.arange(1.0, 13.0).view(3, 4).t()
    output = Dropout(0.5).train()(x)
    kept = output != 0
    assert torch.equal(output[kept], (x * 2)[kept])


def test_same_seed_same_mask_and_nothing_happens_in_eval_or_at_zero():
    x = torch.randn(1000)
    dropout = Dropout(0.3).train()
    torch.manual_seed(4)
    first = dropout(x)
    torch.manual_seed(4)
    assert torch.equal(first, dropout(x))
    assert not torch.equal(first, dropout(x))
    state = torch.get_rng_state()
    assert dropout.eval()(x) is x
    assert Dropout(0.0).train()(x) is x
    assert torch.equal(state, torch.get_rng_state()), "no random number is drawn if nothing is dropped"


def test_the_highest_rates_stay_finite():
    torch.manual_seed(5)
    output = Dropout(0.9999).train()(torch.ones(100_000))
    assert output.isfinite().all()
    assert output.max().item() == 256


def test_a_rate_too_small_for_a_byte_still_drops():
    torch.manual_seed(6)
    output = Dropout(0.001).train()(torch.ones(1_000_000))
    assert 700 < (output == 0).sum().item() < 1_300
    assert output.max().item() == pytest.approx(1 / 0.999)
