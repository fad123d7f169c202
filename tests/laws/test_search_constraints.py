"""Laws of constrained search in a random language: compared with all sentences that meet the constraints."""

from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor

from tests.laws.test_search_beam import EOS, Prefixes, RandomLanguage, all_sentences, beams, limits
from transformer_mt.decoding.beam_search import BeamOptions, beam_search
from transformer_mt.decoding.constraints import Constraints
from transformer_mt.decoding.request import Constraint, SearchResult
from transformer_mt.decoding.step import Limits

LONGEST = 4
LETTERS = (1, 4, 5, 6)


def constrained(
    language: RandomLanguage,
    required: list[list[Constraint]],
    bounds: Limits | None = None,
    joining: tuple[int, ...] = (),
    first: int = 0,
    **options: float,
) -> list[list[SearchResult]]:
    settings = BeamOptions(**{"beam": 4, "alpha": 0.6, **options})  # type: ignore[arg-type]
    bounds = bounds or limits(len(required), 9)
    state = Constraints.of(required, joining)
    return beam_search(language.step, language.start(len(required), first), bounds, settings, None, state)


def times(ids: tuple[int, ...], one: Constraint) -> int:
    """At how many places one of the patterns ends."""
    ends = range(1, len(ids) + 1)
    return sum(any(ids[max(end - len(some), 0) : end] == some for some in one.patterns) for end in ends)


def draw_constraints(draw: random.Random) -> list[Constraint]:
    def pattern() -> tuple[int, ...]:
        return tuple(draw.choices(LETTERS, k=draw.randint(1, 3)))

    ways = [tuple(dict.fromkeys(pattern() for _ in range(draw.randint(1, 2)))) for _ in range(draw.randint(1, 2))]
    return [Constraint(patterns, draw.choice([1, 1, 2])) for patterns in ways]


@pytest.mark.parametrize("seed", range(12))
def test_a_wide_beam_finds_the_best_of_all_sentences_that_meet_the_constraints(seed: int) -> None:
    language, required = RandomLanguage(seed), draw_constraints(random.Random(seed))
    ranked = sorted(
        (
            (language.log_probability(0, ids) / ((5 + len(ids)) / 6) ** 0.6, ids)
            for ids in all_sentences(LONGEST)
            if all(times(ids, one) == one.times for one in required)
        ),
        reverse=True,
    )
    (found,) = constrained(language, [required], limits(1, LONGEST), beam=150, n_best=5)
    if not ranked:  # the length has no room for them
        assert len(found) == 1
        assert found[0].stopped
        return
    assert [one.ids for one in found[:5]] == [ids for _, ids in ranked[:5]]
    assert [one.score for one in found[:5]] == pytest.approx([score for score, _ in ranked[:5]], abs=1e-4)


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_constraints_are_met_exactly_and_neighbours_change_nothing(beam: int) -> None:
    language, draw = RandomLanguage(7, sharpness=4.0), random.Random(beam)
    required = [draw_constraints(draw)[:1] for _ in range(24)]
    required = [some for some in required if len(some[0].patterns) == 1]
    together = constrained(language, required, limits(len(required), 12), beam=beam)
    for index, (found, some) in enumerate(zip(together, required, strict=True)):
        assert found
        assert all(times(one.ids, constraint) == constraint.times for one in found for constraint in some)
        (alone,) = constrained(language, [some], limits(1, 12), first=index, beam=beam)
        assert [one.ids for one in alone] == [one.ids for one in found]


def test_without_constraints_it_is_beam_search() -> None:
    language, met = RandomLanguage(3), [Constraint(((1, 1, 1, 1, 1),), 0)]  # may not occur; the best have none
    plain = beams(language, limits(6, 5), beam=4, alpha=0.6)
    found = constrained(language, [met] * 6, limits(6, 5))
    assert [some[0].ids for some in found] == [some[0].ids for some in plain]


def test_ids_that_would_continue_a_word_do_not_follow_a_constraint() -> None:
    language, required = RandomLanguage(2), [[Constraint(((4,),))]] * 12
    for found in constrained(language, required, limits(12, 6), joining=(5, 6)):
        for one in found:
            after = one.ids[one.ids.index(4) + 1 :][:1]
            assert after not in ((5,), (6,))
    # A longer constraint may continue the shorter one.
    both = [[Constraint(((4,),), 2), Constraint(((4, 5),))]]
    (found,) = constrained(language, both, limits(1, 6), joining=(5, 6))
    assert times(found[0].ids, both[0][1]) == 1
    assert times(found[0].ids, both[0][0]) == 2


def test_a_prefix_counts_and_is_never_changed() -> None:
    language, one = RandomLanguage(4), [Constraint(((5, 6),))]
    bounds = limits(2, 8, prefixes=[(5, 6, 4), (6, 5, 5)])
    first, second = constrained(language, [one, one], bounds)
    assert all(found.ids[:3] == (5, 6, 4) and times(found.ids, one[0]) == 1 for found in first)
    assert all(found.ids[:3] == (6, 5, 5) and times(found.ids, one[0]) == 1 for found in second)


def test_what_the_lengths_have_no_room_for_is_missing_and_nothing_fails() -> None:
    language, one = RandomLanguage(5), [Constraint(((5, 6, 4, 5),))]
    (found,) = constrained(language, [one], limits(1, 2))
    assert len(found) == 1
    assert found[0].stopped
    stuck = limits(1, 9, no_repeat_ngram=1)
    (found,) = constrained(language, [[Constraint(((5,),), 2)]], stuck)
    assert len(found) == 1


def test_attention_to_a_term_makes_it_likely_there() -> None:
    """The model never writes 6; with attention, it comes where its source is read, not where it costs least."""
    reads = {0: 4, 1: 5, 2: 4}  # what the model writes at each step; it then ends

    class Line(RandomLanguage):
        def logits(self, sentence: int, prefix: tuple[int, ...]) -> list[float]:
            wanted = reads.get(len(prefix) - 1, EOS)
            return [9.0 if index == wanted else -9.0 if index == 6 else 0.0 for index in range(7)]

    def attention(cache: Prefixes) -> Tensor:
        return torch.eye(4)[[min(len(row) - 1, 3) for row in cache.rows]]

    required = [[Constraint(((6,),), sources=(1,))]]
    state = Constraints.of(required, n_source=4, attention=attention)
    language = Line(0)
    (found,) = beam_search(language.step, language.start(1), limits(1, 6), BeamOptions(4), None, state)
    assert found[0].tokens == (4, 6, 4)
