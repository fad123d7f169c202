"""Spaces between tokens: learned from text, or by default."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.text.spacing import Spacing


def lesson(sentence: str) -> tuple[list[str], list[bool]]:
    """Tokens and their spaces from a sentence in which "_" marks a join: "do _n't"."""
    words = sentence.split()
    return [word.lstrip("_") for word in words], [not word.startswith("_") for word in words]


LESSONS = [
    "a dog sits in a room _.",
    "a man in the room _, on a chair _.",
    "on the street a man runs _, a dog too _.",
    "I do _n't know the room _.",
    "a room ( _small _) is here _.",
    "the street ( _long _) is there _.",
    "my house ( _old _) is gone _.",
    "a t _- _shirt and a shirt _.",
    "a well _- _known man _.",
]


@pytest.fixture(scope="module")
def spacing() -> Spacing:
    return Spacing.learn(lesson(sentence) for sentence in LESSONS * 3)


@pytest.mark.parametrize("sentence", LESSONS)
def test_what_was_learned_comes_back(spacing: Spacing, sentence: str) -> None:
    tokens, _ = lesson(sentence)
    assert spacing.join(tokens) == sentence.replace(" _", "")


def test_a_word_before_full_stops_does_not_stick_to_other_words(spacing: Spacing) -> None:
    """ "room" is followed only by marks: the marks stick, not the word."""
    assert spacing.join(["a", "room", "on", "a", "street"]) == "a room on a street"
    assert not {"room", "shirt", "small", "known"} & (spacing.left | spacing.right)


def test_pairs_never_seen_follow_the_rule(spacing: Spacing) -> None:
    assert spacing.join(["blue", ",", "green", ".", "red"]) == "blue, green. red"
    assert spacing.join(["big", "-", "eyed"]) == "big-eyed"
    assert spacing.join(["could", "n't"]) == "couldn't"


def test_a_single_typing_mistake_makes_no_rule() -> None:
    mistake = [lesson("we saw _Rome today"), lesson("it is late"), lesson("we went home")]
    learned = Spacing.learn(mistake)
    assert learned.join(["in", "Rome", "now"]) == "in Rome now"
    assert learned.join(["we", "saw", "Rome"]) == "we sawRome"  # but this pair was seen


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (["Is", "this", "right", "?", "Yes", "!"], "Is this right? Yes!"),
        (["(", "a", ")", ",", "[", "b", "]", ";"], "(a), [b];"),
        (["I", "do", "n't", ",", "we", "'ll", "and", "she", "'s", "here"], "I don't, we'll and she's here"),
        (["he", "said", '"', "go", "home", '"', "."], 'he said "go home".'),
        (['"', "a", '"', "and", '"', "b", '"'], '"a" and "b"'),
        (["(", '"', "a", '"', ")"], '("a")'),
        (["the", "dogs", "'", "house"], "the dogs' house"),
        (["a", " ", "b", "   "], "a b"),
        (["."], "."),
        ([], ""),
    ],
)
def test_without_any_text_common_marks_are_known(tokens: list[str], sentence: str) -> None:
    assert Spacing().join(tokens) == sentence


def test_text_overrules_the_defaults() -> None:
    """French has a space before a question mark."""
    learned = Spacing.learn(lesson(f"{word} ? oui") for word in ["ici", "vous", "encore", "vrai"])
    assert learned.join(["demain", "?"]) == "demain ?"


def test_it_survives_json(spacing: Spacing) -> None:
    again = Spacing.from_json(spacing.to_json())
    assert again.to_json() == spacing.to_json()
    assert (again.left, again.right, again.pairs) == (spacing.left, spacing.right, spacing.pairs)


def test_learning_is_deterministic_whatever_the_order(spacing: Spacing) -> None:
    assert Spacing.learn(map(lesson, reversed(LESSONS * 3))).to_json() == spacing.to_json()


@given(tokens=st.lists(st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=4), max_size=12))
def test_joining_loses_and_adds_nothing_but_spaces(tokens: list[str]) -> None:
    sentence = Spacing.learn(map(lesson, LESSONS)).join(tokens)
    assert sentence.replace(" ", "") == "".join(tokens)
    assert sentence == " ".join(sentence.split())
