"""Cleaning in batches gives what cleaning one sentence after the other gives."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.schema import OneTokenizer
from transformer_mt.text.batches import Batch, as_lines, keys_of_pairs, one_line
from transformer_mt.text.cleaning import clean_text, not_words, wrongly_decoded
from transformer_mt.text.codec import Segmenter
from transformer_mt.text.entities import has_entities, has_tags
from transformer_mt.text.vocabulary import Vocabulary

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
    "&amp;",
    "&nbsp;",
]
PARTS = ["Satz", "der ", "hier", "<s>", "<unk>", "<", "s>", "\u2581", "1", " ", "ß", "\U0001f600"]
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.characters()), max_size=8).map("".join)


def keys_of_pair(source: str, target: str) -> bytes:
    """What `keys_of_pairs` computes for many pairs, for one."""
    words = [not_words().sub("", side.casefold()) or side for side in (source, target)]
    texts = f"{source}\t{target}", "\t".join(words), *words
    return b"".join(blake2b(text.encode(), digest_size=16).digest()[:8] for text in texts)


@given(texts=st.lists(texts, min_size=1, max_size=6))
@pytest.mark.parametrize(
    ("rules", "language"),
    [
        ({}, "de"),
        ({"whitespace": "collapse", "unicode": "NFKC"}, "fa"),
        ({"whitespace": "off", "control_characters": False, "unicode": "off"}, "en"),
        ({"max_repeats": 2}, "ko"),
        ({"entities": True}, "de"),
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
    assert batch.with_entities() == {row for row, line in enumerate(lines) if has_entities(line)}
    assert batch.with_tags() == {row for row, line in enumerate(lines) if has_tags(line)}
    keys = keys_of_pairs(cleaned, cleaned[::-1])
    expected = [keys_of_pair(*pair) for pair in zip(cleaned, cleaned[::-1], strict=True)]
    assert keys.tobytes() == b"".join(expected)


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
    assert keys_of_pairs(sides, sides).tobytes() == b"".join(keys_of_pair(side, side) for side in sides)


@pytest.fixture(
    scope="module",
    params=[("bpe", False), ("bpe", True), ("unigram", False), ("unigram", True)],
    ids=lambda kind: f"{kind[0]}{', bytes' if kind[1] else ''}",
)
def segmenter(request: pytest.FixtureRequest) -> Segmenter:
    algorithm, byte_fallback = request.param
    options = {"kind": "sentencepiece", "vocab_size": 300 if byte_fallback else 60, "algorithm": algorithm}
    found = Segmenter(TypeAdapter(OneTokenizer).validate_python({**options, "byte_fallback": byte_fallback}), "de")
    words = [a + b + c for a in ("ha", "be", "Sa") for b in ("us", "tz", "rg") for c in ("", "en", "lich")]
    found.train(f"der {words[n % 27]} <s> {words[n * 7 % 27]} hier {n} </s>a" for n in range(200))
    return found


@given(texts=st.lists(st.lists(st.sampled_from([*PARTS, "</s>", "<pad>", "漢字", "<0x41>"])).map("".join), max_size=4))
def test_ids_of_many_sentences_are_those_of_their_tokens(segmenter: Segmenter, texts: list[str]) -> None:
    inventory = segmenter.tokenizer.inventory()
    assert inventory is not None
    expected = [Vocabulary(inventory).encode(segmenter.tokenize(text)) for text in texts]
    assert segmenter.ids_of(texts) == expected
