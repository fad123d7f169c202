"""More merges for a BPE model: what is learned, and that the old model goes on as before."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.text.tokenizers.more_merges import more_pieces
from transformer_mt.text.tokenizers.sentencepiece import SentencepieceTokenizer

OLD = ["a cat sat on a mat", "a rat sat on a cat", "the cat and the rat", "that mat, that hat"] * 5
NEW = ["the hatter chats at the théâtre in 1984!", "a chatter at théâtres, in 1985!"] * 3


def _trained() -> SentencepieceTokenizer:
    tokenizer = SentencepieceTokenizer(SentencepieceTokenizer.Options(kind="sentencepiece", vocab_size=32), "en")
    tokenizer.train(OLD)
    return tokenizer


def test_the_most_frequent_neighbours_are_merged_first() -> None:
    # Sennrich et al. 2016: low 5, lower 2, newest 6, widest 3; without their end-of-word mark
    words = {tuple("low"): 5, tuple("lower"): 2, tuple("newest"): 6, tuple("widest"): 3}
    found = more_pieces(words, "lowernstid", 4, 16)
    assert found == ["es", "est", "lo", "low"]


def test_unknown_characters_come_first_and_rare_ones_stay_unknown() -> None:
    assert more_pieces({("a", "é"): 3, ("a", "ñ"): 1, ("é", "a"): 1}, ["a"], 9, 16) == ["é", "aé"]


def test_a_piece_has_letters_or_digits_or_other_characters_and_is_not_too_long() -> None:
    words = {("a", "1"): 9, ("1", "9"): 8, ("a", ","): 7, ("▁", "a"): 6, ("aaaa", "aaaa"): 5}
    assert more_pieces(words, ["a", "1", "9", ",", "▁", "aaaa"], 9, 7) == ["19", "▁a"]


def test_old_ids_stay_and_new_pieces_shorten_new_text() -> None:
    old, tokenizer = _trained(), _trained()
    found = tokenizer.extend(NEW, 20)
    assert 0 < len(found) <= 20
    assert tokenizer.inventory() == [*old.inventory(), *found]
    assert sum(len(tokenizer.tokenize(text)) for text in NEW) < sum(len(old.tokenize(text)) for text in NEW)
    assert "é" in found
    assert "é" not in old.inventory()
    letters = {piece for piece in old.inventory() if len(piece) == 1}
    spelled = [piece for piece in found if set(piece) <= letters]
    assert spelled
    assert all("".join(old.parts(piece)) == piece for piece in spelled)


@given(st.lists(st.sampled_from(["the", "hatter", "chats", "mat", "in", "chat", "trend"]), min_size=1, max_size=6))
def test_extended_pieces_are_lossless_and_split_the_old_pieces_no_further(words: list[str]) -> None:
    text = " ".join(words)
    tokens = EXTENDED.tokenize(text)
    assert EXTENDED.detokenize(tokens) == text
    ends = list(accumulate(map(len, ORIGINAL.tokenize(text))))
    assert set(accumulate(map(len, tokens))) <= set(ends)


def test_digits_stay_apart_where_the_old_model_splits_them() -> None:
    options = SentencepieceTokenizer.Options(kind="sentencepiece", vocab_size=32, split_digits=True)
    tokenizer = SentencepieceTokenizer(options, "en")
    tokenizer.train(OLD)
    found = tokenizer.extend([f"{text} 1984m" for text in NEW], 40)
    assert {"1", "9", "8", "4"} <= {*found}
    assert not any(len(piece) > 1 and any(map(str.isdigit, piece)) for piece in found)
    assert tokenizer.tokenize("1984m")[-5:] == list("1984m")


def test_the_same_text_gives_the_same_pieces() -> None:
    assert _trained().extend(NEW, 20) == _trained().extend(NEW, 20)


def test_the_longest_pieces_are_written_correctly() -> None:
    tokenizer = _trained()
    tokenizer.extend(["ประเทศไทยเมืองหลวง " * 2] * 4, 60)
    found = [piece for piece in tokenizer.inventory() if len(piece.encode("utf-8")) > 40]
    assert found
    assert set(found) & set(tokenizer.tokenize("ประเทศไทยเมืองหลวง"))


EXTENDED, ORIGINAL = _trained(), _trained()
EXTENDED.extend(NEW, 20)
