"""Cleaning in batches gives what cleaning one sentence after the other gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.text.batches import Batch, as_lines, keys_of_pairs, one_line
from transformer_mt.text.cleaning import clean_text, keys_of_pair, wrongly_decoded

PIECES = [
    *" \t\n\r\v\x00\x1c\x85\xa0\xad",
    *"\u200b\u200c\u2028\u3000\ufeff\ufffd\ud83d",
    "ㅋㅋㅋㅋㅋ",
    "Ko\u0308ln",
    "Ａ",
]
PIECES += [
    "a",
    "ß",
    "İ",
    "\u0301",
    "ा",
    "_",
    "1",
    "Ã¤",
    "â€™",
    "Ð¢Ð",
    "é",
    "né",
    "à¤\x85",
    "각",
    "\U0001f600",
    "  ",
    "<s>",
]
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.characters()), max_size=8).map("".join)


@given(texts=st.lists(texts, min_size=1, max_size=6))
@pytest.mark.parametrize(
    ("rules", "language"),
    [
        ({}, "de"),
        ({"whitespace": "collapse", "unicode": "NFKC"}, "fa"),
        ({"whitespace": "off", "control_characters": False, "unicode": "off"}, "en"),
        ({"max_repeats": 2}, "ko"),
    ],
    ids=str,
)
def test_a_batch_is_cleaned_as_each_of_its_sentences(texts: list[str], rules: dict[str, Any], language: str) -> None:
    settings = CleaningConfig(**rules)
    lines = as_lines(texts)
    assert lines == [one_line(text) for text in texts]
    batch = Batch(lines)
    cleaned, changed = batch.clean(settings, language)
    for row, line in enumerate(lines):
        by_rules: set[str] = set()
        assert cleaned[row] == clean_text(line, settings, language, by_rules.add)
        assert changed.get(row, set()) == by_rules
    assert batch.wrongly_decoded() == {row for row, line in enumerate(lines) if wrongly_decoded(line)}
    keys = keys_of_pairs(cleaned, cleaned[::-1])
    expected = [keys_of_pair(*pair) for pair in zip(cleaned, cleaned[::-1], strict=True)]
    assert keys.tobytes() == b"".join(map(b"".join, expected))


def test_every_character_alone_and_between_letters() -> None:
    """All code points below the first planes, which have all white space, and some of the others."""
    codes = [*range(0xD800), *range(0xE000, 0x11000), *range(0x1F600, 0x1F610)]
    lines = as_lines([text for code in codes for text in (chr(code), f"a{chr(code)}b")])
    rules = CleaningConfig()
    cleaned, changed = Batch(lines).clean(rules, "de")
    assert cleaned == [clean_text(line, rules, "de") for line in lines]
    assert {row for row, (line, clean) in enumerate(zip(lines, cleaned, strict=True)) if line != clean} == set(changed)
    some = np.random.default_rng(1).choice(len(cleaned), 3_000)
    sides = [cleaned[row] for row in some]
    assert keys_of_pairs(sides, sides).tobytes() == b"".join(b"".join(keys_of_pair(side, side)) for side in sides)
