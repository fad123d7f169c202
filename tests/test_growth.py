"""The helper that tests of time use tells linear from quadratic work."""

from __future__ import annotations

import pytest

from tests.growth import CONSTANT, assert_grows


def test_it_tells_how_a_time_grows() -> None:
    assert_grows(lambda size: sum(range(size)), 100_000)
    assert_grows(lambda size: sum(range(300_000)), 100_000, CONSTANT)
    with pytest.raises(AssertionError, match="4 times the size took"):
        assert_grows(lambda size: sum(range(size)), 300_000, CONSTANT)
    with pytest.raises(AssertionError, match="4 times the size took"):
        assert_grows(lambda size: sum(range(size * size)), 700)
