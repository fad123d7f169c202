"""Sentences to ids and back; damaged folders."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from pydantic import TypeAdapter

from transformer_mt.config.schema import OneTokenizer
from transformer_mt.errors import USER_FAULT, TmtError
from transformer_mt.text.codec import Codec, Segmenter
from transformer_mt.text.vocabulary import BOS, EOS, MARKS, PAD, UNK, Vocabulary

SENTENCES = ["The dog, I think, isn't here.", "The cat  isn't there."]


def codec(kind: str = "spacy", language: str = "en", **values: object) -> Codec:
    segmenter = Segmenter(TypeAdapter(OneTokenizer).validate_python({"kind": kind, **values}), language)
    segmenter.train(SENTENCES)
    counts = Counter(token for sentence in SENTENCES for token in segmenter.tokenize(sentence))
    return Codec(segmenter, Vocabulary.count(counts))


@pytest.fixture(params=["spacy", "whitespace", "character", "soynlp"])
def made(request: pytest.FixtureRequest) -> Codec:
    return codec(request.param)


def test_a_sentence_ends_with_the_end_mark_and_comes_back(made: Codec) -> None:
    for sentence in SENTENCES:
        ids = made.encode(sentence)
        assert ids[-1] == EOS
        assert ids.count(EOS) == 1
        assert all(0 <= index < len(made) for index in ids)
        assert made.decode(ids) == " ".join(sentence.split())  # translations have no double spaces


def test_an_empty_sentence_is_the_end_mark(made: Codec) -> None:
    assert made.encode("") == [EOS]
    assert made.decode([EOS]) == made.decode([]) == ""


def test_decoding_stops_at_the_end_mark_and_drops_other_marks() -> None:
    made = codec()
    dog, cat = made.vocabulary.encode(["dog", "cat"])
    assert made.decode([BOS, dog, PAD, cat, EOS, dog]) == "dog cat"


def test_a_sentence_cannot_spell_the_end_mark(made: Codec) -> None:
    assert made.encode("a </s> <pad> b").index(EOS) == len(made.encode("a </s> <pad> b")) - 1


def test_unknown_words_are_marked_or_replaced_in_order() -> None:
    made = codec()
    (the,) = made.vocabulary.encode(["The"])
    ids = [the, UNK, UNK, EOS]
    assert made.encode("The zebra yawns")[1:3] == [UNK, UNK]
    assert made.decode(ids) == "The <unk> <unk>"
    assert made.decode(ids, ["zebra"]) == "The zebra <unk>"
    assert made.decode(ids, ["zebra", "yawns"]) == "The zebra yawns"


def test_case_is_a_step_of_the_codec() -> None:
    assert codec(case="lower").decode(codec(case="lower").encode("THE DOG")) == "the dog"
    assert codec(case="true").decode(codec(case="true").encode("The dog isn't here.")) == "The dog isn't here."


def test_it_is_saved_and_loaded_whole(made: Codec, tmp_path: Path) -> None:
    made.save(tmp_path / "side")
    loaded = Codec.load(tmp_path / "side")
    assert loaded.vocabulary == made.vocabulary
    assert loaded.segmenter.language == "en"
    for sentence in [*SENTENCES, "unseen words, too"]:
        assert loaded.encode(sentence) == made.encode(sentence)
        assert loaded.decode(made.encode(sentence)) == made.decode(made.encode(sentence))


def test_tokens_of_unusual_characters_keep_their_ids(tmp_path: Path) -> None:
    unusual = ["\u2028", "\x85", "\r", " ", "\u00a0", "\ufeff"]
    made = codec()
    Codec(made.segmenter, Vocabulary([*made.vocabulary.tokens[:5], *unusual])).save(tmp_path)
    assert Codec.load(tmp_path).vocabulary.tokens[5:] == unusual


def _no_folder(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def _wrong_settings(folder: Path) -> None:
    (folder / "tokenizer.json").write_text(json.dumps({"language": "en", "tokenizer": {"kind": "spacie"}}))


@pytest.mark.parametrize(
    "damage",
    [
        _no_folder,
        _wrong_settings,
        lambda folder: (folder / "tokenizer.json").unlink(),
        lambda folder: (folder / "tokenizer.json").write_text('{"langu'),
        lambda folder: (folder / "tokenizer.json").write_text("[]"),
        lambda folder: (folder / "tokenizer.json").write_bytes(b"\xff"),
        lambda folder: (folder / "vocabulary.txt").unlink(),
        lambda folder: (folder / "vocabulary.txt").write_text(""),
        lambda folder: (folder / "vocabulary.txt").write_text("a\nb\n"),
        lambda folder: (folder / "vocabulary.txt").write_bytes(b"<pad>\n<unk>\n<s>\n</s>\n\xff\n"),
        lambda folder: (folder / "vocabulary.txt").write_text("<pad>\n<unk>\n<s>\n</s>\na\na\n"),
        lambda folder: (folder / "spacing.json").unlink(),
        lambda folder: (folder / "spacing.json").write_text("null"),
        lambda folder: (folder / "spacing.json").write_text('{"left": [], "right": [], "pairs": [["a"]]}'),
        lambda folder: (folder / "spacing.json").write_text('{"left": []}'),
    ],
)
def test_a_damaged_folder_is_an_error_that_the_user_can_fix(damage, tmp_path: Path) -> None:
    folder = tmp_path / "side"
    codec().save(folder)
    damage(folder)
    with pytest.raises(TmtError) as error:
        Codec.load(folder)
    assert error.value.exit_code == USER_FAULT
    assert str(folder) in error.value.place
    assert "\n" not in error.value.message
    assert "tmt prepare --config CONFIG --force" in error.value.remedy


def test_a_translation_has_no_characters_that_control_a_terminal() -> None:
    strange = [
        "\x1b[2J",
        "\x1b]0;title\x07",
        "a\x9bb",
        "\x7f",
        "\x00",
        "고양이",
    ]  # clear the screen, set its title
    words = Codec(codec("whitespace").segmenter, Vocabulary([*MARKS, *strange]))
    assert words.decode(range(4, len(words))) == "[2J ]0;title ab 고양이"


def test_tags_come_first_and_text_never_contains_them(tmp_path: Path) -> None:
    plain = codec("whitespace")
    tagged = Codec(plain.segmenter, Vocabulary(plain.vocabulary.tokens, ["<2de>", "<synthetic>"]))
    word = plain.vocabulary.tokens[-1]
    first, second = len(plain), len(plain) + 1
    assert tagged.encode(word, ["<2de>", "<synthetic>"]) == [first, second, *plain.encode(word)]
    assert tagged.sample(word, Random(1), ["<synthetic>"]) == [second, *plain.encode(word)]
    assert tagged.encode("<2de>") == [UNK, EOS]
    assert tagged.decode([first, *plain.encode(word)]) == word
    tagged.save(tmp_path)
    assert Codec.load(tmp_path).vocabulary == tagged.vocabulary
    assert Codec.load(tmp_path).tags == ("<2de>", "<synthetic>")
    (tmp_path / "tags.txt").write_text("<2fr>\n<synthetic>\n", encoding="utf-8")
    with pytest.raises(TmtError, match="does not end with the tags"):
        Codec.load(tmp_path)
    plain.save(tmp_path / "plain")
    assert not (tmp_path / "plain" / "tags.txt").exists()
