"""A stranger's SentencePiece model: what would cost memory or time, or fail later, is refused when it is read."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from transformer_mt.text.tokenizers.more_merges import with_pieces
from transformer_mt.text.tokenizers.piece_file import require_bearable
from transformer_mt.text.tokenizers.sentencepiece import FILE, SentencepieceTokenizer

_DRAW = random.Random(5)
_WORDS = ["".join(_DRAW.choices("aeinorstlhcpm", k=_DRAW.randint(2, 6))) for _ in range(60)]
TEXT = [" ".join(_DRAW.choices(_WORDS, k=5)) for _ in range(60)]


def options(**values: object) -> SentencepieceTokenizer.Options:
    return SentencepieceTokenizer.Options.model_validate({"kind": "sentencepiece", "vocab_size": 32, **values})


def trained(folder: Path, **values: object) -> bytes:
    tokenizer = SentencepieceTokenizer(options(**values), "en")
    tokenizer.train(TEXT)
    tokenizer.save(folder)
    return (folder / FILE).read_bytes()


def number(value: int) -> bytes:
    written = b""
    while value > 127:
        written += bytes([value & 127 | 128])
        value >>= 7
    return written + bytes([value])


def field(of: int, content: bytes) -> bytes:
    """A field with a length, of a message of protocol buffers."""
    return number(of << 3 | 2) + number(len(content)) + content


def said(folder: Path, model: bytes) -> str:
    (folder / FILE).write_bytes(model)
    with pytest.raises(ValueError, match="model is damaged") as error:
        SentencepieceTokenizer(options(), "en").load(folder)
    return str(error.value)


@pytest.mark.parametrize(
    "values",
    [{}, {"algorithm": "unigram"}, {"byte_fallback": True, "vocab_size": 300}],
    ids=["bpe", "unigram", "bytes"],
)
def test_what_this_program_writes_is_read(tmp_path: Path, values: dict[str, object]) -> None:
    model = with_pieces(trained(tmp_path, **values), ["x" * 16, "\U0001f600" * 16], -100)
    (tmp_path / FILE).write_bytes(model)
    tokenizer = SentencepieceTokenizer(options(**values), "en")
    tokenizer.load(tmp_path)
    assert tokenizer.inventory()[-1] == "\U0001f600" * 16


TRAINER, NORMALIZER, DENORMALIZER = 2, 3, 5  # fields of the file
UNK_SURFACE = 44  # of the trainer's settings


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (field(1, field(1, b"x" * 200)), "more than 127 bytes"),
        (field(NORMALIZER, field(2, b"\x04\x00\x00\x00abcd")), "rules that replace"),
        (field(DENORMALIZER, field(1, b"a") + field(2, b"x")), "rules that replace"),
        (field(TRAINER, field(UNK_SURFACE, b"x" * (1 << 17))), "more than 64 KiB of settings"),
        (field(TRAINER, field(UNK_SURFACE, b"x" * 100)), "its text for unknown pieces is too long"),
        (field(TRAINER, field(UNK_SURFACE, b"\xff\xfe")), "can't decode"),
        (b"\x0a", "ends in the middle"),
        (b"\x0a\x7fabc", "ends in the middle"),
        (b"\x12" + b"\xff" * 12, "ends in the middle"),
        (b"\x0b", "ends in the middle"),
    ],
)
def test_what_it_would_never_write_is_refused(tmp_path: Path, more: bytes, reason: str) -> None:
    assert reason in said(tmp_path, trained(tmp_path) + more)


def test_more_pieces_than_any_vocabulary_are_refused_before_they_are_parsed() -> None:
    with pytest.raises(ValueError, match="more than 524,288 pieces"):
        require_bearable(field(1, field(1, b"abcd")) * (1 << 20))


def test_every_cut_and_flipped_byte_is_read_or_refused(tmp_path: Path) -> None:
    model = trained(tmp_path)
    tokenizer = SentencepieceTokenizer(options(), "en")
    outcomes = set()
    for place in range(0, len(model), 3):
        for damaged in (model[:place], model[:place] + bytes([model[place] ^ 1 << place % 8]) + model[place + 1 :]):
            (tmp_path / FILE).write_bytes(damaged)
            try:
                tokenizer.load(tmp_path)
                tokenizer.detokenize(tokenizer.tokenize("the cat 고양이"))
                outcomes.add("read")
            except ValueError:
                outcomes.add("refused")
    assert outcomes == {"read", "refused"}
