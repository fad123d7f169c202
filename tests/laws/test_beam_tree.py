"""Laws of the recorded search in a random language: the tree is the search, and the search does not notice it."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
import torch

from tests.laws.test_search_beam import EOS, RandomLanguage, limits
from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding import step as step_file
from transformer_mt.decoding.beam_search import Coverage
from transformer_mt.decoding.beam_tree import BeamTree, RecordedBeam
from transformer_mt.decoding.request import SearchResult
from transformer_mt.decoding.searches.base import Sentences
from transformer_mt.decoding.searches.beam import Beam

CASES = list(itertools.product(range(6), [1, 2, 5], [0.0, 0.6]))


def searched(seed: int, beam: int, alpha: float, **options: Any) -> tuple[list[SearchResult], BeamTree]:
    """The results of the plain search, which must equal those of the recorded one, and the tree."""
    language = RandomLanguage(seed, sharpness=2.5, vocabulary=options.pop("vocabulary", 7))
    decoding = DecodingConfig(beam=beam, length_penalty=alpha, coverage_penalty=options.pop("coverage_penalty", 0.0))
    coverage = options.pop("coverage", None)
    bounds = limits(1, options.pop("longest", 8), **options)
    sentences = Sentences(language.step, language.start(1), bounds, [(4, EOS)], coverage)
    recorded = RecordedBeam(decoding)
    (found,), (again,) = Beam(decoding).find(sentences), recorded.find(sentences)
    assert again == found
    return found, recorded.tree


@pytest.mark.parametrize(("seed", "beam", "alpha"), CASES)
def test_the_leaves_are_the_results_of_the_search_with_equal_scores(seed: int, beam: int, alpha: float) -> None:
    found, tree = searched(seed, beam, alpha)
    leaves = [tree.nodes[place] for place in tree.done]
    assert [tuple(tree.ids(place)) for place in tree.done] == [one.ids for one in found]
    assert [leaf.score for leaf in leaves] == [one.score for one in found]
    assert [leaf.log_probability for leaf in leaves] == pytest.approx([one.log_probability for one in found], abs=1e-6)
    assert {n for n, node in enumerate(tree.nodes) if node.fate == "done"} == {*tree.done}


@pytest.mark.parametrize(("seed", "beam", "alpha"), CASES)
def test_each_node_extends_one_that_the_search_kept(seed: int, beam: int, alpha: float) -> None:
    _, tree = searched(seed, beam, alpha)
    language = RandomLanguage(seed, sharpness=2.5)
    for node in tree.nodes[1:]:
        assert node.parent is not None
        parent = tree.nodes[node.parent]
        assert parent.fate == "extended"
        assert parent.token != EOS
        assert node.step == parent.step + 1
        assert node.log_p <= 0
        assert node.log_probability == pytest.approx(parent.log_probability + node.log_p, abs=1e-5)
    for place in random.Random(seed).choices(range(1, len(tree.nodes)), k=5):
        assert tree.nodes[place].log_probability == pytest.approx(
            language.log_probability(0, tuple(tree.ids(place))), abs=1e-4
        )


@pytest.mark.parametrize(("seed", "beam", "alpha"), CASES)
def test_the_probabilities_of_extensions_are_at_most_1_together(seed: int, beam: int, alpha: float) -> None:
    _, tree = searched(seed, beam, alpha)
    shares: dict[int | None, float] = {}
    for node in tree.nodes[1:]:
        shares[node.parent] = shares.get(node.parent, 0.0) + math.exp(node.log_p)
    assert max(shares.values()) <= 1 + 1e-5
    whole = sum(math.exp(tree.nodes[place].log_probability) for place in tree.done)
    assert whole <= 1 + 1e-5


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_a_step_considers_twice_the_beam_and_keeps_at_most_the_beam(beam: int) -> None:
    for seed in range(8):
        _, tree = searched(seed, beam, 0.6)
        for step in range(1, tree.nodes[-1].step + 1):
            some = [node for node in tree.nodes if node.step == step]
            assert len(some) <= 2 * beam
            assert [node.log_probability for node in some] == sorted((n.log_probability for n in some), reverse=True)
            kept = [node for node in some if node.fate in ("extended", "unfinished")]
            assert len(kept) <= beam
            assert all(node.token != EOS for node in kept)
            likeliest = [node for node in some if node.token != EOS][: len(kept)]
            assert kept == likeliest or step == tree.nodes[-1].step == 8


def test_what_the_limits_forbid_is_not_in_the_tree() -> None:
    prefix = (5, 4)
    found, tree = searched(3, 3, 0.6, prefixes=[prefix], shortest=[4], no_repeat_ngram=2)
    assert all(one.ids[:2] == prefix for one in found)
    assert {tree.nodes[n].token for n in range(len(tree.nodes)) if tree.nodes[n].step == 1} == {5}
    for place in range(len(tree.nodes)):
        ids = tree.ids(place)
        assert tuple(ids[:2]) == prefix[: len(ids)]
        assert EOS not in ids[:4]
        pairs = list(itertools.pairwise(ids))
        assert len({*pairs}) == len(pairs)


def test_a_beam_wider_than_the_vocabulary_has_no_invented_nodes() -> None:
    found, tree = searched(1, 9, 0.0, longest=3, vocabulary=5)  # three words that may follow
    assert len([node for node in tree.nodes if node.step == 1]) == 3
    assert len({tuple(tree.ids(n)) for n in range(len(tree.nodes))}) == len(tree.nodes)
    assert len(tree.done) == len(found)


def test_a_coverage_penalty_is_part_of_the_scores() -> None:
    def attention(cache: Any) -> torch.Tensor:
        return torch.full((len(cache.rows), 2), 0.1)

    found, tree = searched(2, 3, 0.6, coverage_penalty=0.5, coverage=Coverage(torch.zeros(1, 2), attention))
    assert [tree.nodes[place].score for place in tree.done] == [one.score for one in found]


def test_a_search_that_looks_seldom_leaves_the_same_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: rows go on for some steps after the sentence is finished."""
    for seed, beam in itertools.product(range(8), (2, 4)):
        monkeypatch.setitem(step_file.LOOK_STEPS, "cpu", 1)
        often = searched(seed, beam, 0.6, longest=14)
        monkeypatch.setitem(step_file.LOOK_STEPS, "cpu", 5)
        assert searched(seed, beam, 0.6, longest=14) == often
