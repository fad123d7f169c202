"""What a stranger's SentencePiece model may contain, checked before SentencePiece reads it.

The file is a message of protocol buffers: https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
Only the lengths of its fields are read here.
"""

from __future__ import annotations

from collections.abc import Iterator

MOST_PIECES = 1 << 19
LONGEST_PIECE = 127  # bytes, with its score: 16 characters have at most 64
MOST_SETTINGS = 1 << 16  # bytes of all that is not a piece
_PIECES, _NORMALIZER, _DENORMALIZER = 1, 3, 5  # fields of the file
_RULES = 2  # field of the two: replacements of characters
_WIDTHS = {1: 8, 5: 4}  # bytes of numbers, by the type of the field


def require_bearable(model: bytes) -> None:
    """Raises ValueError if this program cannot have written such a file, which would cost much memory or time.

    Rules that replace characters could turn one of them into a page; this program trains without any.
    """
    n_pieces = settings = 0
    for field, start, end in _fields(model, 0, len(model)):
        if field == _PIECES:
            n_pieces += 1
            if n_pieces > MOST_PIECES or end - start > LONGEST_PIECE:
                raise ValueError(f"more than {MOST_PIECES:,} pieces, or one with more than {LONGEST_PIECE} bytes")
            continue
        settings += end - start
        if settings > MOST_SETTINGS:
            raise ValueError(f"more than {MOST_SETTINGS >> 10} KiB of settings")
        if field in (_NORMALIZER, _DENORMALIZER):
            for inner, first, last in _fields(model, start, end):
                if inner == _RULES and last > first:
                    raise ValueError("it has rules that replace characters")


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
