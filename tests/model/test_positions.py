"""Positions as section 3.5 defines them, and the rotary ones of Su et al."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from transformer_mt.model.positions import (
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    sinusoidal_positions,
)


def formula(position: int, coordinate: int, d_model: int) -> float:
    angle = position / 10_000 ** (2 * (coordinate // 2) / d_model)
    return math.sin(angle) if coordinate % 2 == 0 else math.cos(angle)


@pytest.mark.parametrize("d_model", [2, 6, 512])
def test_sinusoidal_positions_are_the_formula_of_the_paper(d_model):
    table_TD = sinusoidal_positions(300, d_model)
    for position in (0, 1, 2, 17, 299):
        expected = [formula(position, coordinate, d_model) for coordinate in range(d_model)]
        assert_close(table_TD[position].tolist(), expected, rtol=0, atol=5e-5)


def test_known_points():
    table_TD = sinusoidal_positions(3, 4)
    assert table_TD[0].tolist() == [0, 1, 0, 1]
    assert_close(table_TD[1].tolist(), [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)], rtol=0, atol=1e-7)
    assert_close(table_TD[2].tolist(), [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)], rtol=0, atol=1e-7)


def test_a_shift_of_positions_is_a_rotation():
    """Section 3.5: for any fixed offset, PE(pos + k) is a linear function of PE(pos); so products depend on k only."""
    table_TD = sinusoidal_positions(100, 32)
    products_T = (table_TD[:-5] * table_TD[5:]).sum(dim=1)
    assert_close(products_T, products_T[:1].expand(95), rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_positions_beyond_the_table_are_computed_and_nothing_grows(dtype):
    positions = SinusoidalPositions(8, length=10).to(dtype)
    assert_close(positions(7, 20), sinusoidal_positions(27, 8)[7:].to(dtype))
    assert_close(positions(40, 1), sinusoidal_positions(41, 8)[40:].to(dtype))
    assert positions.table_PD.shape == (10, 8)
    assert not list(positions.parameters())
    assert not positions.state_dict()


def test_learned_positions_are_rows_of_a_table():
    positions = LearnedPositions(10, 4)
    assert torch.equal(positions(3, 7), positions.table.weight[3:10])
    with pytest.raises(AssertionError):
        positions(3, 8)


def test_rotary_products_depend_on_the_distance_only():
    torch.manual_seed(0)
    rotary = RotaryPositions(16)
    query_BH1K, key_BH1K = torch.randn(1, 1, 1, 16), torch.randn(1, 1, 1, 16)

    def product(at_query: int, at_key: int) -> float:
        return (rotary(query_BH1K, at_query) * rotary(key_BH1K, at_key)).sum().item()

    near, far = product(3, 1), product(9, 1)
    assert product(103, 101) == pytest.approx(near, abs=1e-4)
    assert product(58, 50) == pytest.approx(far, abs=1e-4)
    assert abs(near - far) > 0.1
    assert product(0, 0) == pytest.approx((query_BH1K * key_BH1K).sum().item(), abs=1e-6)


def test_rotary_keeps_lengths_and_rotates_pairs_by_position_times_frequency():
    rotary = RotaryPositions(4)
    x_BHQK = torch.tensor([[[[1.0, 1.0, 0.0, 0.0]] * 3]])  # three positions of the same vector
    rotated = rotary(x_BHQK, 5)
    assert_close(rotated.norm(dim=-1), x_BHQK.norm(dim=-1))
    for row, position in enumerate((5, 6, 7)):
        slow = position / 100  # 10000^(-2/4)
        expected = [math.cos(position), math.cos(slow), math.sin(position), math.sin(slow)]
        assert_close(rotated[0, 0, row].tolist(), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("start", "length"), [(0, 9), (8, 2), (9, 1), (7, 20), (40, 3)])
def test_rotary_positions_beyond_the_table_are_computed(start, length):
    torch.manual_seed(0)
    x_BHQK = torch.randn(2, 3, length, 6)
    short, long = RotaryPositions(6, length=9), RotaryPositions(6, length=99)
    assert_close(short(x_BHQK, start), long(x_BHQK, start), rtol=0, atol=1e-6)
    assert short.angle_PI.shape == (9, 3)
    assert not short.state_dict()


def test_rotary_positions_keep_the_type_of_their_input():
    assert RotaryPositions(4)(torch.ones(1, 1, 3, 4, dtype=torch.bfloat16), 0).dtype is torch.bfloat16
