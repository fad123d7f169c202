"""Each cleaning rule alone: what it changes, what it keeps, and which pairs it rejects."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.text.batches import keys_of_pairs
from transformer_mt.text.cleaning import (
    as_written,
    clean_text,
    fault_of_pair,
    wrongly_decoded,
)

DEFAULT = CleaningConfig()
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def rules(**changed: object) -> CleaningConfig:
    return CleaningConfig.model_validate(changed)


def keys_of_pair(source: str, target: str) -> Any:
    return keys_of_pairs([source], [target])[0]


@pytest.mark.parametrize(
    ("changed", "text", "clean"),
    [
        ({}, unicodedata.normalize("NFD", "한국 Köln"), "한국 Köln"),
        ({}, "Ａ", "Ａ"),
        ({"unicode": "NFKC"}, "Ａ①ﬁ", "A1fi"),
        ({"unicode": "off"}, "o\u0308", "o\u0308"),
        ({}, "a\u200bb\ufeffc\u00add\x07e\u200d", "abcde"),
        ({"control_characters": False}, "a\u200bb", "a\u200bb"),
        ({}, "  a\t b\u00a0c\u3000 d\r\n", "a  b c  d"),
        ({"whitespace": "collapse"}, "  a\t b\u00a0c\u3000 d\r\n", "a b c d"),
        ({"whitespace": "off"}, " a\tb\u00a0c\u2028d ", " a b\u00a0c d "),
        ({}, "ㅋㅋㅋㅋㅋㅋ", "ㅋㅋㅋㅋㅋㅋ"),
        ({"max_repeats": 2}, "ㅋㅋㅋㅋㅋㅋ 와  하하하하", "ㅋㅋ 와  하하"),
        ({"max_repeats": 2}, "10000원 ㅋㅋㅋ", "10000원 ㅋㅋㅋ"),
        ({"max_repeats": 5}, "ㅋㅋㅋㅋ", "ㅋㅋㅋㅋ"),
        ({}, "R&amp;D", "R&amp;D"),
        ({"entities": True}, "R&amp;D &quot;a&#39;b&quot;&nbsp;&ntilde; &#xac00;&#8203;", 'R&D "a\'b" ñ 가'),
        ({"entities": True}, "R&amp;amp;D", "R&D"),
        ({"entities": True}, "AT&T; a&b; &copy 3 & 4; &unknown;", "AT&T; a&b; &copy 3 & 4; &unknown;"),
    ],
)
def test_a_rule_changes_this_and_no_more(changed: dict[str, object], text: str, clean: str) -> None:
    assert clean_text(text, rules(**changed), "ko") == clean


def test_repeats_are_shortened_in_korean_alone() -> None:
    assert clean_text("oooooh", rules(max_repeats=2), "en") == "oooooh"


@pytest.mark.parametrize(("short", "long"), [("fa", "fas"), ("hi", "hin"), ("si", "sin"), ("ko", "kor"), ("gu", "guj")])
def test_a_language_may_have_three_letters(short: str, long: str) -> None:
    rules = CleaningConfig(max_repeats=2)
    for text in ("می\u200cخواهم", "ㅋ" * 9):
        assert clean_text(text, rules, short) == clean_text(text, rules, long)
    assert ("\u200c" in clean_text("می\u200cخواهم", rules, short)) == (short != "ko")


def test_emoji_that_a_joiner_makes_one_stay_one() -> None:
    family = "👨\u200d👩\u200d👧 und ❤\ufe0f\u200d🔥 🐈\u200d⬛ 🙂\u200d↔\ufe0f"
    assert clean_text(family, DEFAULT, "de") == family
    assert clean_text("a\u200d👧 👧\u200db a\u200db", DEFAULT, "de") == "a👧 👧b ab"


@pytest.mark.parametrize("language", ["fa", "pes", "prs", "hi", "npi", "ory", "awa", "mni", "azb"])
def test_joiners_stay_also_by_the_codes_of_flores(language: str) -> None:
    assert clean_text("می\u200cشناسد", DEFAULT, language) == "می\u200cشناسد"


def test_joiners_stay_in_languages_that_spell_with_them() -> None:
    assert clean_text("می\u200cخواهم", DEFAULT, "fa") == "می\u200cخواهم"
    for language in ("as", "or", "sa", "ku", "ug"):
        assert clean_text("ক\u09cd\u200dষ\u200b", DEFAULT, language) == "ক\u09cd\u200dষ"
    assert clean_text("a\u200cb\u200b", DEFAULT, "en") == "ab"


@given(text=texts, unicode=st.sampled_from(["NFC", "NFKC", "off"]), spaces=st.sampled_from(["trim", "collapse", "off"]))
def test_clean_text_is_one_line_and_stays_clean(text: str, unicode: str, spaces: str) -> None:
    config = rules(unicode=unicode, whitespace=spaces)
    clean = clean_text(text, config, "en")
    assert len(clean.splitlines()) <= 1
    assert "\t" not in clean
    assert clean_text(clean, config, "en") == clean


@pytest.mark.parametrize("unicode", ["NFC", "NFKC", "off"])
def test_a_reference_as_written_differs_only_in_what_nobody_sees(unicode: str) -> None:
    umlaut = "o\u0308" if unicode == "off" else "\u00f6"
    config = rules(unicode=unicode, whitespace="collapse", max_repeats=2)
    assert (
        as_written("Ko\u0308ln\u200b  \u00bd \u200eㅋㅋㅋㅋㅋ\u200f", config, "ko") == f"K{umlaut}ln  \u00bd ㅋㅋㅋㅋㅋ"
    )
    assert as_written("می\u200cخواهم", config, "fa") == "می\u200cخواهم"
    assert as_written("a\u200bb", rules(control_characters=False), "en") == "a\u200bb"


@given(text=texts)
def test_with_all_rules_off_words_stay_as_they_are(text: str) -> None:
    off = rules(unicode="off", control_characters=False, whitespace="off")
    assert clean_text(text, off, "ko").split() == text.split()


def test_a_side_of_white_space_is_a_fault_in_every_split() -> None:
    for trains in (True, False):
        assert fault_of_pair("", "a", rules(), trains) == "empty side"
        assert fault_of_pair("a", " \u3000", rules(), trains) == "empty side"
        assert fault_of_pair("a", "b", rules(), trains) is None
    assert fault_of_pair("a", "a", rules(), trains=False) is None


def test_each_rule_that_changes_a_sentence_is_noted() -> None:
    noted: list[str] = []
    assert clean_text("Cafe\u0301\u200b  ㅋㅋㅋㅋㅋ", rules(max_repeats=2), "ko", noted.append) == "Café  ㅋㅋ"
    assert noted == ["control characters", "NFC", "repeats"]
    assert clean_text("a b", rules(), "ko", noted.append) == "a b"
    assert clean_text("a\tb ", rules(), "ko", noted.append) == "a b"
    assert noted[3:] == ["white space"]
    assert clean_text("&amp;", rules(entities=True), "ko", noted.append) == "&"
    assert noted[4:] == ["entities"]


@pytest.mark.parametrize(
    ("changed", "source", "target", "fault"),
    [
        ({}, "a", "b", None),
        ({}, "a", "a", "identical sides"),
        ({"identical": False}, "a", "a", None),
        ({"max_characters": 3}, "abc", "d", None),
        ({"max_characters": 3}, "a", "abcd", "too many characters"),
    ],
)
def test_faults_of_a_pair(changed: dict[str, object], source: str, target: str, fault: str | None) -> None:
    assert fault_of_pair(source, target, rules(**changed), trains=True) == fault


def test_pair_keys_distinguish_pairs() -> None:
    assert keys_of_pair("a", "b") == keys_of_pair("a", "b")
    assert len({keys_of_pair(*pair)["pair"] for pair in (("a", "b"), ("b", "a"), ("ab", ""), ("A", "b"))}) == 4


def test_leaks_are_the_same_sentence_to_a_reader() -> None:
    leak = keys_of_pair("Ein Hund.", "A dog.")["leak"]
    assert leak == keys_of_pair("ein  Hund", "A dog !")["leak"]
    assert leak != keys_of_pair("ein Hund", "the dog")["leak"]
    assert keys_of_pair("Ein Hund.", "A dog.")["source"] == keys_of_pair("ein hund", "the dog")["source"]
    assert keys_of_pair("Ein Hund.", "A dog.")["target"] == keys_of_pair("der Hund", "a dog")["target"]
    assert keys_of_pair("?", "a")["leak"] != keys_of_pair("!", "a")["leak"]  # there is only punctuation to compare
    assert keys_of_pair("ab", "c")["leak"] != keys_of_pair("a", "bc")["leak"]


@pytest.mark.parametrize(
    "text",
    ["Das MÃ¤dchen", "Itâ€™s late", "l\u00c3\u00a9t\u00c3\u00a9", "wei\ufffd", "ÐŸÑ€Ð¸Ð²ÐµÑ‚", "ì•ˆë…•", "5 Â°C"],
)
def test_wrongly_decoded_letters_are_found(text: str) -> None:
    assert wrongly_decoded(text)


@pytest.mark.parametrize(
    "text",
    ["»Spaß«", "«CAFÉ»", "JOÃO", "Das Mädchen", "It’s late", "Привет", "안녕", "À «Âne»", "ÑANDÚ – España", "5 °C"],
)
def test_letters_with_accents_are_not_taken_for_wrong_ones(text: str) -> None:
    assert not wrongly_decoded(text)


def test_vowel_signs_and_tones_make_other_words() -> None:
    for one, other in (("ไม่", "ไม้"), ("मिल", "मेल"), ("ခါ", "ခေါ")):
        assert keys_of_pair(one, "x")["leak"] != keys_of_pair(other, "x")["leak"]
    assert keys_of_pair("שָׁלוֹם!", "x")["leak"] == keys_of_pair("שלום", "x")["leak"]  # most writers omit these points
