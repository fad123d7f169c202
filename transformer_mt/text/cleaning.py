"""Cleaning a sentence: what changes it, and what speaks against a pair. Each rule has a name for the report.

Knows strings and the rules of `data.cleaning`; which split a pair belongs to is decided elsewhere.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

from transformer_mt.config.data import CleaningConfig

# Invisible in print, ruinous in a vocabulary: zero-width characters, direction marks, byte order mark.
_ZERO_WIDTH = "\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063\u2064\ufeff\u00ad"
_DELETED = {ord(character): None for character in _ZERO_WIDTH}
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_SPACES = re.compile(r"\s+")
_NOT_WORDS = re.compile(r"[\W_]+")


def clean_text(text: str, rules: CleaningConfig, language: str) -> str:
    """The sentence as the model shall see it. White space always ends up without line breaks or tabs."""
    if rules.unicode != "off":
        text = unicodedata.normalize(rules.unicode, text)
    if rules.control_characters:
        text = _CONTROLS.sub("", text.translate(_DELETED))
    text = (
        _SPACES.sub(" ", text).strip()
        if rules.whitespace
        else re.sub(r"[\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", " ", text)
    )
    if rules.max_repeats and language == "ko":
        from soynlp.normalizer import repeat_normalize

        text = repeat_normalize(text, num_repeats=rules.max_repeats)
    return text


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
        return "longer than max_length"
    shorter, longer = sorted((source_tokens, target_tokens))
    if rules.max_ratio is not None and longer > rules.max_ratio * shorter:
        return "length ratio"
    return None


def pair_key(source: str, target: str) -> bytes:
    """16 bytes that are equal for equal pairs."""
    return _digest(f"{source}\t{target}")


def leak_key(source: str, target: str, scope: str) -> bytes:
    """16 bytes equal for pairs that are the same sentence to a reader: case, spaces and punctuation aside."""
    text = source if scope == "source" else f"{source}\t{target}"
    return _digest("\t".join(_NOT_WORDS.sub("", side.casefold()) or side for side in text.split("\t")))


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
