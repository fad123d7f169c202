"""Terms in place of a model's own words, where the search with terms loses words of the sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from transformer_mt.decoding import interpreter
from transformer_mt.decoding.glossary import Glossary
from transformer_mt.decoding.replacing import loses_words, with_terms
from transformer_mt.decoding.terms import Span, Term
from transformer_mt.decoding.translation import Hypothesis, Translation
from transformer_mt.decoding.translator import Translator

Links = Sequence[tuple[int, int]]


def replaced(line: str, text: str, links: Links, terms: dict[str, str], keeps_case: bool = False) -> Hypothesis | None:
    own = Translation((), (Hypothesis(text, (), 0.0, (), (), tuple(links)),))
    found = with_terms(own, line, [Span(line.index(one), Term(one, terms[one])) for one in terms], keeps_case)
    return found[0] if found else None


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
        # no place, or not a clear one
        ("Der Hund", "The dog", [(0, 0)], {"Hund": "hound"}, None),
        ("rote kleine Autos", "red cars, small", [(0, 0), (1, 2)], {"rote kleine": "x"}, None),
        ("Ein Hund, Katze", "A dog", [(1, 1), (2, 1)], {"Hund": "hound", "Katze": "kitten"}, None),
        ("a dog is small", "개는 작다", [(1, 0)], {"dog": "강아지"}, None),  # it would lose the particle
        ("a dog", "犬", [(1, 0)], {"dog": "子犬"}, None),
    ],
)
def test_the_aligned_words_are_replaced(
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
    [
        ("The kitten.", True),
        ("The kitten is small.", False),
        ("A kitten, small", False),
        ("Is a kitten", False),
        ("Kitten is", True),
        ("A very small kitten", False),
    ],
)
def test_words_beside_the_terms_count(text: str, lost: bool) -> None:
    assert loses_words(text, "The kitten is small.", [Term("고양이", "kitten")]) is lost


@pytest.mark.parametrize("align", [False, True])
def test_the_lines_that_lose_words_and_no_others_are_replaced(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, align: bool
) -> None:
    """With a model of random weights, whose attention links some words."""
    translator, lines = (
        Translator.load([tiny_model]),
        ["a dog and a cat", "the dog", "no term", "a dog at http://x.y/z"],
    )
    glossary = Glossary({"dog": "hound"})

    def translated(is_lost: bool) -> list[Translation]:
        monkeypatch.setattr(interpreter, "loses_words", lambda *_: is_lost)
        return list(translator.translate(lines, terms=glossary, align=align))

    own = list(translator.translate(lines, align=True, terms=[glossary.spans(line)[1:] for line in lines]))
    linked = "hound " * 3
    monkeypatch.setattr(
        interpreter, "with_terms", lambda *_: [Hypothesis(linked, ("x",), -1.0, (0,), (0.0,), ((0, 0),))]
    )
    searched, better = translated(False), translated(True)
    assert [one.text == linked for one in better] == [True, True, False, True]
    assert all("hound" in one.text for one, line in zip(searched, lines, strict=True) if "dog" in line)
    assert better[2] == searched[2]
    assert all((one.n_best[0].alignment is not None) == align for one in (*searched, *better))
    assert [len(one.n_best) for one in better] == [len(one.n_best) for one in searched]
    assert "http://x.y/z" in own[3].text


def test_a_term_that_the_search_has_not_placed_is_placed_and_not_noted(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Translator.load([tiny_model])
    lacking = Translation((), (Hypothesis("abc", (), 0.0),), ("without the term hound", "2 unknown words"))
    own: Any = Translation((), (Hypothesis("a dog", (), 0.0, (), (), ((1, 1),)),))
    answers = iter([[lacking], [own]])
    monkeypatch.setattr(Translator, "_answer", lambda *_: next(answers))
    found = translator.translate("a dog", terms=Glossary({"dog": "hound"}))
    assert (found.text, found.notes) == ("a hound", ("2 unknown words",))
