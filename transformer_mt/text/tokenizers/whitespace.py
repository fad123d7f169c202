"""Words between spaces: for text that was tokenised before, and for comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transformer_mt.text.tokenizers.base import Tokenizer


class WhitespaceTokenizer(Tokenizer):
    lossless = True

    def tokenize(self, text: str) -> list[str]:
        return text.split()

    def detokenize(self, tokens: Sequence[str]) -> str:
        return " ".join(tokens)

    def save(self, folder: Path) -> None:
        pass

    def load(self, folder: Path) -> None:
        pass
