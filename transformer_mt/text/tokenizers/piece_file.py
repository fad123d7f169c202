"""The file of a SentencePiece model: what a stranger's may contain, its pieces, and a new one with other pieces.

The file is a message of protocol buffers: https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from transformer_mt.text.vocabulary import BOS, EOS, MARKS, PAD, UNK

MOST_PIECES = 1 << 19
LONGEST_PIECE = 127  # bytes, with its score: 16 characters have at most 64
MOST_SETTINGS = 1 << 16  # bytes of all that is not a piece
_PIECES, _TRAINING, _NORMALIZER, _DENORMALIZER = 1, 2, 3, 5  # fields of the file
_TEXT, _SCORE, _KIND = 1, 2, 3  # of a piece
_ALGORITHM, _SUFFIX, _DIGITS, _BYTES, _SURFACE = 3, 24, 25, 35, 44  # of the training: also the text of unknown pieces
_NAME = 1  # of the normalizer
_ONE_SPACE = 4  # of the normalizer: no two spaces in a row
_FLAGS = {3: "add_dummy_prefix", _ONE_SPACE: "remove_extra_whitespaces", 5: "escape_whitespaces"}
_RULES = 2  # field of the two: replacements of characters
_ALGORITHMS = {1: "unigram", 2: "bpe"}
_NUMBERS = {name: number for number, name in _ALGORITHMS.items()}
IDENTITY = "identity"  # changes no character
NORMALIZERS = (IDENTITY, "nfkc", "nmt_nfkc")  # rules of SentencePiece that `data.cleaning` can stand for
NORMAL, UNUSED, BYTE = 1, 5, 6
_OF_TEXT = (NORMAL, 4, UNUSED, BYTE)  # 4: given by the user; BPE merges through unused pieces, and splits them again
_WIDTHS = {1: 8, 5: 4}  # bytes of numbers, by the type of the field


def require_bearable(model: bytes) -> None:
    """Raises ValueError if this program cannot have written such a file, which would cost much memory or time.

    Rules that replace characters could turn one of them into a page; this program trains without any.
    """
    n_pieces = settings = 0
    for field, start, end in _fields(model, 0, len(model)):
        if field == _PIECES:
            n_pieces += 1
            _require_small(n_pieces, end - start)
            continue
        settings += end - start
        if settings > MOST_SETTINGS:
            raise ValueError(f"more than {MOST_SETTINGS >> 10} KiB of settings")
        if field in (_NORMALIZER, _DENORMALIZER):
            for inner, first, last in _fields(model, start, end):
                if inner == _RULES and last > first:
                    raise ValueError("it has rules that replace characters")


def _require_small(pieces: int, size: int) -> None:
    """size: bytes of the last of them"""
    if pieces > MOST_PIECES:
        raise ValueError(f"it has more than {MOST_PIECES:,} pieces")
    if size > LONGEST_PIECE:
        raise ValueError(f"its piece {pieces:,} has more than {LONGEST_PIECE} bytes")


class Piece(NamedTuple):
    """kind: 1 normal, 2 unknown, 3 control, 4 given by the user, 5 unused, 6 byte"""

    text: str
    score: float = 0.0
    kind: int = NORMAL


class Content(NamedTuple):
    """What a model has.

    pieces:       that text has, in the order of their ids; without marks and control symbols
    algorithm:    "unigram" or "bpe"
    normalizer:   "identity" changes no character; "nfkc" and "nmt_nfkc" make Unicode's form NFKC
    split_digits: whether it was trained with each digit as a piece
    keeps_spaces: whether several spaces in a row are not one
    """

    pieces: list[Piece]
    algorithm: str
    normalizer: str
    split_digits: bool
    keeps_spaces: bool


def content_of(model: bytes) -> Content:
    """What a stranger's model has.

    Raises ValueError if it is damaged or too large, if it splits words or characters, or if it changes a text in
    another way than NFKC does: lower case, no space at the beginning.
    """
    pieces, algorithm, name, split_digits, off = list[Piece](), 0, "", 0, list[str]()
    for field, start, end in _fields(model, 0, len(model)):
        if field not in (_PIECES, _TRAINING, _NORMALIZER):
            continue
        found = {inner: (first, last) for inner, first, last in _fields(model, start, end)}
        if field == _PIECES:
            _require_small(len(pieces) + 1, end - start)
            if _TEXT not in found:
                raise ValueError("it has a piece without text")
            text = model[slice(*found[_TEXT])].decode("utf-8")
            first, last = found.get(_SCORE, (0, 0))
            score = struct.unpack("<f", model[first:last])[0] if last - first == 4 else 0.0
            pieces.append(Piece(text, score, _value(model, found.get(_KIND), 1)))
        elif field == _TRAINING:
            algorithm, split_digits = _value(model, found.get(_ALGORITHM), 1), _value(model, found.get(_DIGITS), 0)
            if _value(model, found.get(_SUFFIX), 0):
                raise ValueError("it has spaces at the ends of words")
        else:
            name = model[slice(*found.get(_NAME, (0, 0)))].decode("utf-8", "replace") or "nmt_nfkc"
            off = [flag for number, flag in _FLAGS.items() if not _value(model, found.get(number), 1)]
            if name not in NORMALIZERS:
                raise ValueError(f"it changes texts in another way than {', '.join(NORMALIZERS)} do ({name})")
            if others := [flag for flag in off if flag != _FLAGS[_ONE_SPACE]]:
                raise ValueError(f"it changes texts in another way: {' and '.join(others)}=false")
    of_text = [piece for piece in pieces if piece.kind in _OF_TEXT and piece.text not in MARKS]
    if not (algorithm and name and of_text):
        raise ValueError("it has no pieces, or ends before its settings")
    if algorithm not in _ALGORITHMS:
        raise ValueError("its algorithm is not unigram or BPE")
    if len({piece.text for piece in of_text}) < len(of_text):
        raise ValueError("it has a piece twice")
    return Content(of_text, _ALGORITHMS[algorithm], name, bool(split_digits), bool(off))


def _value(model: bytes, place: tuple[int, int] | None, default: int) -> int:
    """A number at this place, or the default. Raises ValueError if it goes on behind the place."""
    if place is None or place[0] == place[1]:
        return default
    try:
        return _number(model[slice(*place)], 0)[0]
    except IndexError:
        raise ValueError("a number of it has no end") from None


def model_of(pieces: Sequence[Piece], algorithm: str, split_digits: bool = False, keeps_spaces: bool = False) -> bytes:
    """A model with the marks and these pieces, which changes no character of a text. The others: see `Content`"""
    training = _field(_ALGORITHM, _NUMBERS[algorithm]) + _field(_SURFACE, MARKS[UNK])
    if split_digits:
        training += _field(_DIGITS, 1)
    if any(piece.kind == BYTE for piece in pieces):
        training += _field(_BYTES, 1)
    for number, piece, index in ((40, 45, UNK), (41, 46, BOS), (42, 47, EOS), (43, 48, PAD)):
        training += _field(number, index) + _field(piece, MARKS[index])
    marks = [Piece(mark, kind=2 if index == UNK else 3) for index, mark in enumerate(MARKS)]
    return (
        b"".join(map(piece_field, [*marks, *pieces]))
        + _field(_TRAINING, training)
        + _field(_NORMALIZER, _field(_NAME, IDENTITY) + (_field(_ONE_SPACE, 0) if keeps_spaces else b""))
    )


def piece_field(piece: Piece) -> bytes:
    """A piece as a part of a model. Its kind is left out if it is a normal one."""
    kind = _field(_KIND, piece.kind) if piece.kind != NORMAL else b""
    score = _varint(_SCORE << 3 | 5) + struct.pack("<f", piece.score)
    return _field(_PIECES, _field(_TEXT, piece.text) + score + kind)


def _field(number: int, content: int | str | bytes) -> bytes:
    if isinstance(content, int):
        return _varint(number << 3) + _varint(content)
    content = content.encode("utf-8") if isinstance(content, str) else content
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _fields(message: bytes, place: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The number of each field, and where its content starts and ends. Raises ValueError if the message is damaged."""
    try:
        while place < end:
            key = message[place]
            size = message[place + 1]
            if key < 128 and key & 7 == 2 and size < 128:  # text or a message, as all pieces are
                start, place = place + 2, place + 2 + size
            else:
                key, start = _number(message, place)
                if key & 7 == 2:
                    size, start = _number(message, start)
                    place = start + size
                else:
                    place = start + _WIDTHS[key & 7] if key & 7 else _number(message, start)[1]
            if place > end:
                raise IndexError
            yield key >> 3, start, place
    except (IndexError, KeyError):
        raise ValueError("it ends in the middle, or is not a SentencePiece model") from None


def _number(message: bytes, place: int) -> tuple[int, int]:
    """A number of 7 bits in each byte, the lowest first, and the place after it."""
    number = 0
    for shift in range(0, 70, 7):
        byte = message[place]
        place += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place
    raise IndexError
