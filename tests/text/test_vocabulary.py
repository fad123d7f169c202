"""Words and their ids, and the BLEU that torchtext counts from tokens."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.text.vocabulary import MARKS, UNK, Vocabulary, bleu_of_tokens

COUNTS = Counter({"dog": 5, "ant": 2, "cat": 2, "bee": 2, "elk": 1})


def test_words_by_frequency_equal_ones_alphabetically() -> None:
    assert Vocabulary.count(COUNTS).tokens == [*MARKS, "dog", "ant", "bee", "cat", "elk"]


def test_rare_words_and_words_beyond_the_size_are_left_out() -> None:
    assert Vocabulary.count(COUNTS, min_frequency=2).tokens == [*MARKS, "dog", "ant", "bee", "cat"]
    assert Vocabulary.count(COUNTS, max_size=2).tokens == [*MARKS, "dog", "ant"]
    assert Vocabulary.count(COUNTS, min_frequency=9).tokens == list(MARKS)


def test_marks_in_the_text_of_a_sentence_are_unknown_words() -> None:
    assert Vocabulary([*MARKS, "a"]).encode([*MARKS, "a"]) == [UNK, UNK, UNK, UNK, 4]


def test_marks_in_the_text_of_a_corpus_are_not_counted() -> None:
    counts = Counter({"</s>": 99, "<pad>": 99, "a": 1})
    assert Vocabulary.count(counts).tokens == [*MARKS, "a"]
    assert counts["</s>"] == 99  # the caller's counts do not change


@given(counts=st.dictionaries(st.text(max_size=4), st.integers(1, 9), max_size=20), least=st.integers(1, 4))
def test_ids_do_not_depend_on_the_order_of_counting(counts: dict[str, int], least: int) -> None:
    backwards = dict(reversed(list(counts.items())))
    vocabulary = Vocabulary.count(Counter(counts), min_frequency=least)
    assert vocabulary == Vocabulary.count(Counter(backwards), min_frequency=least)
    words = vocabulary.tokens[len(MARKS) :]
    assert words == sorted((w for w in counts if counts[w] >= least and w not in MARKS), key=lambda w: (-counts[w], w))
    assert vocabulary.decode(vocabulary.encode(words)) == words


def test_encoding_and_unknown_words() -> None:
    vocabulary = Vocabulary([*MARKS, "a", "b"])
    assert vocabulary.encode(["b", "x", "a"]) == [5, UNK, 4]
    assert vocabulary.decode([5, UNK, 4]) == ["b", "<unk>", "a"]
    assert len(vocabulary) == 6
    assert vocabulary != Vocabulary([*MARKS, "b", "a"])


@pytest.mark.parametrize("tokens", [[], ["a", "b"], ["<unk>", "<pad>", "<s>", "</s>"], [*MARKS, "a", "a"]])
def test_a_list_that_is_not_a_vocabulary(tokens: list[str]) -> None:
    with pytest.raises(ValueError):
        Vocabulary(tokens)


def test_bleu_of_tokens_as_counted_by_hand() -> None:
    hypothesis, reference = ["the", "cat", "sat", "on", "the", "mat"], ["the", "cat", "is", "on", "the", "mat", "today"]
    # unigrams 5/6, bigrams 3/5 ("the cat", "on the", "the mat"), brevity exp(1 - 7/6)
    brevity = math.exp(1 - 7 / 6)
    assert bleu_of_tokens([hypothesis], [[reference]], 1, [1.0]) == pytest.approx(brevity * 5 / 6)
    expected = brevity * math.sqrt(5 / 6 * 3 / 5)
    assert bleu_of_tokens([hypothesis], [[reference]], 2, [0.5, 0.5]) == pytest.approx(expected)


def test_bleu_of_tokens_takes_a_word_from_any_reference_and_the_nearest_length() -> None:
    """The example of clipping of BLEU's paper: `the` stands at most twice in a reference. The nearest length is 7."""
    hypothesis = ["the"] * 7
    references = [[["the", "cat", "is", "on", "the", "mat"]], [["there", "is", "a", "cat", "on", "the", "mat"]]]
    assert bleu_of_tokens([hypothesis], references, 1, [1.0]) == pytest.approx(2 / 7)


def test_tokens_of_white_space_count_as_tokens() -> None:
    """spaCy has them, for a doubled space; torchtext splits n-grams at spaces."""
    words = ["a", "  ", "b", "c d", "e"]
    assert bleu_of_tokens([words], [[words]], 4, [0.25] * 4) == pytest.approx(1)
    assert bleu_of_tokens([words], [[["a", "x", "b", "c d", "e"]]], 1, [1.0]) == pytest.approx(4 / 5)


def test_bleu_of_tokens_at_its_limits() -> None:
    sentence = ["a", "b", "c", "d", "e"]
    assert bleu_of_tokens([sentence] * 3, [[sentence] * 3], 4, [0.25] * 4) == pytest.approx(1.0)
    assert bleu_of_tokens([sentence], [[["v", "w", "x", "y", "z"]]], 4, [0.25] * 4) == 0.0


def test_bleu_of_tokens_pools_the_sentences() -> None:
    """Corpus BLEU: 3 of 4 words in all, not the mean of 1 and 1/2."""
    hypotheses, references = [["a", "b"], ["c", "x"]], [["a", "b"], ["c", "d"]]
    assert bleu_of_tokens(hypotheses, [references], 1, [1.0]) == pytest.approx(3 / 4)
