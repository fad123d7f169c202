"""Cleaning a sentence: what changes it, and what speaks against a pair. Each rule has a name for the report.

Knows strings and the rules of `data.cleaning`; which split a pair belongs to is decided elsewhere.
"""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from collections.abc import Iterator

from transformer_mt.config.cleaning import CleaningConfig

TOO_LONG, LOPSIDED = "longer than max_length", "length ratio"  # what only token counts can tell

# Invisible in print, ruinous in a vocabulary: zero-width characters, direction marks, byte order mark.
_ZERO_WIDTH = "\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063\u2064\ufeff\u00ad"
_JOINERS = "\u200c\u200d"
_WRITTEN_WITH_JOINERS = frozenset({"fa", "ur", "ps", "ckb", "hi", "mr", "ne", "bn", "pa", "ta", "te", "kn", "ml", "si"})
_CONTROLS = r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
_NO_TEXT = re.compile(f"[{_CONTROLS}{_ZERO_WIDTH}]")
_NO_TEXT_NOR_JOINERS = re.compile(f"[{_CONTROLS}{_ZERO_WIDTH}{_JOINERS}]")
_SPACE, _SPACES, _BREAK = re.compile(r"\s"), re.compile(r"\s+"), re.compile(r"[\t\n\r\v\f\x1c-\x1f\x85\u2028\u2029]")
_REPEATED_LETTER = re.compile(r"([^\W\d_])\1{3,}")  # never digits: 10000 won must not become 100


def clean_text(text: str, rules: CleaningConfig, language: str) -> str:
    """The sentence as the model shall see it. Whatever the rules, tabs and line breaks become spaces."""
    cleaned = text
    for _, cleaned in _stages(text, rules, language):  # noqa: B007 (the last one is wanted)
        pass
    return cleaned


def changes(text: str, rules: CleaningConfig, language: str) -> Iterator[str]:
    """The names of the rules that change a sentence."""
    for rule, changed in _stages(text, rules, language):
        if changed != text:
            yield rule
        text = changed


def _stages(text: str, rules: CleaningConfig, language: str) -> Iterator[tuple[str, str]]:
    """Each rule that changes sentences, with the sentence after it."""
    if rules.control_characters:
        unwanted = _NO_TEXT if language in _WRITTEN_WITH_JOINERS else _NO_TEXT_NOR_JOINERS
        text = unwanted.sub("", text)
        yield "control characters", text
    if rules.unicode != "off":
        text = unicodedata.normalize(rules.unicode, text)
        yield rules.unicode, text
    text = _clean_whitespace(text, rules.whitespace)
    yield "white space", text
    if rules.max_repeats and language == "ko":
        yield "repeats", _REPEATED_LETTER.sub(lambda run: _shortened(run[0], rules.max_repeats), text)


def _clean_whitespace(text: str, rule: str) -> str:
    if rule == "collapse":
        return _SPACES.sub(" ", text).strip()
    if rule == "trim":
        return _SPACE.sub(" ", text).strip()
    return _BREAK.sub(" ", text)


def _shortened(run: str, longest: int) -> str:
    """A run of one letter by soynlp's rule, which starts at four; it would lengthen those shorter than `longest`."""
    from soynlp.normalizer import repeat_normalize

    return repeat_normalize(run, num_repeats=longest) if len(run) > longest else run


def empty_side(source: str, target: str) -> bool:
    """Does one side say nothing? Such a pair is dropped from every split."""
    return not source.strip() or not target.strip()


def fault_of_training_pair(source: str, target: str, rules: CleaningConfig) -> str | None:
    """The name of the first rule that a training pair breaks, or None."""
    if max(len(source), len(target)) > rules.max_characters:
        return "too many characters"
    if rules.identical and source == target:
        return "identical sides"
    return None


def fault_of_lengths(source_tokens: int, target_tokens: int, max_length: int, rules: CleaningConfig) -> str | None:
    """The same, for what can only be judged in tokens (end mark included)."""
    if max(source_tokens, target_tokens) > max_length:
        return TOO_LONG
    shorter, longer = sorted((source_tokens, target_tokens))
    if rules.max_ratio is not None and longer > rules.max_ratio * shorter:
        return LOPSIDED
    return None


def pair_key(source: str, target: str) -> bytes:
    """16 bytes that are equal for equal pairs."""
    return _digest(f"{source}\t{target}")


def leak_key(source: str, target: str, scope: str) -> bytes:
    """16 bytes equal for pairs that are the same sentence to a reader: case, spaces and punctuation aside."""
    text = source if scope == "source" else f"{source}\t{target}"
    return _digest("\t".join(_not_words().sub("", side.casefold()) or side for side in text.split("\t")))


@functools.cache
def _not_words() -> re.Pattern[str]:
    """What is neither a letter nor a digit, nor a vowel sign or tone mark of the scripts that need them to be read."""
    combining = (chr(code) for code in range(0x0900, 0xFE00))  # Devanagari to Thai, Khmer and on; not Hebrew's points
    marks = "".join(mark for mark in combining if unicodedata.category(mark) in ("Mn", "Mc"))
    return re.compile(f"(?:[^\\w{marks}]|_)+")


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
