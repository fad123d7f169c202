"""Sentences in another language than theirs are recognised; sentences in their language are not reported."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
import spacy.lang

from transformer_mt.text.language import is_known, is_long, is_number, language_of, other_language

GERMAN = "Die Kinder spielen heute im Garten hinter dem Haus."
ENGLISH = "The children are playing in the garden behind the house."
FRENCH = "Les enfants jouent dans le jardin derrière la maison."
KOREAN = "아이들이 오늘 집 뒤의 정원에서 놀고 있습니다."


@pytest.mark.parametrize(
    ("text", "language", "found"),
    [
        (GERMAN, "de", None),
        (GERMAN, "deu", None),
        (GERMAN.upper(), "de", None),
        (ENGLISH, "de", "en"),
        (FRENCH, "de", "fr"),
        (KOREAN, "de", "ko"),
        (GERMAN, "ko", "de"),
        (KOREAN, "ko", None),
        ("아이들이정원에서놀고있습니다", "en", "ko"),  # long enough without spaces
        ("The dog", "de", None),  # too short
        ("", "de", None),
        ("12 : 34 , 56 7 8 9", "de", None),
        (ENGLISH, "gsw", None),  # not known
        ("国際連合安全保障理事会決議採択", "ja", None),  # no kana, but Japan's characters
        ("中国政府昨天宣布将继续扩大对外开放", "ja", "zh"),
        ("中国政府昨天宣布将继续扩大对外开放", "zh", None),
        ("他們在這裡工作了三年，現在要回台灣", "ja", "zh"),
        ("中國政府昨天宣布將繼續擴大對外開放", "ja", "zh"),
    ],
)
def test_the_language_of_a_sentence_that_is_not_in_its_own(text: str, language: str, found: str | None) -> None:
    assert other_language(text, language) == found


def test_related_languages_are_one() -> None:
    assert other_language("Barna leker i hagen bak huset i dag.", "nb") is None
    assert is_known("nb")
    assert not is_known("gsw")


def test_numbers_do_not_hide_the_language_of_sentences() -> None:
    """The identifier has a class for texts in no language."""
    assert language_of(f"I ate {n} apples." for n in range(1, 300)) == "en"


def test_examples_of_many_languages_are_recognised() -> None:
    """The example sentences that come with spaCy: none is taken for another language, and nearly all are not German."""
    wrong, sentences, found = [], 0, 0
    for module in pkgutil.iter_modules(spacy.lang.__path__):
        try:
            examples = importlib.import_module(f"spacy.lang.{module.name}.examples").sentences
        except ImportError:
            continue
        for text in filter(is_long, examples):
            wrong += [text] if other_language(text, module.name) else []
            if module.name not in ("de", "xx") and is_known(module.name):
                sentences += 1
                found += other_language(text, "de") is not None
    assert wrong == []
    assert sentences > 300
    assert found > 0.99 * sentences


@pytest.mark.parametrize("text", ["4711", "3.5 %", "S0012", "-", "12:30", "AB-1234", " 7 "])
def test_numbers_and_ids(text: str) -> None:
    assert is_number(text)


@pytest.mark.parametrize(
    "text", ["Kapitel 3", "eins", "3 Hunde", "COVID 19", "我们在3月去北京看朋友。", "彼は3時に駅で友達と会いました"]
)
def test_words_are_no_ids(text: str) -> None:
    assert not is_number(text)


def test_a_long_run_of_digits_takes_no_time() -> None:
    assert not is_number("1" * 1_000_000 + " x")  # with a time that grows with the square, this would take an hour
    assert is_number("1" * 1_000_000)
