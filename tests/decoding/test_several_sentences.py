"""A line of several sentences: nothing of it is lost, and one line comes out."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.joining import join
from transformer_mt.decoding.translation import Hypothesis, Translation
from transformer_mt.decoding.translator import Translator

LINE = ["A man sleeps. ", "A woman reads a book.  ", "Two children play!"]


def with_search(model: Path, **options: object) -> Translator:
    return Translator.load([model], DecodingConfig(max_length_ratio=1.0, max_length_offset=5, **options))


def test_a_line_has_the_translations_of_its_sentences(tiny_model: Path) -> None:
    translator = with_search(tiny_model, beam=3)
    line, *alone = translator.translate(["".join(LINE), *LINE], align=True)
    assert line.text == f"{alone[0].text} {alone[1].text}  {alone[2].text}"
    assert line.score == pytest.approx(sum(one.score for one in alone))
    assert line.tokens == sum((one.tokens for one in alone), ())
    assert line.source_tokens == sum((one.source_tokens for one in alone), ())
    best, parts = line.n_best[0], [one.n_best[0] for one in alone]
    of_parts = [score for part in parts for score in part.token_scores or ()]
    assert best.token_scores == pytest.approx(of_parts, rel=1e-4)  # rows of a batch may differ in the last digits
    pointed = [one.source_tokens[place] for one in alone for place in one.n_best[0].alignment or ()]
    assert [line.source_tokens[place] for place in best.alignment or ()] == pointed
    words = [
        (part.split()[source], one.text.split()[target])
        for part, one in zip(LINE, alone, strict=True)
        for source, target in one.n_best[0].word_alignment or ()
    ]
    source, target = "".join(LINE).split(), line.text.split()
    assert [(source[one], target[other]) for one, other in best.word_alignment or ()] == words


def test_without_splitting_a_line_is_one_sentence(tiny_model: Path) -> None:
    translator = with_search(tiny_model, beam=2)
    assert translator.translate("ab. Cd.", split=False).source_tokens[2:4] == (".", "▁")
    assert "".join(translator.translate("ab. Cd.").source_tokens) == "ab.Cd."


def test_a_sentence_without_a_translation_moves_no_links() -> None:
    def of(text: str) -> Translation:
        return Translation(("x",), (Hypothesis(text, (text,), -1.0, (0,), (-1.0,), ((0, 0),)),))

    empty = Translation(("y", "z"), (Hypothesis("", (), -1.0, (), (), ()),), ("the translation is empty",))
    line = join([of("one."), empty, of("three.")], ["eins. ", "zwei leer. ", "drei."], "en", 1, sum)
    assert line.text == "one. three."
    assert line.n_best[0].word_alignment == ((0, 0), (3, 1))
    assert line.n_best[0].alignment == (0, 3)
    assert line.source_tokens == ("x", "y", "z", "x")
    assert line.notes == ("sentence 2 of 3: the translation is empty",)


def test_empty_alternatives_leave_no_white_space() -> None:
    part = Translation(("x",), (Hypothesis("A", ("A",), -1.0), Hypothesis("", (), -1.1)))
    other = Translation(("y",), (Hypothesis("B", ("B",), -1.0), Hypothesis("", (), -1.1)))
    texts = [one.text for one in join([part, other], ["a. ", "b."], "en", 4, sum).n_best]
    assert sorted(texts) == ["", "A", "A B", "B"]


def test_the_n_best_are_the_best_sums() -> None:
    first = Translation(("x",), tuple(Hypothesis(text, (text,), score) for text, score in (("a", -1.0), ("b", -1.5))))
    second = Translation(("y",), tuple(Hypothesis(text, (text,), score) for text, score in (("c", -2.0), ("d", -2.2))))
    joined = join([first, second], ["X. ", "Y."], "en", 3, sum)
    sums = sorted(
        ((-one.score - two.score, f"{one.text} {two.text}") for one, two in product(first.n_best, second.n_best))
    )
    assert [(one.text, -one.score) for one in joined.n_best] == [(text, cost) for cost, text in sums[:3]]


def test_many_sentences_and_hypotheses_are_joined_lazily() -> None:
    part = Translation(("x",), tuple(Hypothesis(str(n), (), -float(n)) for n in range(8)))
    joined = join([part] * 40, ["X. "] * 40, "en", 8, sum)
    assert [one.score for one in joined.n_best] == [0.0] + [-1.0] * 7


@pytest.mark.parametrize(
    ("space", "language", "expected"),
    [
        ("", "en", "a b"),
        ("", "zh", "ab"),
        (" ", "ja", "ab"),
        ("\u3000", "en", "a b"),
        ("\u3000\u3000", "ja", "a\u3000\u3000b"),
        ("\t\u2028", "de", "a  b"),
    ],
)
def test_white_space_between_sentences(space: str, language: str, expected: str) -> None:
    parts = [Translation(("x",), (Hypothesis(text, (text,), 0.0),)) for text in "ab"]
    assert join(parts, [f"X.{space}", "Y."], language, 1, sum).text == expected


def test_notes_name_the_sentence(tiny_model: Path) -> None:
    answer = with_search(tiny_model, beam=1).translate("ab. Üb. " + "c" * 30 + ".")
    assert "sentence 2 of 3: 2 unknown words: Ü, ." in answer.notes
    assert "sentence 3 of 3: cut to 23 of 31 tokens (the model's longest sentence)" in answer.notes
    assert answer.is_cut


def test_a_prefix_belongs_to_the_first_sentence(tiny_model: Path) -> None:
    translator = with_search(tiny_model, beam=2)
    line, rest = "Ab cd. Ef gh. Ij.", translator.translate("Ij.")
    assert translator.sentences(line, "one") == ["Ab cd. ", "Ef gh. ", "Ij."]
    answer = translator.translate(line, "one")
    assert answer.text.startswith("one")
    assert answer.text.endswith(rest.text)
    assert translator.sentences(line, "Eins zwei. Drei") == ["Ab cd. Ef gh. ", "Ij."]


def test_a_similarity_is_a_mean(tiny_model: Path) -> None:
    answer = with_search(tiny_model, method="mbr", samples=4).translate("ab. Cd. Ef.")
    assert 0 <= answer.score <= 100
