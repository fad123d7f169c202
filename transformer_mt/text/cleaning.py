"""The cleaning rules: what they change in a sentence, and which pairs they reject. Reports show their names.

This file knows strings and the config section `data.cleaning`; splits are decided in `data`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.languages import two_letters
from transformer_mt.text.entities import TIMES, without_entities

TOO_LONG, LOPSIDED = "longer than max_length", "length ratio"  # these two rules need token counts

# Invisible, and harmful in a vocabulary: zero-width characters, direction marks, byte order mark.
_ZERO_WIDTH = "\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063\u2064\ufeff\u00ad"
_WRITTEN_WITH_JOINERS = frozenset(
    (  # noqa: SIM905
        "fa ur ps ku ckb sd ug hi mr ne sa mai bho kok ks bn as gu pa or ta te kn ml si awa mag"
        " hne gom doi brx mni azb glk mzn lrc"
    ).split()
)
_EMOJI = "\u2190-\u21ff\u2600-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff"  # joined, two are one: a family
_CONTROLS = r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
_NO_TEXT = re.compile(f"[{_CONTROLS}{_ZERO_WIDTH}]")
NO_TEXT_NOR_JOINERS = re.compile(f"[{_CONTROLS}{_ZERO_WIDTH}\u200c]|(?<![{_EMOJI}])\u200d|\u200d(?![{_EMOJI}])")
_SPACE, _SPACES, _BREAK = re.compile(r"\s"), re.compile(r"\s+"), re.compile(r"[\t\n\r\v\f\x1c-\x1f\x85\u2028\u2029]")
_REPEATED_LETTER = re.compile(r"([^\W\d_])\1{3,}")  # never digits: 10000 must not become 100


def clean_text(
    text: str, rules: CleaningConfig, language: str, note: Callable[[str], object] = lambda rule: None
) -> str:
    """The sentence as the model sees it, after all rules. Tabs and line breaks always become spaces.

    language: ISO code
    note:     called with the name of each rule that changes the sentence
    """
    language = two_letters(language)
    if (shown := with_characters(text, rules)) != text:
        text = shown
        note("entities")
    if rules.control_characters:
        unwanted = _NO_TEXT if language in _WRITTEN_WITH_JOINERS else NO_TEXT_NOR_JOINERS
        text, removed = unwanted.subn("", text)
        if removed:
            note("control characters")
    if rules.unicode != "off" and not unicodedata.is_normalized(rules.unicode, text):
        text = unicodedata.normalize(rules.unicode, text)
        note(rules.unicode)
    if rules.whitespace == "off":
        spaced = _BREAK.sub(" ", text)
    else:
        spaced = (_SPACES if rules.whitespace == "collapse" else _SPACE).sub(" ", text).strip()
    if spaced != text:
        note("white space")
    if not rules.max_repeats or language != "ko":
        return spaced
    shortened = _REPEATED_LETTER.sub(lambda run: _shortened(run[0], rules.max_repeats), spaced)
    if shortened != spaced:
        note("repeats")
    return shortened


def with_characters(text: str, rules: CleaningConfig) -> str:
    """The text with characters in place of entities such as `&amp;`, if this is a rule."""
    return without_entities(text, TIMES) if rules.entities else text


def as_written(text: str, rules: CleaningConfig, language: str) -> str:
    """A reference as a model can write it: what looks the same is the same, and nothing else changes.

    A model that learns from NFC writes no NFD, and none of the invisible characters that cleaning removes.
    """
    unseen = {"unicode": "off" if rules.unicode == "off" else "NFC", "whitespace": "off", "max_repeats": 0}
    return clean_text(text, rules.model_copy(update=unseen), language)


def _shortened(run: str, longest: int) -> str:
    """A run of one letter, cut to `longest`. soynlp's rule would lengthen a run that is shorter than that."""
    from soynlp.normalizer import repeat_normalize

    return repeat_normalize(run, num_repeats=longest) if len(run) > longest else run


def fault_of_pair(source: str, target: str, rules: CleaningConfig, trains: bool) -> str | None:
    """The name of the first rule that a pair breaks, or None.

    trains: whether it is a candidate for the training split; other pairs break a rule only if a side is empty
    """
    if not source.strip() or not target.strip():
        return "empty side"
    if not trains:
        return None
    if max(len(source), len(target)) > rules.max_characters:
        return "too many characters"
    if rules.identical and source == target:
        return "identical sides"
    return None


WRONG_STARTS = "[ÂÃâÐÑà-ï]"  # a wrongly decoded letter begins with one of these, and goes on with the next ones
WRONG_NEXT = "[\\x80-\\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
_WRONGLY_DECODED = re.compile(
    f"\ufffd|[ÂÃ]{WRONG_NEXT}|â{WRONG_NEXT}{{2}}|(?:[ÐÑ]{WRONG_NEXT}){{2}}|(?:[à-ï]{WRONG_NEXT}{{2}}){{2}}"
)


def wrongly_decoded(text: str) -> bool:
    """Whether it has letters of UTF-8 that were read as Latin-1 or CP1252, such as `Ã¤`, or a lost one (U+FFFD)."""
    return not text.isascii() and _WRONGLY_DECODED.search(text) is not None


def quoted_as_csv(text: str) -> bool:
    """Whether it is a cell of a CSV file as it stands there: in quotes, with each quote inside written twice."""
    return text[:1] == text[-1:] == '"' and '""' in text[1:-1] and '"' not in text[1:-1].replace('""', "")


PIECE_MARKS = "@▁￭"  # of subword-nmt, SentencePiece, and OpenNMT's Tokenizer
_CUT_INTO_PIECES = re.compile(r"\w@@(?: |$)|(?:^| )▁\w|￭")
STOPS = ".,。，、।"


def cut_into_pieces(text: str) -> bool:
    """Whether it has pieces of words as other programs write them, such as `foot@@ ball` or `▁foot ball`."""
    return _CUT_INTO_PIECES.search(text) is not None


@functools.cache
def not_words() -> re.Pattern[str]:
    """Matches all but letters, digits, and the vowel signs and tone marks that distinguish words in some scripts."""
    combining = (chr(code) for code in range(0x0900, 0xFE00))  # from Devanagari on; not the points of Hebrew
    marks = "".join(mark for mark in combining if unicodedata.category(mark) in ("Mn", "Mc"))
    return re.compile(f"(?:[^\\w{marks}]|_)+")
