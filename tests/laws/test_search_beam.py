"""Laws of search in a random language, where the logits after each prefix are random numbers."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_mt.decoding.beam_search import BeamOptions, Coverage, beam_search
from transformer_mt.decoding.greedy_search import greedy_search
from transformer_mt.decoding.request import SearchResult, length_penalty
from transformer_mt.decoding.step import Limits, coverage_penalty
from transformer_mt.kernels import top_candidates as candidates
from transformer_mt.kernels.top_candidates import top_candidates

PAD, UNK, BOS, EOS = 0, 1, 2, 3
VOCABULARY = 7


@dataclass(frozen=True)
class Prefixes:
    """A cache that stores the prefix of each row; the rows of a sentence are neighbours."""

    sentences: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]

    def select(self, sentences_B: Tensor) -> Prefixes:
        width = len(self.rows) // len(self.sentences)
        kept = sentences_B.tolist()
        rows = [row for index in kept for row in self.rows[index * width : (index + 1) * width]]
        return Prefixes(tuple(self.sentences[index] for index in kept), tuple(rows))

    def reorder(self, rows_N: Tensor) -> Prefixes:
        return Prefixes(self.sentences, tuple(self.rows[index] for index in rows_N.tolist()))


class RandomLanguage:
    """Logits that depend only on the sentence and the whole prefix."""

    def __init__(self, seed: int, sharpness: float = 1.5, vocabulary: int = VOCABULARY) -> None:
        self.seed, self.sharpness, self.vocabulary = seed, sharpness, vocabulary

    def logits(self, sentence: int, prefix: tuple[int, ...]) -> list[float]:
        draw = random.Random(repr((self.seed, sentence, prefix)))
        return [draw.gauss(0, self.sharpness) for _ in range(self.vocabulary)]

    def log_probability(self, sentence: int, ids: tuple[int, ...]) -> float:
        total = 0.0
        for place, index in enumerate(ids):
            logits = torch.tensor(self.logits(sentence, (BOS, *ids[:place])), dtype=torch.float64)
            total += float(logits.log_softmax(0)[index])
        return total

    def start(self, sentences: int, first: int = 0) -> Prefixes:
        return Prefixes(tuple(range(first, first + sentences)), ((),) * sentences)

    def step(self, previous_N: Tensor, cache: Prefixes) -> tuple[Tensor, Prefixes]:
        before = cache.rows if len(cache.rows) == len(previous_N) else [()] * len(previous_N)
        rows = tuple((*row, new) for row, new in zip(before, previous_N.tolist(), strict=True))
        width = len(rows) // len(cache.sentences)
        logits = [self.logits(cache.sentences[index // width], row) for index, row in enumerate(rows)]
        return torch.tensor(logits), Prefixes(cache.sentences, rows)


def limits(sentences: int, longest: int = 5, **options: Any) -> Limits:
    return Limits.of(options.pop("shortest", [0] * sentences), [longest] * sentences, **options)


def beams(language: RandomLanguage, bounds: Limits, first: int = 0, **options: Any) -> list[list[SearchResult]]:
    start = language.start(len(bounds.longest_B), first)
    return beam_search(language.step, start, bounds, BeamOptions(**options))


def all_sentences(longest: int) -> list[tuple[int, ...]]:
    """All translations of at most `longest` steps: ended, or stopped at the last step."""
    letters = [index for index in range(VOCABULARY) if index not in (PAD, BOS, EOS)]
    ended = [(*words, EOS) for n in range(longest) for words in itertools.product(letters, repeat=n)]
    return ended + list(itertools.product(letters, repeat=longest))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
def test_a_beam_of_one_equals_greedy_search(seed: int, alpha: float) -> None:
    language = RandomLanguage(seed)
    greedy = greedy_search(language.step, language.start(12), limits(12, 8), alpha)
    for one, several in zip(greedy, beams(language, limits(12, 8), beam=1, alpha=alpha), strict=True):
        assert [found.ids for found in several] == [one.ids]
        assert several[0].score == pytest.approx(one.score, abs=1e-4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
def test_an_exhaustive_beam_finds_the_best_of_all_sentences(seed: int, alpha: float) -> None:
    language, longest = RandomLanguage(seed), 3
    ranked = sorted(
        ((language.log_probability(0, ids) / ((5 + len(ids)) / 6) ** alpha, ids) for ids in all_sentences(longest)),
        reverse=True,
    )
    (found,) = beams(language, limits(1, longest), beam=200, n_best=10, alpha=alpha)
    assert [one.ids for one in found[:10]] == [ids for _, ids in ranked[:10]]
    assert [one.score for one in found[:10]] == pytest.approx([score for score, _ in ranked[:10]], abs=1e-4)
    (greedy,) = greedy_search(language.step, language.start(1), limits(1, longest), alpha)
    assert found[0].score >= greedy.score - 1e-5


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_a_batch_finds_what_single_sentences_find(beam: int) -> None:
    language = RandomLanguage(9, sharpness=2.0)
    together = beams(language, limits(20, 9), beam=beam, alpha=0.6)
    for index, found in enumerate(together):
        (alone,) = beams(language, limits(1, 9), first=index, beam=beam, alpha=0.6)
        assert [(one.ids, pytest.approx(one.score, abs=1e-5)) for one in alone] == [
            (one.ids, one.score) for one in found
        ]


@pytest.mark.parametrize("beam", [2, 4, 50])
def test_the_list_of_hypotheses_is_sorted_and_has_none_twice(beam: int) -> None:
    language = RandomLanguage(2)
    for index, found in enumerate(beams(language, limits(10, 4), beam=beam, n_best=min(beam, 8), alpha=0.8)):
        assert len({one.ids for one in found}) == len(found) >= min(beam, 8)
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        for one in found:
            assert one.log_probability == pytest.approx(language.log_probability(index, one.ids), abs=1e-4)


@pytest.mark.parametrize("most", [1, 2])
def test_fewer_results_are_the_first_of_all(most: int) -> None:
    language, bounds = RandomLanguage(5), limits(6)
    every = beams(language, bounds, beam=4, early=False)
    assert any(len(found) > most for found in every)
    assert beams(language, bounds, beam=4, early=False, most=most) == [found[:most] for found in every]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("n_best", [1, 3])
def test_finishing_early_saves_time_and_changes_no_result(alpha: float, n_best: int) -> None:
    found, rows = {}, {True: 0, False: 0}
    for early in (True, False):
        language = RandomLanguage(5, sharpness=3.0)

        def counted(previous_N: Tensor, cache: Prefixes) -> tuple[Tensor, Prefixes]:
            rows[early] += len(previous_N)  # noqa: B023
            return language.step(previous_N, cache)  # noqa: B023

        options = BeamOptions(6, n_best, alpha, early=early)
        results = beam_search(counted, language.start(30), limits(30, 12), options)
        found[early] = [best[:n_best] for best in results]
    assert found[True] == found[False]
    assert rows[True] <= rows[False]
    if alpha == 0.0 and n_best == 1:  # the score of a live hypothesis can then only fall
        assert rows[True] < 0.8 * rows[False]


def test_translations_keep_to_the_allowed_lengths() -> None:
    language = RandomLanguage(1)
    bounds = limits(8, 6, shortest=[0, 1, 2, 3, 4, 5, 3, 3])
    for found, least in zip(beams(language, bounds, beam=4, n_best=4), bounds.shortest_B.tolist(), strict=True):
        for one in found:
            assert least <= len(one.tokens) <= 6
            assert len(one.ids) <= 6
            assert one.stopped == (one.ids[-1] != EOS)
            assert not {PAD, BOS} & set(one.ids)


def test_each_sentence_is_stopped_at_its_own_longest_length() -> None:
    language = RandomLanguage(1)
    bounds = Limits.of([2, 5], [3, 6])
    for index, found in enumerate(beams(language, bounds, beam=3)):
        assert max(len(one.ids) for one in found) <= [3, 6][index]
        (alone,) = beams(language, Limits.of([[2, 5][index]], [[3, 6][index]]), first=index, beam=3)
        assert [one.ids for one in alone] == [one.ids for one in found]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_sequence_of_tokens_occurs_twice(n: int) -> None:
    language = RandomLanguage(3, sharpness=1.0)
    bounds = limits(10, 12, shortest=[4] * 10, no_repeat_ngram=n)
    searches = [[one] for one in greedy_search(language.step, language.start(10), bounds)]
    for found in [*searches, *beams(language, bounds, beam=4)]:
        for one in found:
            runs = [one.tokens[start : start + n] for start in range(len(one.tokens) - n + 1)]
            assert len(set(runs)) == len(runs), one
    free = greedy_search(language.step, language.start(10), limits(10, 12, shortest=[11] * 10))
    assert any(len(set(one.tokens)) < len(one.tokens) for one in free), "without the limit, something repeats"


@pytest.mark.parametrize("beam", [1, 3])
def test_a_prefix_is_kept_and_its_continuation_is_the_models(beam: int) -> None:
    language, prefixes = RandomLanguage(4), [(5, 6), (), (4, 4, 4)]
    bounds = limits(3, 7, prefixes=prefixes, no_repeat_ngram=1 if beam == 3 else 0)
    for index, (found, prefix) in enumerate(zip(beams(language, bounds, beam=beam), prefixes, strict=True)):
        assert found
        for one in found:
            assert one.ids[: len(prefix)] == prefix
            assert one.log_probability == pytest.approx(language.log_probability(index, one.ids), abs=1e-4)
    greedy = greedy_search(language.step, language.start(3), bounds)
    assert [one.ids[: len(prefix)] for one, prefix in zip(greedy, prefixes, strict=True)] == prefixes


def test_penalties_have_the_published_form() -> None:
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(7, 2.0) == pytest.approx(4.0)
    assert length_penalty(25, 0.0) == 1.0
    coverage = torch.tensor([[0.5, 1.7, 1.0], [0.25, 0.25, 2.0]])
    assert coverage_penalty(coverage, 0.2).tolist() == pytest.approx([0.2 * math.log(0.5), 0.4 * math.log(0.25)])


def test_a_coverage_penalty_prefers_the_hypothesis_that_covers_the_source() -> None:
    """Of two almost equally likely words, the penalty prefers the one that attends to the rest of the source."""
    skips, reads = 4, 5
    logits = torch.full((VOCABULARY,), -50.0)
    attention = {skips: [1.0, 0.0, 0.0], reads: [0.0, 1.0, 0.0], BOS: [1.0, 0.0, 0.0]}
    newest: list[list[float]] = []

    def step(previous_N: Tensor, cache: Prefixes) -> tuple[Tensor, Prefixes]:
        newest[:] = [attention[index] for index in previous_N.tolist()]
        rows = logits.repeat(len(previous_N), 1)
        for row, index in enumerate(previous_N.tolist()):
            rows[row, [skips, reads] if index == BOS else [EOS]] = torch.tensor([0.1, 0.0] if index == BOS else [0.0])
        return rows, cache

    def first(beta: float) -> SearchResult:
        start = torch.tensor([[0.0, 0.0, 1.0]])  # the third position is padding
        coverage = Coverage(start, lambda cache: torch.tensor(newest)) if beta else None
        cache = Prefixes((0,), ((),))
        fixed = Prefixes((0,), ((), ()))
        options = BeamOptions(2, 2, beta=beta)
        (found,) = beam_search(lambda p, c: (step(p, c)[0], fixed), cache, limits(1, 4), options, coverage)
        return found[0]

    assert first(0.0).tokens == (skips,)
    assert first(1.0).tokens == (reads,)
    assert first(1.0).score == pytest.approx(first(1.0).log_probability, abs=1e-5), "everything is covered: no penalty"


@pytest.mark.parametrize("few", [0, 1 << 30], ids=["blocks", "plain"])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize(("vocabulary", "count"), [(500, 4), (8000, 10), (8001, 10), (2183, 9), (2183, 1), (3, 10)])
def test_top_candidates_are_the_highest_of_all_rows_of_a_sentence(
    vocabulary: int, count: int, width: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "FEW_LOGITS", few)
    torch.manual_seed(vocabulary)
    logits_NV, scores_BW = torch.randn(3 * width, vocabulary), torch.randn(3, width)
    logits_NV[0, 100:] = -math.inf
    logits_NV[1, -1] = 9.0
    scores_BW[2, 1:] = -math.inf
    sums_BX, ids_BX, rows_BX = top_candidates(logits_NV, scores_BW, count)
    assert sums_BX.shape == ids_BX.shape == rows_BX.shape == (3, min(count, width * vocabulary))
    sums_BWV = logits_NV.view(3, width, -1) + scores_BW[:, :, None]
    expected = [
        sorted(((sums, -row, -index) for row, line in enumerate(rows) for index, sums in enumerate(line)), reverse=True)
        for rows in sums_BWV.tolist()
    ]
    for sentence, best in enumerate(expected):
        found = zip(sums_BX[sentence].tolist(), rows_BX[sentence].tolist(), ids_BX[sentence].tolist(), strict=True)
        real = [one for one in found if one[0] > -math.inf]
        assert real == [(sums, -row, -index) for sums, row, index in best[:count] if sums > -math.inf]
