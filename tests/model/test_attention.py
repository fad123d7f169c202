"""Equation 1 on numbers that can be checked by hand; what heads and masks mean."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from transformer_mt.kernels.attention import cpu_attention, fused_attention
from transformer_mt.model.attention import scaled_dot_product_attention
from transformer_mt.model.masks import causal_mask, padding_mask
from transformer_mt.model.multi_head_attention import MultiHeadAttention
from transformer_mt.model.parts import Parts

ATTENTIONS = [scaled_dot_product_attention, fused_attention, cpu_attention]


def test_equation_1_by_hand():
    query = torch.tensor([[[[1.0, 0.0]]]], dtype=torch.float64)
    key = torch.tensor([[[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]]], dtype=torch.float64)
    value = torch.tensor([[[[10.0, 0.0], [0.0, 10.0], [1.0, 1.0]]]], dtype=torch.float64)
    context = scaled_dot_product_attention(query, key, value)
    powers = [math.exp(1 / math.sqrt(2)), 1.0, math.exp(-1 / math.sqrt(2))]
    first, second, third = (power / sum(powers) for power in powers)
    assert_close(context.flatten().tolist(), [10 * first + third, 10 * second + third])


def test_true_means_may_attend():
    query, key = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 4, 2)
    value = torch.tensor([[[[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]]]])
    context = scaled_dot_product_attention(query, key, value, torch.tensor([[[[True, False, True, False]]]]))
    assert context.flatten().tolist() == [2.0, 2.0]


def test_scores_are_divided_by_the_root_of_the_width_of_a_head():
    """Section 3.2.1: for independent components with variance 1 the scores then have variance 1 as well."""
    torch.manual_seed(0)
    for width in (4, 64, 256):
        query, key = torch.randn(1, 1, 200, width), torch.randn(1, 1, 200, width)
        weights = scaled_dot_product_attention(query, key, torch.eye(200))  # unit vectors as values give the weights
        logits = weights.log()
        assert (logits - logits.mean(dim=-1, keepdim=True)).std().item() == pytest.approx(1.0, rel=0.15)


def test_each_head_sees_its_own_coordinates_only():
    """With W^O the identity, changing the values of head 1 changes nothing of head 0."""
    torch.manual_seed(1)
    attention = MultiHeadAttention(8, 2).double()
    with torch.no_grad():
        attention.output.weight.copy_(torch.eye(8))
        x_BQD = torch.randn(1, 5, 8, dtype=torch.float64)
        before_BQD = attention(x_BQD)
        attention.query_key_value.weight[2 * 8 + 4 :] += 1.0  # W^V of head 1
        after_BQD = attention(x_BQD)
    assert_close(after_BQD[..., :4], before_BQD[..., :4], rtol=0, atol=0)
    assert (after_BQD[..., 4:] != before_BQD[..., 4:]).all()


@pytest.mark.parametrize("kernel", ATTENTIONS)
def test_a_memory_that_is_the_sequence_itself_is_self_attention(kernel):
    torch.manual_seed(2)
    attention = MultiHeadAttention(8, 2, parts=Parts(attention=kernel))
    x_BQD = torch.randn(2, 3, 8)
    assert_close(attention(x_BQD, x_BQD), attention(x_BQD))


@pytest.mark.parametrize("kernel", ATTENTIONS)
def test_the_order_of_a_memory_does_not_matter_without_positions(kernel):
    torch.manual_seed(3)
    attention = MultiHeadAttention(8, 4, parts=Parts(attention=kernel)).double()
    x_BQD, memory_BMD = torch.randn(2, 3, 8, dtype=torch.float64), torch.randn(2, 6, 8, dtype=torch.float64)
    assert_close(attention(x_BQD, memory_BMD.flip(1)), attention(x_BQD, memory_BMD))


def test_causal_excludes_a_mask():
    attention = MultiHeadAttention(8, 2)
    with pytest.raises(AssertionError):
        attention(torch.randn(1, 3, 8), mask_BHQM=torch.ones(1, 1, 3, 3, dtype=torch.bool), causal=True)


def test_masks():
    ids_BM = torch.tensor([[5, 6, 0], [7, 0, 0]])
    assert padding_mask(ids_BM, 0).tolist() == [[[[True, True, False]]], [[[True, False, False]]]]
    assert causal_mask(torch.zeros(1, 1, 3, 2)).tolist() == [
        [[[True, False, False], [True, True, False], [True, True, True]]]
    ]
