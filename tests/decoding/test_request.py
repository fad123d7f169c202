"""How long a translation may be, and which sentences form a batch: known answers at every limit."""

from __future__ import annotations

import pytest

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.request import MOST_SENTENCES, Request, allowed_lengths, batched
from transformer_mt.decoding.searches.beam import Beam
from transformer_mt.decoding.searches.mbr import MinimumBayesRisk

EOS = 3
TEN = (*range(4, 14), EOS)


@pytest.mark.parametrize(
    ("source", "prefix", "options", "positions", "expected"),
    [
        (TEN, (), {"max_length_ratio": 1.5, "max_length_offset": 4}, None, (0, 19)),
        (TEN[:-1], (), {"max_length_ratio": 1.5, "max_length_offset": 4}, None, (0, 19)),  # cut: no end token
        (TEN, (), {"max_length_ratio": 0.55, "max_length_offset": 0}, None, (0, 5)),
        (TEN, (), {"min_length_ratio": 0.55}, None, (5, 50)),
        (TEN, (), {"min_length_ratio": 5.0, "max_length_ratio": 1.0, "max_length_offset": 2}, None, (11, 12)),
        (TEN, (), {"max_length_ratio": 1.0, "max_length_offset": 30}, 17, (0, 17)),
        (TEN, (), {"min_length_ratio": 2.0}, 17, (16, 17)),
        (TEN, (4,) * 7, {"max_length_ratio": 0.0, "max_length_offset": 3}, None, (0, 8)),
        (TEN, (4,) * 7, {"max_length_ratio": 0.0, "max_length_offset": 3}, 6, (0, 6)),
        ((EOS,), (), {"max_length_ratio": 2.0, "max_length_offset": 0}, None, (0, 1)),
    ],
)
def test_allowed_lengths(
    source: tuple[int, ...],
    prefix: tuple[int, ...],
    options: dict[str, float],
    positions: int | None,
    expected: tuple[int, int],
) -> None:
    assert allowed_lengths(Request(source, prefix), DecodingConfig(**options), positions) == expected  # type: ignore[arg-type]


def test_a_batch_takes_sentences_until_its_budget_is_exactly_full() -> None:
    lengths = [3, 10, 8, 9, 2]
    assert list(batched(lengths, rows=2, batch_tokens=60)) == [[1, 3, 2], [0, 4]]  # 3 sentences, 10 long, 2 rows
    assert list(batched(lengths, rows=2, batch_tokens=59)) == [[1, 3], [2, 0, 4]]
    assert list(batched([50], rows=2, batch_tokens=10)) == [[0]]
    assert list(batched([], rows=1, batch_tokens=10)) == []


def test_a_batch_of_short_sentences_has_a_limit_too() -> None:
    sizes = [len(batch) for batch in batched([1] * (MOST_SENTENCES + 3), rows=1, batch_tokens=10**9)]
    assert sizes == [MOST_SENTENCES, 3]


@pytest.mark.parametrize(
    ("search", "options", "problems"),
    [
        (Beam, {"beam": 4, "n_best": 4}, []),
        (Beam, {"beam": 4, "n_best": 5}, ["n_best 5 needs a beam of at least 5, not 4"]),
        (MinimumBayesRisk, {"samples": 2}, []),
        (
            MinimumBayesRisk,
            {"samples": 1},
            ["minimum Bayes risk chooses among candidates, so samples must be at least 2"],
        ),
        (MinimumBayesRisk, {"candidates": "beam", "beam": 2}, []),
        (
            MinimumBayesRisk,
            {"candidates": "beam", "beam": 1},
            ["minimum Bayes risk chooses among candidates, so beam must be at least 2"],
        ),
        (
            MinimumBayesRisk,
            {"candidates": "beam", "beam": 4, "n_best": 5},
            ["n_best 5 needs a beam of at least 5, not 4"],
        ),
    ],
)
def test_settings_that_contradict_are_named(
    search: type[Beam], options: dict[str, object], problems: list[str]
) -> None:
    decoding = DecodingConfig().model_copy(update=options)
    assert search.problems(decoding) == problems
