"""The helper that tests of time use tells linear from quadratic work."""

from __future__ import annotations

import pytest

from tests import growth
from tests.growth import CONSTANT, LINEAR, assert_grows


@pytest.mark.parametrize(
    ("seconds", "most", "passes"),
    [
        (lambda size: size, LINEAR, True),
        (lambda size: size + size**2 / 1_000, LINEAR, True),
        (lambda size: size**2, LINEAR, False),
        (lambda size: 1.0, CONSTANT, True),
        (lambda size: size, CONSTANT, False),
    ],
)
def test_it_tells_how_a_time_grows(seconds, most, passes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "_seconds", lambda work, size: work(size))
    if passes:
        assert_grows(seconds, 100, most)
    else:
        with pytest.raises(AssertionError, match="4 times the size took"):
            assert_grows(seconds, 100, most)


def test_the_best_of_three_attempts_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = iter([16.0, 1.0, 16.0, 1.0, 4.0, 1.0])
    monkeypatch.setattr(growth, "_seconds", lambda work, size: next(measured))
    assert_grows(lambda size: None, 100)


def test_it_measures_the_time_of_the_processor() -> None:
    assert growth._seconds(lambda size: sum(range(size)), 3_000_000) > 0.01
