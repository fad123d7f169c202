"""Alignment error rate and area under the curve: known answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.evaluation.alignment import AlignmentError, pharaoh, touching
from transformer_mt.evaluation.separation import area_under_curve

LINKS = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=8)


def error(found: set, sure: set, possible: set) -> AlignmentError:
    made = AlignmentError()
    made.add(found, sure, possible)
    return made


def test_known_rates() -> None:
    sure, possible = {(0, 0), (1, 1)}, {(0, 0), (1, 1), (1, 2)}
    assert error({(0, 0), (1, 1)}, sure, possible).rate == 0.0
    assert error({(0, 0), (1, 1), (1, 2)}, sure, possible).rate == 0.0, "possible links are allowed"
    assert error(set(), sure, possible).rate == 1.0
    one = error({(0, 0), (1, 2), (3, 3)}, sure, possible)
    assert (one.precision, one.recall) == (2 / 3, 1 / 2)
    assert one.rate == pytest.approx(1 - (1 + 2) / (3 + 2))


def test_counts_add_up_over_sentences() -> None:
    both = AlignmentError()
    both.add({(0, 0)}, {(0, 0)}, set())
    both.add({(5, 5)}, {(0, 0)}, set())
    assert (both.rate, both.precision, both.recall) == (0.5, 0.5, 0.5)
    assert AlignmentError().rate == 0.0


@given(found=LINKS, sure=LINKS, possible=LINKS)
def test_the_rate_is_a_share(found: frozenset, sure: frozenset, possible: frozenset) -> None:
    assert 0.0 <= error(found, sure, possible).rate <= 1.0


def test_only_links_at_known_words_are_judged() -> None:
    assert touching({(0, 5), (7, 1), (7, 7)}, {(0, 0), (1, 1)}) == {(0, 5), (7, 1)}


def test_pharaoh_is_sorted_by_the_target_word() -> None:
    assert pharaoh([(10, 2), (2, 0), (1, 2)]) == "2-0 1-2 10-2"
    assert pharaoh([]) == ""


def test_area_under_the_curve() -> None:
    assert area_under_curve([3, 4], [1, 2]) == 1.0
    assert area_under_curve([1, 2], [3, 4]) == 0.0
    assert area_under_curve([1, 2], [1, 2]) == 0.5
    assert area_under_curve([2.0], [1.0, 2.0, 3.0, 3.0]) == pytest.approx((1 + 0.5) / 4)
