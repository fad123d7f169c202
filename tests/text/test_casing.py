"""The case of text: keep it, lower it, or truecase it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.text.casing import Casing, capitalised, lowered

SENTENCES = ["The dog sees Anna.", "Yesterday the dog, a big one, met Anna. The end came.", "It saw the US."]


@pytest.fixture(scope="module")
def truecase() -> Casing:
    casing = Casing("true")
    casing.train(SENTENCES)
    return casing


def test_kept_and_lowered() -> None:
    assert Casing("keep").apply("Über Köln") == "Über Köln"
    assert Casing("lower").apply("Über KÖLN") == "über köln"
    assert Casing("lower").undo("über köln") == "über köln"
    assert [Casing(kind).lossless for kind in ("keep", "lower", "true")] == [True, False, False]


@pytest.mark.parametrize(
    ("language", "text", "lower"),
    [
        ("tr", "İstanbul, Isparta, IŞIK", "istanbul, ısparta, ışık"),
        ("aze", "İL QIZ", "il qız"),
        ("en", "İstanbul IS BIG", "istanbul is big"),
        ("el", "ΣΑΣ", "σας"),
        ("de", "STRAẞE", "straße"),
    ],
)
def test_lower_case_is_that_of_the_language(language: str, text: str, lower: str) -> None:
    assert lowered(text, language) == lower
    assert Casing("lower", language).apply(text) == lower


@pytest.mark.parametrize(
    ("language", "text", "upper"),
    [
        ("tr", "iyi", "İyi"),
        ("tr", "ısı", "Isı"),
        ("en", "iyi", "Iyi"),
        ("ka", "კაცმა", "კაცმა"),
        ("de", "ßa", "ßa"),
        ("hr", "ǆep", "ǅep"),
        ("ko", "그는", "그는"),
        ("", "", ""),
    ],
)
def test_a_sentence_begins_as_its_language_writes_it(language: str, text: str, upper: str) -> None:
    assert capitalised(text, language) == upper
    assert Casing("true", language).undo(text) == upper


@pytest.mark.parametrize(
    ("text", "cased"),
    [
        ("The dog sees Anna.", "the dog sees Anna."),
        ("Anna sees  the dog. The US saw Anna!", "Anna sees  the dog. the US saw Anna!"),
        ("„The dog“ <b> a|b 3.5", "„the dog“ <b> a|b 3.5"),
        ("Unknown Words STAY", "Unknown Words STAY"),
        ("", ""),
        ("...", "..."),
    ],
)
def test_a_sentence_start_is_written_as_elsewhere(truecase: Casing, text: str, cased: str) -> None:
    assert truecase.apply(text) == cased
    assert truecase.undo(cased) == text


@given(text=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40))
def test_truecasing_changes_case_alone(text: str) -> None:
    casing = Casing("true")
    casing.train(SENTENCES)
    assert casing.apply(text).casefold() == text.casefold()


def test_it_is_saved_and_loaded(truecase: Casing, tmp_path: Path) -> None:
    truecase.save(tmp_path)
    loaded = Casing("true")
    loaded.load(tmp_path)
    for sentence in SENTENCES:
        assert loaded.apply(sentence) == truecase.apply(sentence)
    Casing("lower").save(tmp_path / "nowhere")  # nothing was learned, so nothing is written
