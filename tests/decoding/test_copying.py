"""Addresses, placeholders and numbers: what the model writes by itself, and what the search must write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding import interpreter
from transformer_mt.decoding.copying import faults, lacks_markup, notes_of_copies, notes_of_markup, uncut, with_copies
from transformer_mt.decoding.glossary import Glossary
from transformer_mt.decoding.translation import Hypothesis, Translation
from transformer_mt.decoding.translator import Translator
from transformer_mt.text.sentences import sentences


@pytest.mark.parametrize(
    ("text", "copies", "has_them"),
    [
        ("Der Bericht {{user}} fehlt.", ["{{user}}"], True),
        ("{{user}} {{user}}", ["{{user}}"], False),
        ("5 und 5", ["5", "5"], True),
        ("Datei %s und %d", ["%s"], False),
        ("siehe https://a.example/c.", ["https://a.example/c"], True),
        ("siehe https://a.example/c/d", ["https://a.example/c"], False),
        ("siehe https://a.example/c und https://b.example", ["https://a.example/c"], False),
        ("15 Äpfel", ["5"], False),
        ("2,5 kg", ["2"], False),
        ("12.5 kg", ["2.5"], False),
        ("um 2.5 kg.", ["2.5"], True),
        ("사과 5개를 {name}님", ["5", "{name}"], True),
        ("", ["5"], False),
        # parts of others
        ("Seite %1$s", ["1", "%1$s"], False),
        ("Seite 1 von %1$s", ["1", "%1$s"], True),
        ("siehe https://a.example/5", ["5", "https://a.example/5"], False),
        ("${x}", ["{x}", "${x}"], False),
        ("{{user}} {user}", ["{{user}}"], False),
        ("https://a.example/c und https://a.example", ["https://a.example/c"], False),
        # other numbers
        ("-5 Grad", ["5"], False),
        (".5 kg", ["5"], False),
        ("10-5", ["-5"], False),
        ("bei -5 Grad", ["-5"], True),
        # what touches a copy in the line may touch it in the translation
        ("{done}/{total} Dateien", ["{done}", "{total}"], True),
        ("v{version} in {n}px, %d+, vor {n}s", ["{version}", "{n}", "%d", "{n}"], True),
        ("{user}@{host}: \\frac{a}{b}", ["{user}", "{host}", "{a}", "{b}"], True),
        # signs that make another placeholder of it
        ("${{name}", ["{name}"], False),
        ("{name}}", ["{name}"], False),
        ("%%s", ["%s"], False),
        ("${name} %{name}", ["${name}", "%{name}"], True),
    ],
)
def test_a_translation_has_its_copies_as_often_as_the_line(text: str, copies: list[str], has_them: bool) -> None:
    own = Translation((), (Hypothesis(text, (), 0.0),))
    assert (faults(own, copies) == (0, 0)) is has_them
    if has_them:
        others = (*own.n_best, Hypothesis("other", (), -1.0), Hypothesis(f"o {text}", (), -2.0))
        found = with_copies(replace(own, n_best=others), copies)
        assert found is not None
        assert [one.text for one in found.n_best] == [text, f"o {text}"], "a worse one that is wrong changes nothing"


@pytest.mark.parametrize(
    ("text", "copies", "right"),
    [
        ("siehe https://a.example/4.", ["https://a.example/45"], "siehe https://a.example/45."),
        ("%s Hunde", ["%d"], "%d Hunde"),
        ("an a@b.exampl und {nam}", ["a@b.example", "{name}"], "an a@b.example und {name}"),
        ("{{ a }} da", ["{{ b }}"], "{{ b }} da"),
        ("{ {x}} da", ["{{x}}"], "{ {{x}} da"),
        ("%d Hunde %d", ["%d", "%s"], "%d Hunde %s"),  # the one that stands where the line has the other
        ("https://a.b/1 https://a.b/1", ["https://a.b/2", "https://a.b/1"], "https://a.b/2 https://a.b/1"),
        # which one is which?
        ("Hunde", ["%d"], None),
        ("{x} und {y}", ["{a}", "{b}"], None),
        ("{x} und {y}", ["{a}"], None),
        ("%d %d %d", ["%d", "%s"], None),
        ("siehe {x}", ["https://a.example"], None),
        ("{{ a.b }} da", ["{{a.b}}"], None),  # another number of words: links would be wrong
        ("%d und 7", ["%s", "8"], None),
    ],
)
def test_a_misspelled_copy_is_put_right(text: str, copies: list[str], right: str | None) -> None:
    own = Translation((), (Hypothesis(text, (), 0.0), Hypothesis(f"o {text}", (), -1.0), Hypothesis(text, (), -2.0)))
    found = with_copies(own, copies)
    assert (found and [one.text for one in found.n_best]) == (right and [right, f"o {right}"])
    assert with_copies(own, copies, "a prefix") is None


@pytest.mark.parametrize("align", [False, True])
def test_what_the_model_copies_by_itself_is_not_forced(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, align: bool
) -> None:
    translator, asked = Translator.load([tiny_model]), []
    free = Translation(("x",), (Hypothesis("der Bericht {x} fehlt", (), 0.0),), ("a note",))
    bound = Translation(("x",), (Hypothesis("7 Bericht", (), 0.0),))

    def answer(_: Translator, sources: Sequence[Any], align: bool) -> list[Translation]:
        asked.append(([source.bound is not None for source in sources], align))
        return [bound if source.bound is not None else free for source in sources]

    monkeypatch.setattr(Translator, "_answer", answer)
    lines = ["a {x}", "a 7", "a {x} dog"]
    translator.translate(lines[0], terms=Glossary({}), align=align)
    assert asked == [([True], align)], "the model does not know the brackets"
    asked.clear()
    monkeypatch.setattr(interpreter, "UNK", -1)
    found = list(translator.translate(lines, terms=Glossary({}), align=align))
    assert found == [free, bound, free]
    assert asked == [([False, False, False], align), ([True], align)], "the second time, only what lacks its copy"
    asked.clear()
    long = f"{{x}} {'a dog ' * 200}"
    translator.translate(long, terms=Glossary({}), align=align, split=False)
    assert asked == [([True], align)], "the line is cut without a stand-in, which may be shorter"
    asked.clear()
    translator.translate(lines[0], "der", terms=Glossary({}), align=align)
    assert asked == [([True], align)], "a prefix may have copies already"


@pytest.mark.parametrize(
    ("line", "text", "notes"),
    [
        ("50 % der Hunde", "50 % of the dogs", []),
        ("{n} Hunde auf https://a.example/b.", "{n} dogs on https://a.example/b", []),
        ("%d und %d", "%d", ["the translation lacks %d"]),
        ("%d Hunde", "%s dogs", ["the translation lacks %d", "the translation has %s, which the line does not have"]),
        ("Hunde", "dogs@mail.example", ["the translation has dogs@mail.example, which the line does not have"]),
        ("{a}{b} {c} {d} {e} {f}", "", ["the translation lacks {a}, {b}, {c}, {d}, {e}, ..."]),
        ("www.a.example", "www.", ["the translation lacks www.a.example"]),
        ("%3d von %s", "%s von %3d", ["the translation has another order: %s, %3d"]),
        ("%s von %d", "%d von %s", ["the translation has another order: %d, %s"]),
        ("{s} von %2$d %1$s", "%1$s %2$d von {s}", []),
        ("{{ a\x1bb }}", "", ["the translation lacks {{ a\N{REPLACEMENT CHARACTER}b }}"]),
    ],
)
def test_a_lost_copy_and_one_that_is_made_up_are_noted(line: str, text: str, notes: list[str]) -> None:
    assert list(notes_of_copies(line, text)) == notes
    assert not lacks_markup(notes)


@pytest.mark.parametrize(
    ("line", "text", "notes"),
    [
        ("Der <b>Hund</b><br/> {n}", "the <b>dog</b>", ["the translation lacks <br>"]),
        ('<a href="b c">Hund</a> <0>d</0>', "dog", ["the translation lacks <a>, </a>, <0>, </0>"]),
        ("Hund", "the <em>dog", ["the translation has <em>, which the line does not have"]),
        ("<b>a</b>", "</b>a<b>", ["the translation has another order: </b>, <b>"]),
        ("<b>a</b> <i>b</i>", "<i>b</i> <b>a</b>", []),
        ("<bold>a</bold>", "a", ["the translation lacks <bold>, </bold>"]),
        # the same in another spelling, and what is no tag
        ("<B>a</B><br /> <g id='1'/>", '<b>a</b><br> <g id="1"/>', []),
        ('<a href="/de/x">x</a>', '<a href="/en/x">x</a>', []),
        ("a < b > c, <3, x<y, <b and c>, <b and c = d>, List<String>, <Enter>, <P>", "a", []),
        ("<video controls>x</video> <option selected>", "<video controls>y</video> <option selected>", []),
        ('<x id="1"/> <g/>', "", ["the translation lacks <x>, <g>"]),
        # choices between texts
        ("{n,plural,one {# Hund} other {# Hunde}}", "{N, plural, other {# dogs}}", []),
        ("{n, plural, one {# Hund} other {# Hunde}}", "dogs {n}", ["the translation lacks {n, plural}"]),
        ("{n, plural, =0 {x} other {y}}", "{n, plural, other {# {y}", ["the translation lacks {n, plural, =0}"]),
    ],
)
def test_tags_and_choices_that_are_lost_are_noted(line: str, text: str, notes: list[str]) -> None:
    assert list(notes_of_markup(line, text)) == notes
    assert lacks_markup(notes) == any("lacks" in note for note in notes)


LINES = ("a dog {x} and %d", "https://a.example/b?c=1", "a dog", "the cat. mail a@b.example", "%d %d cats")


@pytest.mark.parametrize("beam", [1, 4])
def test_addresses_and_placeholders_are_copied_without_a_glossary(tiny_model: Path, beam: int) -> None:
    """This model knows neither; what has no copies is translated as ever, and so are several sentences on a line."""
    translator = Translator.load([tiny_model], DecodingConfig(beam=beam, n_best=beam))
    found = list(translator.translate(LINES, align=True))
    for line, translation in zip(LINES, found, strict=True):
        for hypothesis in translation.n_best:
            assert not list(notes_of_copies(line, hypothesis.text))
        assert not any("lacks" in note for note in translation.notes)
    assert found[1].text == LINES[1]
    assert found[2].text == translator.translate("a dog").text
    after_prefix = translator.translate(LINES[0], "the {x}")
    assert (after_prefix.text.count("{x}"), after_prefix.text.count("%d")) == (1, 1)


def test_what_a_search_cannot_copy_is_noted(tiny_model: Path) -> None:
    translator = Translator.load([tiny_model], DecodingConfig(method="sample"))
    found = list(translator.translate(LINES))
    assert [any("the translation lacks" in note for note in one.notes) for one in found] == [1, 0, 0, 1, 1]
    assert found[1].text == LINES[1], "a line of copies alone needs no search"


def test_only_lines_that_lack_their_copies_are_searched_again(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator, asked = Translator.load([tiny_model]), []

    def answer(_: Translator, sources: Sequence[Any], align: bool) -> list[Translation]:
        asked.append([source.line for source in sources])
        return [Translation(("x",), (Hypothesis("or {x}", (), 0.0),))] * len(sources)

    monkeypatch.setattr(Translator, "_answer", answer)
    lines = ["a {x}", "a dog", "a {x} {x}", "a {x} %d", "a {y}"]
    found = list(translator.translate(lines))
    assert [one.text for one in (found[0], found[1], found[4])] == ["or {x}", "or {x}", "or {y}"]
    assert [len(one.notes) for one in (found[0], found[1], found[4])] == [0, 1, 0]
    assert asked[0] == lines
    assert len(asked[1]) == 2
    assert not any("{" in line or "%" in line for line in asked[1]), "the model reads stand-ins"


def test_a_glossary_may_translate_an_address(tiny_model: Path) -> None:
    terms = Glossary({"https://de.a.example": "https://en.a.example"})
    found = Translator.load([tiny_model]).translate("see https://de.a.example and {x}", terms=terms)
    assert ("https://en.a.example" in found.text, "{x}" in found.text, "de.a" in found.text) == (True, True, False)


def test_characters_written_as_in_html_are_characters_of_copies_too(tiny_model: Path) -> None:
    """A model whose training text was cleaned so knows no entities; its user may paste some."""
    translator = Translator.load([tiny_model])
    line = "see https://a.example/?b=1&amp;c=2 and &#123;x&#125;"
    assert "&amp;" in translator.translate(line).text
    data = translator.config.data.model_copy(update={"cleaning": CleaningConfig(entities=True)})
    translator.config = translator.config.model_copy(update={"data": data})
    spaced = translator.translate("see&nbsp;the&#32;dog", align=True).n_best[0].word_alignment
    assert all(source == 0 for source, _ in spaced or ()), "users count one word"
    text = translator.translate(line).text
    assert ("https://a.example/?b=1&c=2" in text, "{x}" in text, "&amp;" in text) == (True, True, False)


def test_unknown_tokens_of_a_copy_are_not_noted(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny model knows no brackets, and no question mark."""
    translator = Translator.load([tiny_model])
    answer = Translator._answer

    def copying(self: Translator, sources: Sequence[Any], align: bool) -> list[Translation]:
        found = answer(self, sources, align)
        return [replace(one, n_best=(replace(one.n_best[0], text="dog {x}"),)) for one in found]

    monkeypatch.setattr(Translator, "_answer", copying)
    after_prefix = translator.translate("a dog? {x}", "? {x}", split=False).notes
    assert any("prefix" in note for note in after_prefix)
    found = translator.translate("a dog? {x}", split=False)
    assert [note for note in found.notes if "unknown" in note] == ["1 unknown word: ?"]


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [("{x} or", "{x} %s", 0), ("or", "{x}", 1), ("{y}", "{y}", 0), ("or", "{x}}} %s %s", 1)],
)
def test_the_second_search_must_have_fewer_faults(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str, kept: int
) -> None:
    texts = iter([first, second])

    def answer(_: Translator, sources: Sequence[Any], align: bool) -> list[Translation]:
        return [Translation(("x",), (Hypothesis(next(texts), (), 0.0),))]

    monkeypatch.setattr(Translator, "_answer", answer)
    found = Translator.load([tiny_model]).translate("a {x} b %d {z}", split=False)
    assert found.text == (first, second)[kept]
    assert found.notes[0].startswith("the translation lacks")


def test_what_is_made_up_beside_copies_of_a_glossary_is_noted(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(_: Translator, sources: Sequence[Any], align: bool) -> list[Translation]:
        return [Translation(("x",), (Hypothesis("7 %s", (), 0.0),), ("without the term {x}",))] * len(sources)

    monkeypatch.setattr(Translator, "_answer", answer)
    found = Translator.load([tiny_model]).translate("a {x} 7", terms=Glossary({}))
    assert found.notes == ("without the term {x}", "the translation has %s, which the line does not have")


@pytest.mark.parametrize("terms", [None, {"dog": "hund"}, {"cat": "hund"}])
@pytest.mark.parametrize("line", ["the <i>dog</i>", "a <b>dog</b> and {x}", "a <br/> dog 2"])
def test_a_lost_tag_is_noted_with_and_without_a_glossary(
    tiny_model: Path, line: str, terms: dict[str, str] | None
) -> None:
    translator = Translator.load([tiny_model], DecodingConfig(beam=4))
    notes = translator.translate(line, terms=terms).notes
    assert len([note for note in notes if note.startswith("the translation lacks <")]) == 1
    assert len(notes) == len({*notes})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("It was saved.<br/>Please open it.", ["It was saved.<br/>Please open it."]),
        ("It was saved.\\nPlease open it.", ["It was saved.\\nPlease open it."]),
        ("<b>Saved.</b> Open it now.", ["<b>Saved.</b> ", "Open it now."]),
        ("<p>Three is. Four is.</p> Five is good.", ["<p>Three is. Four is.</p> ", "Five is good."]),
        ("<p>One is.</p><p>Two is.</p>", ["<p>One is.</p>", "<p>Two is.</p>"]),
        (f"<p>Three is. {'x' * 200}.</p> Five", ["<p>Three is. ", f"{'x' * 200}.</p> ", "Five"]),
        ("Hi. {n, plural, one {One. Two.} other {All. No.}} Bye now.",
         ["Hi. ", "{n, plural, one {One. Two.} other {All. No.}} Bye now."]),
        ("See {{ a. B }}. Then go.", ["See {{ a. B }}. ", "Then go."]),
        ("It was <i>saved. </i>", ["It was <i>saved. </i>"]),
        ("It was saved. Open it.<br/>", ["It was saved. ", "Open it.<br/>"]),
        ("Hello <b>", ["Hello <b>"]),
        ("Saved. Open it.\\n", ["Saved. ", "Open it.\\n"]),
    ],
)  # fmt: skip
def test_a_line_is_not_cut_where_markup_would_lose_its_place(line: str, expected: list[str]) -> None:
    assert sentences(line, "en", uncut(line)) == expected


@pytest.mark.parametrize("between", ["<br/>", "\\n", " <br> ", "<p>", "</p><p>"])
def test_a_long_line_is_cut_at_tags_too(between: str) -> None:
    line = between.join(["The file was saved."] * 100)
    parts = sentences(line, "en", uncut(line))
    assert "".join(parts) == line
    assert len(parts) >= 2
    assert max(map(len, parts)) < 300
