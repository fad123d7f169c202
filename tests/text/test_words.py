"""Words of tokens: every tokenizer, pieces that begin and split words, and what cleaning removes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.schema import OneTokenizer
from transformer_mt.text.cleaning import clean_text
from transformer_mt.text.codec import Segmenter
from transformer_mt.text.words import words_of_tokens

TEXT = [f"the tower is {word}, and the trees are {word} too" for word in ("old", "new", "tall", "small", "red")] * 4
RULES = CleaningConfig()


def segmenter(**values: object) -> Segmenter:
    made = Segmenter(TypeAdapter(OneTokenizer).validate_python(values), "en")
    made.train(TEXT)
    return made


@pytest.fixture(scope="module")
def pieces() -> Segmenter:
    return segmenter(kind="sentencepiece", vocab_size=50)


def words(of: Segmenter, line: str, rules: CleaningConfig | None = RULES) -> list[tuple[str, int | None]]:
    tokens = of.tokenize(clean_text(line, rules, "en") if rules else line)
    return list(zip(tokens, words_of_tokens(tokens, line, of, rules), strict=True))


def test_pieces_belong_to_the_word_that_they_split(pieces: Segmenter) -> None:
    found = words(pieces, "the  treetops, ah")
    assert "".join(token for token, word in found if word == 0) == "▁the"
    assert "".join(token for token, word in found if word == 1) == "▁treetops", "without its comma"
    assert "".join(token for token, word in found if word == 2).lstrip("▁") == "ah"


def test_punctuation_alone_is_a_word(pieces: Segmenter) -> None:
    assert [word for token, word in words(pieces, "the , tower") if "," in token] == [1]
    assert [word for token, word in words(pieces, "the tower,") if "," in token] == [None]


def test_a_character_in_bytes_counts_once() -> None:
    spelled = segmenter(kind="sentencepiece", vocab_size=320, byte_fallback=True)
    found = [(token, word) for token, word in words(spelled, "the 한국 tower") if "<0x" in token]
    assert [word for _, word in found if word is not None] == [1, 1]
    assert [word for token, word in words(spelled, "한 tower") if "t" in token][:1] == [1]


@pytest.mark.parametrize("kind", ["whitespace", "character", "soynlp", "spacy"])
def test_every_tokenizer_finds_the_words(kind: str) -> None:
    found = words(segmenter(kind=kind), "the tower is old, and new")
    texts = ["".join(token for token, word in found if word == n) for n in range(6)]
    assert [text.strip("￭▁,") for text in texts] == ["the", "tower", "is", "old", "and", "new"]


def test_lower_case_and_removed_characters_do_not_move_words() -> None:
    lowered = segmenter(kind="character", case="lower")
    assert [word for token, word in words(lowered, "İ THE") if token in "the"] == [1, 1, 1]
    line = "a\u200b \u200b b\u00a0c"  # the second word is only a zero-width space
    found = words(segmenter(kind="character"), line)
    assert [(token, word) for token, word in found if token in "abc"] == [("a", 0), ("b", 2), ("c", 3)]


def test_a_line_that_was_cut_keeps_its_first_words(pieces: Segmenter) -> None:
    tokens = pieces.tokenize(TEXT[0])
    assert words_of_tokens(tokens[:5], TEXT[0], pieces) == words_of_tokens(tokens, TEXT[0], pieces)[:5]


@given(line=st.text(max_size=30))
def test_any_line_gives_places_in_order(pieces: Segmenter, line: str) -> None:
    places = [word for _, word in words(pieces, line) if word is not None]
    assert places == sorted(places)
    assert all(0 <= place < len(line.split()) for place in places)


def test_nothing_has_no_words(pieces: Segmenter, tmp_path: Path) -> None:
    assert words_of_tokens([], "", pieces) == []
    assert words_of_tokens([], " \n", pieces, RULES) == []
