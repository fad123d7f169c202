"""What all tokenizers guarantee, and how each kind splits a sentence."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from transformer_mt.config.schema import OneTokenizer
from transformer_mt.errors import TmtError
from transformer_mt.text.codec import Segmenter
from transformer_mt.text.tokenizers.soynlp import JOINED
from transformer_mt.text.tokenizers.spacy import LONGEST_RUN, SpacyTokenizer

pytestmark = pytest.mark.slow

NOUNS = ["학교", "친구", "도서관", "사과", "바다", "고양이", "선생님", "책상"]
KOREAN = [f"{noun}{particle} 아주 좋아요." for noun in NOUNS for particle in ("는", "를", "에서", "까지")] * 3
ENGLISH = [
    "Don't go, it isn't far (they say).",
    "A man in a blue shirt doesn't see the dogs' well-known house.",
    'She said "go home", and he\'ll go.',
    "Is it 3.5 km to St. Mary's? No!",
] * 3
GERMAN = [
    "„Ja“ und „nein“, „wir“ oder „ihr“.",
    "Er rief „Halt!“ und ging.",
    "Der Mann, der z. B. in Köln wohnt, lacht.",
    "„Gehst du?“, fragt sie (leise).",
] * 3

CASES = {
    "spacy-en": ("en", {"kind": "spacy"}, ENGLISH),
    "spacy-de": ("de", {"kind": "spacy"}, GERMAN),
    "soynlp": ("ko", {"kind": "soynlp"}, KOREAN),
    "character": ("ko", {"kind": "character"}, KOREAN),
    "whitespace": ("en", {"kind": "whitespace"}, ENGLISH),
    "bpe": ("en", {"kind": "sentencepiece", "vocab_size": 120}, ENGLISH),
    "unigram": ("ko", {"kind": "sentencepiece", "algorithm": "unigram", "vocab_size": 40}, KOREAN),
    "bytes": ("en", {"kind": "sentencepiece", "vocab_size": 330, "byte_fallback": True}, ENGLISH),
    "truecase": ("en", {"kind": "whitespace", "case": "true"}, ENGLISH),
}
ODD = [
    "", " ", "   ", "\t", "😀👨‍👩‍👧🇰🇷", "\u200b\u200d", "a\u0301\u0301", "<unk> <0x41>", "\ufffd", "x" * 3000,
    "한" * 3000, "a  b", " a ", "ㅋㅋㅋ!!!", "https://example.org/a?b=c&d", "\x00\x01", "-", "''", '"', "中文 Ελληνικά",
]  # fmt: skip


def segmenter(name: str) -> Segmenter:
    language, values, sentences = CASES[name]
    made = Segmenter(TypeAdapter(OneTokenizer).validate_python(values), language)
    made.train(sentences)
    return made


@pytest.fixture(scope="module", params=CASES)
def trained(request: pytest.FixtureRequest) -> tuple[str, Segmenter]:
    return request.param, segmenter(request.param)


def test_its_own_text_comes_back(trained: tuple[str, Segmenter]) -> None:
    name, made = trained
    for sentence in CASES[name][2]:
        tokens = made.tokenize(sentence)
        assert made.detokenize(tokens) == sentence
        assert all(tokens)


def test_it_is_the_same_after_saving_and_loading(trained: tuple[str, Segmenter], tmp_path: Path) -> None:
    name, made = trained
    made.save(tmp_path)
    loaded = Segmenter.load(tmp_path)
    assert (loaded.config, loaded.language, loaded.lossless) == (made.config, made.language, made.lossless)
    for sentence in [*CASES[name][2], *ODD]:
        tokens = made.tokenize(sentence)
        assert loaded.tokenize(sentence) == tokens
        assert loaded.detokenize(tokens) == made.detokenize(tokens)


def test_training_twice_gives_the_same_files(trained: tuple[str, Segmenter], tmp_path: Path) -> None:
    name, made = trained
    made.save(tmp_path / "one")
    segmenter(name).save(tmp_path / "two")
    written = sorted(file.name for file in (tmp_path / "one").iterdir())
    assert written == sorted(file.name for file in (tmp_path / "two").iterdir())
    for file in written:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_unusual_input_is_split_and_joined_without_an_error(trained: tuple[str, Segmenter], text: str) -> None:
    _, made = trained
    tokens = made.tokenize(text)
    assert all(isinstance(token, str) and token for token in tokens)
    assert isinstance(made.detokenize(tokens), str)
    if made.lossless:
        assert made.detokenize(tokens).split() == text.split()


def test_what_is_empty_has_no_tokens(trained: tuple[str, Segmenter]) -> None:
    assert trained[1].tokenize("") == []
    assert trained[1].detokenize([]) == ""


def test_which_tokenizers_are_lossless() -> None:
    lossless = {name for name in CASES if segmenter(name).lossless}
    assert lossless == {"soynlp", "character", "whitespace", "bpe", "unigram", "bytes"}


MARKS = "\u2581\u2583\uffed"
normal = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=MARKS), max_size=30).map(
    lambda text: " ".join(text.split())
)


@pytest.mark.parametrize("name", ["soynlp", "character", "whitespace", "bpe", "unigram", "bytes"])
def test_lossless_tokenizers_restore_any_text(name: str) -> None:
    made = segmenter(name)

    @given(text=normal)
    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def comes_back(text: str) -> None:
        assert made.detokenize(made.tokenize(text)) == text

    comes_back()


@pytest.mark.parametrize("name", ["spacy-en", "spacy-de"])
def test_spacy_loses_spaces_alone(name: str) -> None:
    made = segmenter(name)

    @given(text=normal)
    @settings(max_examples=150, deadline=None)
    def comes_back(text: str) -> None:
        assert made.detokenize(made.tokenize(text)).replace(" ", "") == text.replace(" ", "")

    comes_back()


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("spacy-en", "I don't, do you?", ["I", "do", "n't", ",", "do", "you", "?"]),
        ("spacy-en", "two  spaces", ["two", " ", "spaces"]),
        ("spacy-de", "Gehst du, z. B. heute?", ["Gehst", "du", ",", "z.", "B.", "heute", "?"]),
        ("character", "a b", ["a", "\u2581", "b"]),
        ("whitespace", " a  b, ", ["a", "b,"]),
        ("soynlp", "친구는 학교에서", ["친구", f"{JOINED}는", "학교", f"{JOINED}에서"]),
    ],
)
def test_known_tokens(name: str, text: str, tokens: list[str]) -> None:
    assert segmenter(name).tokenize(text) == tokens


def test_spacy_never_gets_a_long_run_of_characters_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take a minute for 20,000 brackets, and hours for a line of a mebibyte."""
    tokenizer = SpacyTokenizer(SpacyTokenizer.Options(kind="spacy"), "en")
    own, lengths = tokenizer._tokenizer, list[int]()
    monkeypatch.setattr(tokenizer, "_tokenizer", lambda text: [lengths.append(len(text)), own(text)][1])
    run = "(" * 3_500
    assert "".join(tokenizer.tokenize(f"a {run}")) == f"a{run}"
    assert max(lengths) <= LONGEST_RUN + len("a ")
    lengths.clear()
    text = "one two, " * 500
    assert tokenizer.tokenize(text) == [token.text for token in own(text)]
    assert lengths == [len(text)]


def test_spacy_forgets_the_words_it_met(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer_mt.text.tokenizers.spacy.RENEWAL", 50)
    tokenizer = SpacyTokenizer(SpacyTokenizer.Options(kind="spacy"), "en")
    known = len(tokenizer._tokenizer.vocab.strings)
    for number in range(1000):
        assert tokenizer.tokenize(f"x{number}y isn't one.") == [f"x{number}y", "is", "n't", "one", "."]
        assert len(tokenizer._tokenizer.vocab.strings) < known + 200  # 1,000 new words


def test_spacy_tokens_become_natural_text() -> None:
    english = "We do n't see him , and she 's gone ."
    german = "„ Ja , gern “ , sagt er ."
    assert segmenter("spacy-en").detokenize(english.split()) == "We don't see him, and she's gone."
    assert segmenter("spacy-de").detokenize(german.split()) == "„Ja, gern“, sagt er."


def test_soynlp_distinguishes_particles_from_words_and_joins_them() -> None:
    made = segmenter("soynlp")
    assert made.detokenize(["이", "친구", f"{JOINED}는", "이", "책상", f"{JOINED}이"]) == "이 친구는 이 책상이"
    assert made.detokenize([f"{JOINED}는", "나"]) == "는 나"  # a model can write an ending first


def test_soynlp_does_not_depend_on_hash_seeds() -> None:
    code = (
        "import sys, hashlib, json; sys.path.insert(0, sys.argv[1]);"
        "from transformer_mt.text.tokenizers.soynlp import SoynlpTokenizer as T;"
        "t = T(T.Options(kind='soynlp', min_word_frequency=2), 'ko'); t.train(json.load(sys.stdin));"
        "print(json.dumps(t.scores))"
    )
    root = str(Path(__file__).parents[2])
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code, root],
            input=json.dumps(KOREAN),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(outputs) == 1
    assert len(json.loads(outputs.pop())) > 20


def test_soynlp_is_quick_with_a_very_long_word() -> None:
    made = segmenter("soynlp")
    word = "학교" + "가" * 200_000
    assert made.detokenize(made.tokenize(word)) == word


def test_soynlp_keeps_stdout_clean(capsys: pytest.CaptureFixture[str]) -> None:
    segmenter("soynlp")
    assert capsys.readouterr().out == ""


def test_training_reads_no_more_sentences_than_configured() -> None:
    read = []

    def sentences() -> Iterator[str]:
        for sentence in KOREAN:
            read.append(sentence)
            yield sentence

    config = TypeAdapter(OneTokenizer).validate_python({"kind": "soynlp", "training_sentences": 5})
    Segmenter(config, "ko").train(sentences())
    assert len(read) == 5


def test_a_language_that_spacy_does_not_know_says_what_to_use() -> None:
    with pytest.raises(TmtError, match="no tokenizer for 'xq'") as error:
        Segmenter(TypeAdapter(OneTokenizer).validate_python({"kind": "spacy"}), "xq")
    assert "sentencepiece" in error.value.remedy


def test_a_sample_is_the_only_segmentation_if_there_is_only_one() -> None:
    for name in ("spacy-en", "soynlp", "character", "whitespace", "bpe"):
        made = segmenter(name)
        text = CASES[name][2][0]
        assert made.sample(text, random.Random(1)) == made.tokenize(text)
