"""Terms in place of a model's own words, where the search with terms loses words of the sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from transformer_mt.decoding import interpreter
from transformer_mt.decoding.glossary import Glossary
from transformer_mt.decoding.replacing import is_spaced, loses_words, with_terms
from transformer_mt.decoding.terms import Span, Term
from transformer_mt.decoding.translation import Hypothesis, Translation
from transformer_mt.decoding.translator import Translator
from transformer_mt.text.casing import Casing

Links = Sequence[tuple[int, int]]


def replaced(line: str, text: str, links: Links, terms: dict[str, str], keeps_case: bool = False) -> Hypothesis | None:
    own, spans = (
        Hypothesis(text, (), 0.0, (), (), tuple(links)),
        [Span(line.index(one), Term(one, terms[one])) for one in terms],
    )
    of_words = [{source for source, target in links if target == word} for word in range(len(text.split()))]
    return with_terms(own, of_words, line, spans, Casing("lower" if keeps_case else "keep"))


@pytest.mark.parametrize(
    ("line", "text", "links", "terms", "expected"),
    [
        ("Der Hund ist klein.", "The dog is small.", [(1, 1)], {"Hund": "hound"}, "The hound is small."),
        ("Hund und Katze", "Dog and cat", [(0, 0), (2, 2)], {"Hund": "hound", "Katze": "kitten"}, "Hound and kitten"),
        ("Hund und Katze", "Dog and cat", [(0, 0)], {"Hund": "Rex"}, "Rex and cat"),
        ("ein („Hund“), Katze", "a (“dog”), cat", [(1, 1)], {"Hund": "hound"}, "a (“hound”), cat"),
        ("Hunds Haus", "the dog's house!", [(0, 1), (1, 2)], {"Hunds": "hound"}, "the hound's house!"),
        ("das rote Auto da", "the red car there", [(1, 1), (2, 2)], {"rote Auto": "cab"}, "the cab there"),
        ("das Auto da", "the car there", [(1, 1)], {"Auto": "big red bus"}, "the big red bus there"),
        # a word that the model writes as two, and articles
        ("das Bad da", "the swimming pool there", [(1, 1), (1, 2)], {"Bad": "spa"}, "the spa there"),
        ("Ein Hund", "A hound", [(1, 0), (1, 1)], {"Hund": "dog"}, "A dog"),
        # no place, or not a clear one
        ("Der Hund", "The dog", [(0, 0)], {"Hund": "hound"}, None),
        ("Ein Haus da", "some houses near house", [(1, 1), (1, 3)], {"Haus": "hut"}, None),
        ("Hund im Park", "There is a dog", [(0, 0), (0, 3)], {"Hund": "hound"}, None),
        ("Ein Haus", "house after house after", [(1, 0), (1, 1), (1, 2)], {"Haus": "hut"}, None),
        ("Ein Hund, Katze", "A dog", [(1, 1), (2, 1)], {"Hund": "hound", "Katze": "kitten"}, None),
    ],
)
def test_the_linked_words_are_replaced(
    line: str, text: str, links: Links, terms: dict[str, str], expected: str | None
) -> None:
    found = replaced(line, text, links, terms)
    assert (found.text if found else None) == expected


def test_a_term_at_the_beginning_may_stay_in_lower_case() -> None:
    found = replaced("hund da", "dog there", [(0, 0)], {"hund": "hound"}, keeps_case=True)
    assert found is not None
    assert found.text == "hound there"


def test_links_are_those_of_the_words_that_are_written() -> None:
    found = replaced("das Auto da", "the car there", [(0, 0), (1, 1), (2, 2)], {"Auto": "red bus"})
    assert found is not None
    assert found.word_alignment == ((0, 0), (1, 1), (1, 2), (2, 3))


@pytest.mark.parametrize(
    ("text", "lost"),
    [("The kitten.", True), ("The kitten is small.", False), ("A kitten, small", False), ("Kitten is", True)],
)
def test_words_beside_the_terms_count(text: str, lost: bool) -> None:
    assert loses_words(text, "The cat is small.", [Term("고양이", "kitten")]) is lost


def test_words_with_particles_and_without_spaces_are_not_replaced() -> None:
    assert not is_spaced("개는 작다")
    assert not is_spaced("子犬")
    assert is_spaced("Der Hund, „klein“")


@pytest.mark.parametrize("align", [False, True])
def test_only_lines_that_lose_words_are_replaced(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, align: bool
) -> None:
    """A line with copies keeps them, and gets a note; so does one without a clear place."""
    translator, lines = (
        Translator.load([tiny_model]),
        ["a dog and a cat", "no place, dog", "no term", "the dog http://x.y/z"],
    )
    glossary = Glossary({"dog": "hound"})

    def translated(is_lost: bool) -> list[Translation]:
        monkeypatch.setattr(interpreter, "loses_words", lambda *_: is_lost)
        return list(translator.translate(lines, terms=glossary, align=align))

    def in_place(own: Hypothesis, links: Any, line: str, *_: Any) -> Hypothesis | None:
        return None if "place" in line else replace(own, text="hound " * 3)

    monkeypatch.setattr(interpreter, "with_terms", in_place)
    searched, better = translated(False), translated(True)
    assert [one.text == "hound " * 3 for one in better] == [True, False, False, False]
    assert [one.text for one in better[1:]] == [one.text for one in searched[1:]]
    assert all("hound" in one.text for one, line in zip(searched, lines, strict=True) if "dog" in line)
    assert "http://x.y/z" in better[3].text
    assert [any("may be missing" in note for note in one.notes) for one in better] == [False, True, False, True]
    assert all((one.n_best[0].alignment is not None) == align for one in (*searched, *better))


def test_a_term_that_the_search_has_not_placed_is_placed_and_not_noted(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Translator.load([tiny_model])
    lacking = Translation((), (Hypothesis("abc", (), 0.0),), ("without the term hound", "stopped"))
    tokens = tuple("a\u2581dog")
    own = Translation(tokens, (Hypothesis("a dog", tokens, 0.0, (0, 1, 2, 3, 4), (), ((1, 1),)),), ("2 unknown words",))
    answers = iter([[lacking], [own]])
    monkeypatch.setattr(Translator, "_answer", lambda *_: next(answers))
    found = translator.translate("a dog", terms=Glossary({"dog": "hound"}))
    assert (found.text, found.notes) == ("a hound", ("2 unknown words",))
