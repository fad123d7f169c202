"""Each faster part equals its readable counterpart: the same outputs and the same gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from transformer_mt.config.model import ModelConfig
from transformer_mt.kernels.build import parts_for
from transformer_mt.kernels.loss import linear_cross_entropy
from transformer_mt.model.label_smoothing import smoothed_cross_entropy as by_the_paper
from transformer_mt.model.parts import READABLE, Parts

DEVICES = ["cpu", "cuda"]  # the kernels for a GPU compute on a CPU too


def kernels(device: str) -> Parts:
    return parts_for(ModelConfig(), device)


def same(ours: Callable[..., Tensor], theirs: Callable[..., Tensor], *inputs: Tensor) -> None:
    """Two functions, or modules with the same parameters, agree in value and in all gradients."""
    found = []
    for function in (ours, theirs):
        leaves = [one.detach().clone().requires_grad_(one.is_floating_point()) for one in inputs]
        value = function(*leaves)
        parameters = list(function.parameters()) if isinstance(function, nn.Module) else []
        wanted = [one for one in leaves if one.requires_grad] + parameters
        found.append([value, *torch.autograd.grad(value.sin().sum(), wanted)])
    for one, other in zip(*found, strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-10)


def twins(part: type[nn.Module], readable: type[nn.Module], *arguments: object) -> tuple[nn.Module, nn.Module]:
    ours, theirs = part(*arguments).double(), readable(*arguments).double()
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.copy_(torch.randn_like(parameter))
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [None, slice(2, 5)])
def test_linear(device: str, bias: bool, rows: slice | None) -> None:
    torch.manual_seed(1)
    ours, theirs = twins(kernels(device).linear, READABLE.linear, 6, 9, bias)
    x = torch.randn(2, 3, 6, dtype=torch.float64)
    same(ours, theirs, x)
    assert_close(ours(x, rows), theirs(x, rows))
    assert_close(theirs(x, rows), ours(x)[..., rows or slice(None)])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("epsilon_on", ["variance", "deviation"])
def test_normalisation(device: str, epsilon_on: str) -> None:
    torch.manual_seed(2)
    x = 3 * torch.randn(2, 3, 8, dtype=torch.float64) + 1
    same(*twins(kernels(device).layer_norm, READABLE.layer_norm, 8, 1e-5, epsilon_on), x)
    same(*twins(kernels(device).rms_norm, READABLE.rms_norm, 8, 1e-5), x)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mask", ["none", "padding", "causal"])
def test_attention(device: str, mask: str) -> None:
    torch.manual_seed(3)
    query, key, value = (torch.randn(2, 3, 5, 4, dtype=torch.float64) for _ in range(3))
    padding_B11M = torch.tensor([[True] * 5, [True, True, True, False, False]])[:, None, None]
    mask_BHQM = padding_B11M if mask == "padding" else None

    def attention(parts: Parts) -> Callable[..., Tensor]:
        return lambda *inputs: parts.attention(*inputs, mask_BHQM, mask == "causal")

    same(attention(kernels(device)), attention(READABLE), query, key, value)


@pytest.mark.parametrize("device", DEVICES)
def test_dropout_scales_what_it_keeps_and_its_gradient(device: str) -> None:
    """Chance decides which elements are dropped, but not how many, nor the scale of the others, nor the gradient."""
    for part in (kernels(device).dropout, READABLE.dropout):
        torch.manual_seed(4)
        x = torch.full((200, 1000), 2.0, requires_grad=True)
        y = part(0.25).train()(x)
        y.sum().backward()
        kept = y != 0
        assert kept.double().mean().item() == pytest.approx(0.75, abs=0.005)
        assert_close(y, kept * 2.0 / 0.75)
        assert_close(x.grad, kept / 0.75)
        assert part(0.25).eval()(x) is x


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_loss(epsilon: float) -> None:
    torch.manual_seed(5)
    hidden_ND, weight_VD, bias_V, target_N = torch.randn(9, 4), torch.randn(11, 4), torch.randn(11), torch.arange(9)
    leaves = [one.requires_grad_() for one in (hidden_ND, weight_VD, bias_V)]
    ours = linear_cross_entropy(*leaves, target_N, epsilon).smoothed
    theirs = by_the_paper(hidden_ND @ weight_VD.T + bias_V, target_N, epsilon)
    assert_close(ours, theirs)
    for one, other in zip(torch.autograd.grad(ours, leaves), torch.autograd.grad(theirs, leaves), strict=True):
        assert_close(one, other, rtol=1e-5, atol=1e-5)
