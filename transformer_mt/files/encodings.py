"""Bytes that are not in the encoding of their file: which encoding they seem to have, and how text marks them."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress

STRICT, MARKED = "strict", "tmt-marked"  # what a decoder does with such bytes: an error, or BROKEN in their place
BROKEN = "\udc80"  # half a surrogate pair, which no text in UTF-8 has, but for an escape in JSON
WESTERN = ["cp1252", "cp1250"]
OTHERS = ["cp949", "cp932", "gb18030", "big5", "euc_jp", "cp1251", "koi8_r", "cp1253", "cp1255"]
WESTERN_RUN = 1.5  # mean number of bytes above 0x7f in a row; other scripts have more
MIXED_WORDS = 0.1  # of words with Cyrillic or Greek letters may also have Latin ones
FEWEST_KANA = 0.3  # of Japanese letters; Chinese or Korean text read as Japanese has hardly any
DIFFERENT_KANA = 10  # at least; the single letters of Korean chats (ㅋㅋ, ㅠㅠ) would be fewer kana
MOST_CAPITALS = 0.7  # of Cyrillic letters; Hebrew text read as KOI8-R has only capitals
EXCHANGED_WORDS = 0.02  # of Cyrillic words may begin with a small letter and go on in capitals


def _marked(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return BROKEN, error.end


codecs.register_error(MARKED, _marked)


def is_name_of_utf_8(encoding: str) -> bool:
    return encoding.lower().replace("_", "-") in ("utf-8", "utf8")


def guessed_from(sample: bytes, encoding: str) -> str | None:
    """The encoding that lines which are not in this encoding seem to have."""
    if is_name_of_utf_8(encoding):
        return guessed_encoding(sample)
    return "utf-8" if is_in(sample, "utf-8") else None


def is_in(text: bytes, encoding: str) -> bool:
    with suppress(UnicodeDecodeError):
        text.decode(encoding)
        return True
    return False


def guessed_encoding(sample: bytes) -> str | None:
    """The encoding that lines which are not UTF-8 seem to have."""
    from charset_normalizer import from_bytes

    letters = re.findall(rb"[\x80-\xff]+", sample)
    is_western = len(b"".join(letters)) < WESTERN_RUN * len(letters)  # single letters with accents
    found = [one.encoding for one in from_bytes(sample, cp_isolation=WESTERN if is_western else OTHERS)]
    best = next((name for name in found if _is_plausible(sample, name)), None)
    if best is not None and is_western and best != WESTERN[0]:
        with suppress(UnicodeDecodeError):
            return WESTERN[0] if sample.decode(WESTERN[0]) == sample.decode(best) else best
    return best


def _is_plausible(sample: bytes, encoding: str) -> bool:
    """Whether the letters are those of real text in this encoding.

    Korean: nearly all are in KS X 1001. Chinese: not all are syllables of Korean. Cyrillic and Greek: hardly a word
    also has Latin letters, and hardly one begins small and goes on in capitals: KOI8-R and cp1251 exchange them.
    Japanese: many are kana. Hebrew: nearly all are.
    """
    if encoding in ("cp949", "gb18030", "big5", "euc_jp"):
        letters = [letter for letter in sample.decode("euc_jp", "replace") if not letter.isascii()]
        kana, wrong = [one for one in letters if "\u3041" <= one <= "\u30ff"], letters.count("\ufffd")
        has_kana = len(kana) > FEWEST_KANA * len(letters) and len(set(kana)) >= DIFFERENT_KANA
        if (has_kana and wrong < 0.02 * len(letters)) != (encoding == "euc_jp"):
            return False
    if encoding in ("koi8_r", "cp1255"):
        letters = [letter for letter in sample.decode(encoding, "replace") if not letter.isascii()]
        if encoding == "cp1255":
            hebrew = sum("\u05d0" <= letter <= "\u05ea" for letter in letters)
            return hebrew > 0.9 * len(letters) and not re.search(rb"[\xfb-\xff]", sample)  # Ч, Ш and others in KOI8-R
        if sum(map(str.isupper, letters)) > MOST_CAPITALS * len(letters) and _is_plausible(sample, "cp1255"):
            return False
    if encoding in ("cp1251", "koi8_r", "cp1253"):
        words = [word for word in re.findall(r"[^\W\d_]+", sample.decode(encoding, "replace")) if not word.isascii()]
        mixed = sum(any(map(str.isascii, word)) for word in words)
        exchanged = sum(word[0].islower() and word[1:].isupper() for word in words)
        return mixed <= MIXED_WORDS * len(words) and exchanged <= EXCHANGED_WORDS * len(words)
    if encoding == "big5":
        letters = [letter for letter in sample.decode("euc_kr", "replace") if not letter.isascii()]
        return not all("\uac00" <= letter <= "\ud7a3" for letter in letters)
    if encoding != "cp949":
        return True
    wide = [letter for letter in sample.decode("cp949", "replace") if not letter.isascii()]
    known = sum(len(letter.encode("euc_kr", "ignore")) == 2 for letter in wide)  # it spells others in eight bytes
    return known > 0.9 * len(wide)
