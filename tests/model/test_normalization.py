"""Handwritten normalisation equals torch's; the Annotated Transformer's variant equals its formula."""

from __future__ import annotations

import statistics

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

from transformer_mt.kernels.normalization import FusedLayerNorm, FusedRMSNorm
from transformer_mt.model.normalization import LayerNorm, RMSNorm


def inputs(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    shapes = ((2, 3, 16), (16,), (16,))
    x, gamma, beta = (torch.randn(shape, dtype=dtype) * 3 + 1 for shape in shapes)
    return x.requires_grad_(), gamma.requires_grad_(), beta.requires_grad_()


def normalised(norm: LayerNorm | RMSNorm, x_BTD: Tensor, gamma_D: Tensor, *beta_D: Tensor) -> Tensor:
    """The output with these parameters, so that gradients reach them."""
    given = dict(zip(("gamma", "beta"), (gamma_D, *beta_D), strict=False))
    return torch.func.functional_call(norm, given, (x_BTD,))


@pytest.mark.parametrize("epsilon", [1e-12, 1e-5, 0.5])
def test_layer_norm_equals_torchs_in_output_and_gradients(epsilon):
    leaves = inputs()
    ours, theirs = (
        normalised(LayerNorm(16, epsilon), *leaves),
        F.layer_norm(leaves[0], (16,), leaves[1], leaves[2], epsilon),
    )
    assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    for one, other in zip(
        torch.autograd.grad(ours.sin().sum(), leaves), torch.autograd.grad(theirs.sin().sum(), leaves), strict=True
    ):
        assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_rms_norm_equals_torchs_in_output_and_gradients():
    x, gamma, _ = inputs()
    ours, theirs = normalised(RMSNorm(16, 1e-6), x, gamma), F.rms_norm(x, (16,), gamma, 1e-6)
    assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    for one, other in zip(
        torch.autograd.grad(ours.sin().sum(), (x, gamma)),
        torch.autograd.grad(theirs.sin().sum(), (x, gamma)),
        strict=True,
    ):
        assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_epsilon_on_the_deviation_is_the_annotated_formula():
    values, epsilon = [1.0, 2.0, 4.0, 9.0], 0.5
    mean, deviation = statistics.mean(values), statistics.stdev(values)  # of the sample, divisor n - 1
    expected = [2 * (value - mean) / (deviation + epsilon) + 3 for value in values]
    twos, threes = torch.full((4,), 2.0), torch.full((4,), 3.0)
    ours = normalised(LayerNorm(4, epsilon, "deviation"), torch.tensor(values), twos, threes)
    assert_close(ours.tolist(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("layer", "rms"), [(LayerNorm, RMSNorm), (FusedLayerNorm, FusedRMSNorm)])
def test_the_modules_start_as_the_identity_on_normalised_vectors(layer, rms):
    x_BTD, _, _ = inputs()
    centred = layer(16, 1e-5).double()(x_BTD)
    assert_close(centred.mean(dim=-1), torch.zeros(2, 3, dtype=torch.float64), rtol=0, atol=1e-12)
    assert_close(centred.var(dim=-1, correction=0), torch.ones(2, 3, dtype=torch.float64), rtol=0, atol=1e-4)
    rooted = rms(16, 1e-5).double()(x_BTD)
    assert_close(rooted.square().mean(dim=-1), torch.ones(2, 3, dtype=torch.float64), rtol=0, atol=1e-4)


def test_a_constant_vector_is_not_divided_by_zero():
    flat_D = torch.full((8,), 3.0, requires_grad=True)
    for module in (LayerNorm(8, 1e-6), LayerNorm(8, 1e-6, "deviation"), FusedLayerNorm(8, 1e-6)):
        output_D = module(flat_D)
        assert output_D.abs().max() < 1e-3
