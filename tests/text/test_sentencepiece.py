"""SentencePiece: sizes, marks, unseen characters, sampled segmentations, morphemes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.errors import TmtError
from transformer_mt.text.codec import Codec, Segmenter
from transformer_mt.text.tokenizers.sentencepiece import SentencepieceTokenizer
from transformer_mt.text.tokenizers.subword_sampling import Drops, bpe_dropout
from transformer_mt.text.vocabulary import EOS, MARKS, UNK, Vocabulary

_DRAW = random.Random(5)
_WORDS = ["".join(_DRAW.choices("aeinorstl", k=_DRAW.randint(2, 6))) for _ in range(60)]
TEXT = [" ".join(["the tower", *_DRAW.choices(_WORDS, k=5)]) for _ in range(60)]


def tokenizer(language: str = "en", sentences: list[str] = TEXT, **values: object) -> SentencepieceTokenizer:
    config = SentencepieceTokenizer.Options.model_validate({"kind": "sentencepiece", "vocab_size": 60, **values})
    made = SentencepieceTokenizer(config, language)
    made.train(sentences)
    return made


def codec(**values: object) -> Codec:
    config = SentencepieceTokenizer.Options.model_validate({"kind": "sentencepiece", "vocab_size": 60, **values})
    segmenter = Segmenter(config, "en")
    segmenter.train(TEXT)
    return Codec(segmenter, Vocabulary(segmenter.tokenizer.inventory() or []))


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_the_inventory_is_as_large_as_asked_and_begins_with_the_marks(algorithm: str) -> None:
    pieces = tokenizer(algorithm=algorithm, vocab_size=40).inventory()
    assert len(pieces) == len(set(pieces)) == 40
    assert tuple(pieces[:4]) == MARKS
    assert Vocabulary(pieces).tokens == pieces


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_digits_are_pieces_of_their_own_if_asked(algorithm: str) -> None:
    years = [f"the tower of {year}, or {year}m" for year in (1984, 1985, 1994) for _ in range(20)]
    whole, split = (
        tokenizer(sentences=[*TEXT, *years], algorithm=algorithm, vocab_size=70, split_digits=each)
        for each in (False, True)
    )
    assert any(piece.strip("▁").isdigit() and len(piece.strip("▁")) > 1 for piece in whole.inventory())
    assert not any(set("0123456789") & set(piece) and len(piece) > 1 for piece in split.inventory())
    text = "the tower of 4519"
    assert split.tokenize(text)[-4:] == list("4519")
    assert split.detokenize(split.tokenize(text)) == text


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TmtError("line 7 is not UTF-8"), MemoryError()])
def test_what_fails_or_ends_the_reading_stays_what_it_is(error: BaseException) -> None:
    """The library makes a RuntimeError of it."""

    def sentences() -> Iterator[str]:
        yield "a b c"
        raise error

    options = SentencepieceTokenizer.Options(kind="sentencepiece", vocab_size=40)
    with pytest.raises(type(error)) as caught:
        SentencepieceTokenizer(options, "en").train(sentences())
    assert caught.value is error


def test_a_corpus_that_is_too_small_is_an_error() -> None:
    with pytest.raises(TmtError, match="too small for 8000 pieces") as error:
        tokenizer(vocab_size=8000)
    assert error.value.place == "tokenizer.vocab_size"
    with pytest.raises(TmtError):
        tokenizer(sentences=[])


@pytest.mark.parametrize("values", [{"vocab_size": 40}, {"vocab_size": 200, "byte_fallback": True}])
def test_more_characters_than_pieces_ask_for_more_pieces(values: dict[str, object]) -> None:
    every = [chr(0xAC00 + number) for number in range(100)]
    with pytest.raises(TmtError, match="pieces are too few") as error:
        tokenizer(sentences=[" ".join(every)] * 5, **values)
    assert error.value.remedy.startswith("Raise tokenizer.vocab_size")


def test_unseen_characters_are_unknown_or_bytes() -> None:
    plain, spelling = codec(), codec(vocab_size=330, byte_fallback=True)
    assert UNK in plain.encode("the 탑")
    assert plain.decode(plain.encode("the 탑")) == "the <unk>"
    assert plain.decode(plain.encode("the 탑"), ["탑"]) == "the 탑"
    assert UNK not in spelling.encode("the 탑 😀")
    assert spelling.decode(spelling.encode("the 탑 😀")) == "the 탑 😀"


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
@pytest.mark.parametrize("mark", MARKS)
def test_text_that_spells_a_mark_stays_text(algorithm: str, mark: str) -> None:
    greek = [sentence.translate({ord("a") + n: ord("α") + n for n in range(24)}) for sentence in TEXT]
    made = tokenizer("el", greek, algorithm=algorithm)  # it knows none of the characters of the marks
    tokens = made.tokenize(f"{greek[0]} {mark} {greek[1]}")
    assert mark not in tokens
    assert made.detokenize(tokens) == f"{greek[0]} {mark} {greek[1]}"


def test_double_spaces_do_not_matter() -> None:
    made = tokenizer()
    assert made.tokenize("the  lone   tower ") == made.tokenize("the lone tower")


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_sampled_segmentations_differ_and_repeat_by_seed(algorithm: str) -> None:
    made = tokenizer(algorithm=algorithm, sampling=0.4)
    text = "the tower in the rose"

    def draw(seed: int) -> list[tuple[str, ...]]:
        generator = random.Random(seed)
        return [tuple(made.sample(text, generator)) for _ in range(200)]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    assert len(set(draw(1))) > 3
    assert {made.detokenize(tokens) for tokens in draw(1)} == {text}
    assert {piece for tokens in draw(1) for piece in tokens} <= set(made.inventory())
    assert len(made.tokenize(text)) <= min(map(len, draw(1))) or algorithm == "unigram"


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_another_process_draws_the_same(algorithm: str, tmp_path: Path) -> None:
    made = tokenizer(algorithm=algorithm, sampling=0.4)
    made.save(tmp_path)
    program = f"""
import random
from pathlib import Path
from transformer_mt.text.tokenizers.sentencepiece import SentencepieceTokenizer
options = SentencepieceTokenizer.Options(kind="sentencepiece", algorithm={algorithm!r}, sampling=0.4)
made = SentencepieceTokenizer(options, "en")
made.load(Path({str(tmp_path)!r}))
print([made.sample({TEXT[0]!r}, random.Random(f"1-1-{{pair}}")) for pair in range(20)])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([made.sample(TEXT[0], random.Random(f"1-1-{pair}")) for pair in range(20)])


_KNOWN = "aeinorstlthw "
_BPE = {spelling: tokenizer(vocab_size=330 if spelling else 60, byte_fallback=spelling) for spelling in (False, True)}


@given(text=st.text(alphabet=_KNOWN, max_size=40), spelling=st.booleans())
def test_bpe_without_dropout_is_what_sentencepiece_does(text: str, spelling: bool) -> None:
    made = _BPE[spelling]
    words, never = [f"▁{word}" for word in text.split()], Drops(0.0, random.Random(1))
    ours = [piece for word in words for piece in bpe_dropout(word, made._scores, never)]
    assert ours == made.tokenize(text)


@given(text=st.text(alphabet=_KNOWN + "탑😀", max_size=40), spelling=st.booleans(), seed=st.integers(0, 9))
def test_unknown_characters_stay_as_they_are_in_a_drawn_segmentation(text: str, spelling: bool, seed: int) -> None:
    usual = _BPE[spelling]
    drawing = SentencepieceTokenizer(usual.config.model_copy(update={"sampling": 0.5}), "en")
    drawing._load(usual._pieces.serialized_model_proto())
    tokens, known = drawing.sample(text, random.Random(seed)), set(usual.inventory())

    def beyond(tokens: list[str]) -> list[str]:
        """Unknown characters, or the bytes that spell them."""
        return [token for token in tokens if token not in known or token.startswith("<0x")]

    assert drawing.detokenize(tokens) == usual.detokenize(usual.tokenize(text))
    assert beyond(tokens) == beyond(usual.tokenize(text))


def test_a_codec_samples_ids_with_the_end_mark() -> None:
    made = codec(sampling=0.5)
    drawn = {tuple(made.sample("the tower rose", random.Random(seed))) for seed in range(10)}
    assert len(drawn) > 1
    assert all(ids[-1] == EOS for ids in drawn)
    assert {made.decode(ids) for ids in drawn} == {"the tower rose"}


def test_a_vocabulary_of_another_tokenizer_is_refused(tmp_path: Path) -> None:
    codec().save(tmp_path)
    file = tmp_path / "vocabulary.txt"
    lines = file.read_text(encoding="utf-8").split("\n")
    lines[-3:-1] = lines[-2], lines[-3]
    file.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(TmtError, match="does not match the tokenizer in this folder"):
        Codec.load(tmp_path)


def test_a_damaged_model_is_an_error(tmp_path: Path) -> None:
    made = tokenizer()
    made.save(tmp_path)
    file = tmp_path / "sentencepiece.model"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match="damaged"):
        made.load(tmp_path)


KOREAN = ["친구는 학교에서 책을 읽었습니다.", "선생님이 도서관에 가셨어요!", "우리는 바다를 보고 싶었다."] * 5


def test_morphemes_are_split_and_joined_back() -> None:
    pytest.importorskip("mecab", reason="needs the extra `mecab`")
    made = tokenizer("ko", KOREAN, vocab_size=64, morphemes="mecab")
    for sentence in [*KOREAN, "처음 보는 문장입니다 (hello, 3.5) 😀", "", "a"]:
        assert made.detokenize(made.tokenize(sentence)) == sentence
    assert made.morphemes is not None
    assert made.morphemes.split("학교에서 책을") == "학교 에서 \u2583 책 을"


def test_morphemes_apply_to_korean_only() -> None:
    assert tokenizer("en", morphemes="mecab").morphemes is None


def test_morphemes_without_mecab_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mecab", None)
    with pytest.raises(TmtError) as error:
        tokenizer("ko", morphemes="mecab")
    assert "pip install python-mecab-ko" in error.value.remedy


def test_the_order_of_keys_in_saved_tokenizers_does_not_change(tmp_path: Path) -> None:
    """A run goes on only with the tokenizers that it began with, to the byte (`tokenizers_digest`)."""
    codec().segmenter.save(tmp_path)
    saved = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    shared = ["kind", "case", "shared", "training_sentences", "extend"]
    own = ["algorithm", "vocab_size", "byte_fallback", "split_digits", "character_coverage", "sampling", "morphemes"]
    assert list(saved["tokenizer"]) == [*shared, *own]
