"""Muon against PyTorch's Muon, and against U V^T of the singular value decomposition."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from transformer_mt.training import muon
from transformer_mt.training.muon import Muon, orthogonalised

SHAPES = [(16, 16), (16, 16), (32, 16), (16, 32), (32, 16)]
RATE, DECAY = 0.02, 0.1


@pytest.fixture(params=["bfloat16", "float32"])
def narrow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    is_narrow: bool = request.param == "bfloat16"
    monkeypatch.setattr(muon, "multiplies_bfloat16", lambda device: is_narrow)
    return is_narrow


def parameters(shapes: list[tuple[int, int]]) -> list[nn.Parameter]:
    torch.manual_seed(5)
    return [nn.Parameter(torch.randn(shape)) for shape in shapes]


def train(optimizer: torch.optim.Optimizer, weights: list[nn.Parameter]) -> list[Tensor]:
    """Three steps with fixed gradients; the last weight has no gradient in the first step."""
    torch.manual_seed(6)
    for turn in range(3):
        for weight in weights:
            weight.grad = torch.randn_like(weight)
        if turn == 0:
            weights[-1].grad = None
        optimizer.step()
    return [weight.detach() for weight in weights]


def test_it_equals_pytorchs_muon(narrow: bool):
    ours, theirs = parameters(SHAPES), parameters(SHAPES)
    reference = torch.optim.Muon(theirs, lr=RATE, weight_decay=DECAY, adjust_lr_fn="match_rms_adamw")
    one = train(Muon(dict.fromkeys(ours, 1), RATE, DECAY), ours)
    other = train(reference, theirs)
    assert not any(torch.equal(weight, start) for weight, start in zip(one, parameters(SHAPES), strict=True))
    change = 3 * RATE * 0.2  # PyTorch always rounds to bfloat16
    assert_close(one, other, rtol=0, atol=change * (0.03 if narrow else 0.1))


def test_stacked_matrices_are_orthogonalised_separately(narrow: bool):
    stacked, apart = parameters([(48, 16)]), [nn.Parameter(part) for part in parameters([(48, 16)])[0].chunk(3)]
    gradient = torch.randn(48, 16)
    stacked[0].grad = gradient
    for part, third in zip(apart, gradient.chunk(3), strict=True):
        part.grad = third.clone()
    Muon({stacked[0]: 3}, RATE, DECAY).step()
    Muon(dict.fromkeys(apart, 1), RATE, DECAY).step()
    assert_close(stacked[0].data, torch.cat([part.data for part in apart]))


@pytest.mark.parametrize("shape", [(12, 12), (12, 30), (30, 12)])
def test_all_singular_values_become_about_equal(shape: tuple[int, int], narrow: bool):
    """U S V^T becomes about U V^T, even if S spans two orders of magnitude."""
    torch.manual_seed(7)
    u, _, vh = torch.linalg.svd(torch.randn(3, *shape), full_matrices=False)
    values = torch.logspace(0, -2, u.shape[-1]) * torch.tensor([1.0, 1e-6, 1e4])[:, None]
    result = orthogonalised(u @ torch.diag_embed(values) @ vh)
    assert result.shape == (3, *shape)
    in_singular_basis = u.mT @ result @ vh.mT
    lengths = in_singular_basis.diagonal(dim1=1, dim2=2)
    assert lengths.min() > 0.6
    assert lengths.max() < 1.3
    assert (in_singular_basis - torch.diag_embed(lengths)).abs().max() < 0.05


def test_a_missing_or_zero_gradient_changes_nothing():
    still, zero = parameters([(8, 8), (8, 8)])
    zero.grad = torch.zeros_like(zero)
    before = [still.detach().clone(), zero.detach().clone()]
    Muon({still: 1, zero: 1}, RATE).step()
    assert torch.equal(still.detach(), before[0])
    assert torch.equal(zero.detach(), before[1])
