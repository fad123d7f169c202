"""Stand-ins: however many copies touch each other, the user sees each copy once and never what stood for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decoding.test_terms import TOKENIZERS, WORDS, copies_of, random_model
from transformer_mt.decoding.constraints import Constraints
from transformer_mt.decoding.glossary import Glossary
from transformer_mt.decoding.request import Constraint, SearchResult
from transformer_mt.decoding.terms import Span, Term, gathered, opens, pieces, spans_of_terms
from transformer_mt.decoding.translator import Translator

NAMES = st.sampled_from(["{a}", "{b1}", "%(n)s"])
COPIES = st.one_of(NAMES, st.sampled_from(["https://a.example/x?y=1", "c.d@mail.example", "4.321,09", "86420"]))
AROUND = st.sampled_from(["X", "(X)", "[X]", '"X"', "„X“", "X,", "(X", "X)", "X/ X", "X은", "«X»"])
ATTACHED = st.sampled_from(["vX", "Xs", "X.txt", "no.X", "a_X", "X-mal", "Paris{c}X"])
LINES = st.lists(
    st.one_of(
        st.sampled_from(["the", "cat", "sees", "small", "house", "near", "Paris"]),
        st.builds(lambda form, copy: form.replace("X", copy), AROUND, COPIES),
        st.builds(lambda form, copy: form.replace("X", copy), ATTACHED, NAMES),
        st.builds("".join, st.lists(NAMES, min_size=2, max_size=3)),
    ),
    min_size=1,
    max_size=8,
)
MODELS: dict[str, Translator] = {}


@settings(max_examples=12, deadline=None)
@given(lines=st.lists(LINES.map(" ".join), min_size=1, max_size=6))
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_each_copy_once_and_no_stand_in(kind: str, lines: list[str]) -> None:
    translator = MODELS.setdefault(kind, random_model(kind))
    found = [Glossary({}).terms(line) for line in lines]
    for line, terms, answer in zip(lines, found, translator.translate(lines, terms=Glossary({})), strict=True):
        rest = answer.text
        for copy in sorted({term.target for term in terms}, key=len, reverse=True):
            assert rest.count(copy) == line.count(copy), (line, answer)
            rest, line = rest.replace(copy, " "), line.replace(copy, " ")
        in_pieces = any("in pieces" in note for note in answer.notes)
        if terms and not in_pieces and not any(map(str.isdigit, line)):
            assert not any(map(str.isdigit, rest)), (line, answer)
        assert "\U00017fff" not in answer.text
        assert not any(mark in note for note in answer.notes for mark in ("„7", "«7", "«9", "„9"))


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_line_that_the_search_does_not_solve_is_translated_in_pieces(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the search returns the stand-in twice, and beside it other tokens of it."""
    translator, word = random_model(kind), WORDS["ko" if kind == "soynlp" else "en"].split()[0]
    search = translator._search

    def wrong(requests: Sequence[Any]) -> list[list[SearchResult]]:
        ids = [[token for one in request.constraints for token in one.patterns[0]] * 2 for request in requests]
        found = search(requests)
        return [[SearchResult((*some, 3), 0.0, 0.0)] if some else own for some, own in zip(ids, found, strict=True)]

    monkeypatch.setattr(translator, "_search", wrong)
    line = f"({{x}}) {word} {{long_name}}, {word}!"
    (answer,) = translator.translate([line], terms=[copies_of(["{x}", "{long_name}"])], align=True)
    assert [answer.text.count(copy) for copy in ("({x})", "{long_name}")] == [1, 1]
    assert answer.text.index("({x})") < answer.text.index("{long_name}")
    assert any("in pieces around ({x}), {long_name}" in note for note in answer.notes)
    assert answer.n_best[0].word_alignment is not None
    (answer,) = translator.translate([f"{word} {{x}} {word}"], [f"{word} {{x}}"], terms=[copies_of(["{x}"])])
    assert answer.text.count("{x}") == 1


def test_the_best_hypothesis_without_a_stand_in_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    translator = random_model("words")
    bound = translator.terms.read("the {x} cat", copies_of(["{x}"]))
    (stand_in,) = bound.constraints[0].patterns[0]
    cat = translator.target.vocabulary.encode(["cat"])[0]
    found = [SearchResult((*ids, 3), 0.0, 0.0) for ids in ((stand_in, stand_in), (cat,), (cat, stand_in), (stand_in,))]
    asked = []
    monkeypatch.setattr(translator, "_search", lambda requests: asked.extend(requests) or [found])
    (answer,) = translator.translate(["the {x} cat"], terms=[copies_of(["{x}"])])
    assert (answer.text, answer.notes) == ("cat {x}", ())
    assert asked[-1].every, "a search has to return all results for it"


def test_an_unknown_word_is_never_replaced_by_a_stand_in() -> None:
    translator = random_model("words", replace_unknown=True)
    bound = translator.terms.read("the {x} cat", copies_of(["{x}"]))
    (stand_in,) = bound.constraints[0].patterns[0]
    word = translator.target.vocabulary.tokens[stand_in]
    assert translator.terms.write(bound, (1, stand_in), [word]).text == "<unk> {x}"


@pytest.mark.parametrize(
    ("prefix", "line", "terms"),
    [
        ("near https://a.example/b?c=1", "the cat https://a.example/b?c=1", {}),
        ("the {x}", "{x} {y} the cat", {}),
        ("the house", "a cat sees", {"cat": "house"}),
        ("the house.", "a cat sees", {"cat": "house"}),
        ("Größe ∞ sees", "a cat sees", {"cat": "Größe ∞"}),
    ],
)
@pytest.mark.parametrize("kind", ["words", "bpe", "character"])
def test_what_the_prefix_has_is_not_written_again(kind: str, prefix: str, line: str, terms: dict[str, str]) -> None:
    translator = MODELS.setdefault(kind, random_model(kind))
    glossary = Glossary(terms)
    answer = translator.translate(line, prefix, terms=glossary)
    for term in glossary.terms(line):
        assert answer.text.count(term.target) == 1, answer
    assert answer.text.startswith(prefix)


def test_the_alignment_is_of_the_words_that_the_user_sees() -> None:
    translator = random_model("bpe")
    line = "the {a}, {b} {c} cat sees small house"
    (answer,) = translator.translate(
        [line], terms=[[*copies_of(["{a}", "{b}", "{c}"]), Term("cat", "big old tower")]], align=True
    )
    links = answer.n_best[0].word_alignment
    assert links
    words, targets = line.split(), answer.text.split()
    assert all(source < len(words) and target < len(targets) for source, target in links)
    assert all(
        words[source] == targets[target].strip(".")
        for source, target in links
        if "{" in words[source][:1] and "{" in targets[target][:1]
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("see {a}/{b} now", ["{a}/{b}"]),
        ("see {a}{b}, {c}", ["{a}{b}, {c}"]),
        ("see ({a}) now", ["({a})"]),
        ("see ({a}, {b}) now", ["({a}, {b})"]),
        ("see ({a}) ({b})", ["({a}) ({b})"]),
        ("(see {a}) {b}", ["{a}", "{b}"]),
        ("v{a}_1.txt is", ["v{a}_1.txt"]),
        ("ends with {a}.", ["{a}"]),
        ("https://a.example/b4.321,09{a}", ["https://a.example/b4.321,09{a}"]),
        ('a "{a}" b', ['"{a}"']),
        ("„{a}“ {b}", ["{a}", "{b}"]),
        ("{a}은 {b}", ["{a}", "{b}"]),
        ("{a}. {b}", ["{a}", "{b}"]),
        ("{a} and {b}", ["{a}", "{b}"]),
        ("7/{a} 7", ["7/{a}", "7"]),
        ("cat{a}", ["cat", "{a}"]),
    ],
)
def test_copies_side_by_side_are_one_copy(line: str, expected: list[str]) -> None:
    spans = spans_of_terms(line, Glossary({"cat": "dog"}).terms(line))
    found = gathered(line, spans, lambda term: not term.source.isdigit())
    assert [span.term.source for span in found] == expected
    assert all(line[span.start : span.end] == span.term.source for span in found)


@given(LINES.map(" ".join))
def test_pieces_are_the_line(line: str) -> None:
    spans = spans_of_terms(line, Glossary({"cat": "dog"}).terms(line))
    cuts: list[Span] = [span for span in spans if span.term.is_copy]
    found = list(pieces(line, spans, cuts))
    if cuts:
        assert "".join(line[start:end] for start, end, _ in found) == line
        assert all(
            any(start <= cut.start and cut.end <= end and not words for start, end, words in found) for cut in cuts
        )


def test_a_quotation_mark_opens_if_none_is_open() -> None:
    assert all(map(opens, ('He says "', "so (", "„")))
    assert not any(map(opens, ('"He" "He says"', "", "word")))


def test_concentrated_attention_points_more_than_spread_attention() -> None:
    for times, strength in ((1, 0.3), (3, 0.3), (4, 0.9)):
        bound = Constraints.of([[Constraint(((5,),), times, sources=(0,))]], (), 4, lambda cache: cache)
        log_p = torch.full((1, 8), -100.0)
        log_p[0, 4] = 0.0
        for weight in (0.9, 0.3):
            attention = torch.tensor([[weight, 1 - weight, 0.0, 0.0]])
            pointed = bound.pointed(log_p.clone(), attention)[0].exp()
            assert float(pointed[5]) == pytest.approx(strength * weight**2)
            assert float(pointed.sum()) == pytest.approx(1.0)


def test_many_terms_in_a_sentence_are_noted(tiny_model: Path) -> None:
    translator = Translator.load(tiny_model)
    line = "a b c d e f"
    some = [Term(word, f"{word}x") for word in line.split()[:-1]]
    notes = translator.translate(line, terms=some).notes
    assert any("3 terms or more" in note for note in notes)
    assert not any("terms or more" in note for note in translator.translate(line, terms=some[:2]).notes)
