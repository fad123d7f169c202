"""Words between spaces: for text that is tokenised already, and for comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from transformer_mt.config.tokenizer import WordsConfig
from transformer_mt.text.tokenizers.base import Tokenizer


class WhitespaceTokenizer(Tokenizer):
    lossless = True
    finds_words = True

    class Options(WordsConfig):
        kind: Literal["whitespace"]

    def tokenize(self, text: str) -> list[str]:
        return text.split()

    def detokenize(self, tokens: Sequence[str]) -> str:
        return " ".join(tokens)
