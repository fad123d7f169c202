"""Glossary files, and the terms that are found in a line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.growth import CONSTANT, assert_grows
from transformer_mt.decoding.glossary import Glossary, GlossaryCount, _ends_word
from transformer_mt.decoding.terms import Term
from transformer_mt.errors import TmtError


def found(line: str, **entries: str) -> list[tuple[str, str]]:
    return [tuple(term) for term in Glossary(entries or {"Katze": "feline"}).terms(line)]


def copied(line: str) -> list[str]:
    return [source for source, _ in found(line)]


@pytest.mark.parametrize(
    ("content", "problem", "line"),
    [
        ("Hund\tdog\nKatze cat\n", "1 column, not 2", 2),
        ("Hund\tdog\tnoun\n", "3 columns", 1),
        ("# comment\n\nHund\t\n", "translation is empty", 3),
        ("\tdog\n", "term is empty", 1),
        ("Hund\tdog\nHund\tdog\nHund\thound\n", "another translation in .*terms.tsv:1", 3),
    ],
)
def test_a_malformed_row_is_refused_with_its_line(tmp_path: Path, content: str, problem: str, line: int) -> None:
    file = tmp_path / "terms.tsv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(TmtError, match=problem) as error:
        Glossary.load(file)
    assert error.value.place == f"{file}:{line}"


def test_a_file_with_comments_is_read(tmp_path: Path) -> None:
    file = tmp_path / "terms.tsv"
    file.write_bytes("\ufeff# animals\r\nHund\tdog\r\n\r\nrote  Katze\tred cat\r\n".encode())
    assert Glossary.load(file).entries == {"Hund": "dog", "rote Katze": "red cat"}
    file.write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(TmtError, match="no terms"):
        Glossary.load(file)


def test_terms_are_whole_words_and_the_longest_first() -> None:
    entries = {"Katze": "feline", "rote Katze": "ginger", "klein": "tiny"}
    assert found("Eine rote Katze und eine Katze.", **entries) == [("rote Katze", "ginger"), ("Katze", "feline")]
    assert found("Katzen, Hauskatze, Katzenklappe, kleine", **entries) == []
    assert found("Klein und klein, nie Klein", **entries) == [("Klein", "tiny"), ("klein", "tiny")]
    lower = Glossary({"katze": "feline"}, ignore_case=True)
    assert [term.source for term in lower.terms("Die KATZE")] == ["KATZE"]


def test_a_first_letter_may_be_upper_case_where_a_sentence_begins() -> None:
    begins = ("Er ist da. Klein ist er.", "Was? „Klein“", "(Klein)", "- Klein", "1. Klein", "Ja! Klein.", "„Ja.“ Klein")
    for line in begins:
        assert ("Klein", "tiny") in found(line, klein="tiny"), line
    for line in (
        "Er heißt Klein.",
        "Nie Klein",
        "Herr (Klein)",
        "z.B.Klein",
        "Dr. Klein",
        "am 3. Klein",
        "z. B. Klein",
    ):
        assert ("Klein", "tiny") not in found(line, klein="tiny"), line


def test_at_the_beginning_of_a_sentence_a_term_in_its_own_case_comes_first() -> None:
    rows = [("turkey", "Truthahn"), ("Turkey", "Türkei")]
    for entries in (dict(rows), dict(reversed(rows))):
        assert found("Turkey eats turkey.", **entries) == [("Turkey", "Türkei"), ("turkey", "Truthahn")]


def test_a_sentence_may_begin_after_the_signs_of_other_scripts() -> None:
    for term, line in (
        ("βιβλίο", "Τι κάνεις; Βιβλίο αγόρασα."),
        ("գիրք", "Բարև։ Գիրք տուր։"),
        ("yes", "نعم؟ Yes"),
    ):
        assert Glossary({term: "x"}).terms(line), line
    assert not Glossary({"buch": "x"}).terms("ja; Buch")


def test_turkish_has_two_letters_i() -> None:
    glossary = Glossary({"iyi": "good", "ısparta": "Isparta"})
    assert [term.source for term in glossary.terms("İyi günler. Isparta güzel.")] == ["İyi", "Isparta"]
    assert not glossary.terms("bir İyi ve Isparta")
    assert Glossary({"istanbul": "x"}, ignore_case=True).terms("bir İSTANBUL")
    both = Glossary({"sınır": "border", "sinir": "nerve"}, ignore_case=True)
    assert [term.target for term in both.terms("Bu sinir, bu sınır, bu SİNİR")] == ["nerve", "border", "nerve"]


def test_a_joiner_is_inside_a_word() -> None:
    glossary = Glossary({"دانش": "knowledge", "دانش‌آموز": "student"})
    assert [term.target for term in glossary.terms("دانش‌آموز با دانش")] == ["student", "knowledge"]
    assert not Glossary({"آموز": "x"}).terms("دانش‌آموز")


def test_digits_of_other_scripts_are_not_copied() -> None:
    """They would be strange in most translations."""
    assert Glossary({}).terms("٣٬٥٠٠ कल ५ बजे 12,5") == [Term("12,5", "12,5")]


def test_any_white_space_may_stand_between_the_words_of_a_term() -> None:
    entries = {"rote Katze": "ginger", "Katze": "feline"}
    for space in ("  ", "\u00a0", "\t", "\n "):
        assert found(f"Ä 3\u00a0000  die rote{space}Katze da.", **entries)[-1] == (f"rote{space}Katze", "ginger")


def test_a_file_with_quotes_around_its_columns_is_refused(tmp_path: Path) -> None:
    (file := tmp_path / "terms.tsv").write_text('"Hund"\t"dog"\n', encoding="utf-8")
    with pytest.raises(TmtError, match="both columns are in quotes"):
        Glossary.load(file)


def test_korean_particles_may_follow_a_term() -> None:
    assert found("AI는 3D를 AI기술", AI="KI", **{"3D": "3-D"}) == [("AI", "KI"), ("3D", "3-D")]
    assert ("3", "three") not in found("3일 동안", **{"3": "three"}), "일 is a particle, and here a day"
    entries = {"고양이": "feline", "학교": "academy"}
    for line in ("고양이는 자요.", "고양이들에게는 줘요.", "고양이, 개", "그 고양이"):
        assert found(line, **entries) == [("고양이", "feline")], line
    assert found("고양이털 길고양이 고양이발", **entries) == []
    assert found("학교에서 고양이를", **entries) == [("학교", "academy"), ("고양이", "feline")]


@pytest.mark.parametrize(
    ("entries", "line", "expected"),
    [
        ({"Müller": "Miller", "über": "on"}, "Über Köln: Müller, {ü} und 7", [("Über", "on"), ("Müller", "Miller")]),
        ({"고양이": "feline", "개": "hound"}, "그 고양이는 개를 봐요.", [("고양이", "feline"), ("개", "hound")]),
        ({"e": "x"}, "né e", [("e", "x")]),
    ],
)
def test_decomposed_letters_are_the_same_letters(
    entries: dict[str, str], line: str, expected: list[tuple[str, str]]
) -> None:
    """macOS writes NFD: 고양이 is nine characters there."""
    for form in ("NFC", "NFD"):
        glossary = Glossary({normalize(form, term): target for term, target in entries.items()})
        for written in ("NFC", "NFD"):
            terms = [term for term in glossary.terms(normalize(written, line)) if not term.is_copy]
            assert terms == [(normalize(written, source), target) for source, target in expected]
        assert [term.target for term in glossary.terms(normalize("NFD", "3만 원, 7 {é}")) if term.is_copy] == [
            "7",
            normalize("NFD", "{é}"),
        ]
    other = {"Müller": "a", normalize("NFD", "Müller"): "b"}
    with pytest.raises(TmtError, match="another translation"):
        Glossary(other)


def test_addresses_placeholders_and_numbers_are_copied() -> None:
    assert copied("Siehe https://a.example/b?c=1&d=%20x, oder (www.example.org).") == [
        *("https://a.example/b?c=1&d=%20x", "www.example.org")
    ]
    assert copied("https://a.example/b에서 a.b+c@mail.example.kr로") == ["https://a.example/b", "a.b+c@mail.example.kr"]
    assert copied("Hallo {name}, {{ja}} ${x} %s %1$d %(n)s %.2f!") == [
        *("{name}", "{{ja}}", "${x}", "%s", "%1$d", "%(n)s", "%.2f")
    ]
    assert copied("1.234,56 Euro um 12:30, $3.50, -5 Grad, 50% sicher, 3. Mai.") == [
        *("1.234,56", "12:30", "$3.50", "-5", "50", "3")
    ]
    assert copied("3개와 2024년, 3만 원") == ["3", "2024"], "3만 is 30,000: translated with its unit"
    assert copied("3천 명, 3 만 원, 17:40 만나요, 5,20 만큼") == ["17:40", "5,20"], "만나요 is a verb"
    assert copied("MP3 und A4") == [], "a letter beside a digit makes a word"
    assert found("Route 66 hat 66 Kilometer", **{"Route 66": "the old road"}) == [
        *(("Route 66", "the old road"), ("66", "66"))
    ]


def test_a_term_inside_an_address_stays_as_it_is() -> None:
    assert Glossary({"hund": "dog"}).terms("https://hund.example/hund hund") == [
        Term("https://hund.example/hund", "https://hund.example/hund"),
        Term("hund", "dog"),
    ]


def test_brackets_belong_to_an_address_in_pairs() -> None:
    assert copied("(https://a.example/{id}/b) https://a.example/f(x)[0], https://a.example/x{y}.") == [
        *("https://a.example/{id}/b", "https://a.example/f(x)[0]", "https://a.example/x{y}")
    ]


def test_entries_from_python_are_checked_as_those_of_a_file() -> None:
    wrong: list[tuple[Any, str]] = [
        ({"": "x"}, "the term is empty"),
        ({"Hund": " "}, "the translation is empty"),
        ({"Hund": 3}, "type int is not text"),
        ({None: "x"}, "None is not text"),
        ({"ein\nHund": "x"}, "line break"),
        ({"Hund": "\ud800"}, "surrogate"),
        ("Hund", "not a dict"),
    ]
    for entries, problem in wrong:
        with pytest.raises(TmtError, match=problem):
            Glossary(entries)
    with pytest.raises(TmtError, match="'hund' has another translation"):
        Glossary({"Hund": "dog", "hund": "hound"}, ignore_case=True)
    assert Glossary({}).terms("Hund {x}") == [Term("{x}", "{x}")]


def test_the_time_of_a_line_does_not_depend_on_the_size_of_the_glossary() -> None:
    """Even if all its entries begin with the same letter."""

    def glossary_of(size: int) -> Glossary:
        return Glossary(
            {f"h{number} {'wort' if number % 2 else 'w'}": "x" for number in range(size)} | {"고양이": "cat"}
        )

    glossaries = {size: glossary_of(size) for size in (500, 5_000, 20_000)}
    line = "h1 h77 wort hier h8 w 고양이에게 h7 hart und h9 heute"

    def work(size: int) -> None:
        for _ in range(100):
            found = glossaries[size].terms(line)
        assert [term.source for term in found] == ["h77 wort", "h8 w", "고양이"]

    assert_grows(work, 5_000, CONSTANT)  # with 20,000, 200 lines took 5 s when entries were found by their first letter


def test_terms_and_numbers_are_found_in_scripts_without_spaces() -> None:
    glossary = Glossary(dict.fromkeys(("医生", "图书馆", "图书", "AI", "หมอ", "データ"), "x"))
    for line, found in (
        ("昨天，一位医生在图书馆用AI写书。", ["医生", "图书馆", "AI"]),
        ("共有100人，2024年5月5日买3万个。", ["100", "2024", "5"]),
        ("ビッグデータは100円", ["データ", "100"]),
        ("เมื่อวานหมอมา ราคา100บาท", ["หมอ", "100"]),
        ("หมอ้", []),  # with a tone mark, it is another letter
        ("3หมื่น, 30多万, 2割引, ２０２３年, 3万", []),
        ("AIs MP3 100m", []),
    ):
        assert [term.source for term in glossary.terms(line)] == found


def test_a_long_line_without_spaces_takes_linear_time() -> None:
    glossary = Glossary({chr(0x4E00 + number) + chr(0x4E01 + number): "x" for number in range(20_000)})
    assert_grows(lambda size: glossary.terms("人大中文" * size), 2_500)  # 10,000 took 12 s with a quadratic time


@settings(max_examples=60)
@given(
    st.dictionaries(st.text("ab 고가-", min_size=1, max_size=5).filter(str.strip), st.just("x"), max_size=8),
    st.text("abAB 고가는-.", max_size=15),
    st.booleans(),
)
def test_terms_are_those_of_a_plain_search(entries: dict[str, str], line: str, ignore_case: bool) -> None:
    """Each term of the glossary at each start of a word, the longest first."""
    glossary = Glossary(entries, ignore_case)
    entries, line = dict(glossary.entries), re.sub(" +", " ", line)
    expected, end = [], 0
    for start in range(len(line)):
        if line[start].isspace() or (start and (line[start - 1].isalnum() or line[start - 1] == "_")):
            continue
        for term in sorted(entries, key=len, reverse=True):
            stop = start + len(term)
            if stop <= len(line) and glossary._same(term, line, start, stop) and _ends_word(term, line, stop):
                if start >= end:
                    expected.append(line[start:stop])
                    end = stop
                break
    assert [term.source for term in glossary.terms(line)] == expected


def test_a_line_may_have_very_many_terms() -> None:
    line = "1 cat " * 50_000  # with a time that grows with the square, this would take minutes
    terms = Glossary({"cat": "Katze"}).terms(line)
    assert len(terms) == 100_000
    assert terms[:2] == terms[-2:] == [Term("1", "1"), Term("cat", "Katze")]


def test_counts() -> None:
    count = GlossaryCount()
    for line in ("Hund 7 {x}", "", "Hund"):
        count.add(Glossary({"Hund": "hound"}).spans(line))
    assert str(count) == "glossary: 2 terms and 2 copies in 2 lines"


def test_a_file_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "g.tsv").write_text("Haus\tdwelling\n", encoding="utf-8")
    assert len(Glossary.load("~/g.tsv").entries) == 1
