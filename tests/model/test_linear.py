"""Narrow products: exact where bfloat16 is, rounded where it is not, and only where that was asked for."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from transformer_mt.model.linear import Linear, linear


def narrow() -> torch.autocast:
    return torch.autocast("cpu", dtype=torch.bfloat16)


@pytest.mark.parametrize("shape", [(7, 16), (3, 5, 16), (2, 0, 16)])
@pytest.mark.parametrize("bias", [True, False])
def test_whole_numbers_that_bfloat16_holds_give_the_same_values_and_gradients(shape: tuple[int, ...], bias: bool):
    """Numbers up to 3 and sums up to 144 are exact in eight bits: then nothing may differ, to the last bit."""
    torch.manual_seed(1)
    found = []
    values = [torch.randint(-3, 4, size).float() for size in (shape, (12, 16), (12,), (*shape[:-1], 12))]
    for context in (narrow(), torch.autocast("cpu", enabled=False)):
        x, weight, offset = (value.clone().requires_grad_() for value in values[:3])
        with context:
            y = linear(x, weight, offset if bias else None)
        assert y.dtype is torch.float32
        y.backward(values[3])
        found.append([y.detach(), x.grad, weight.grad, offset.grad])
    for one, other in zip(*found, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


def test_what_does_not_fit_is_rounded_only_under_autocast():
    torch.manual_seed(2)
    layer = Linear(64, 32)
    x = torch.randn(10, 64)
    exact = F.linear(x, layer.weight, layer.bias)
    assert torch.equal(layer(x), exact)
    with narrow():
        rounded = layer(x)
    assert not torch.equal(rounded, exact)
    assert (rounded - exact).abs().max() < 2**-7 * exact.abs().max()


def test_rows_of_a_matrix_get_their_gradient_and_the_others_none():
    weight = torch.randn(9, 4, requires_grad=True)
    with narrow():
        linear(torch.ones(2, 4), weight[3:6]).sum().backward()
    assert weight.grad is not None
    assert torch.equal(weight.grad, torch.tensor([0.0, 2.0, 0.0]).repeat_interleave(3)[:, None].expand(9, 4))
