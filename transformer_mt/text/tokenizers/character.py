"""Single characters; a space is the token `SPACE`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from transformer_mt.config.tokenizer import WordsConfig
from transformer_mt.text.tokenizers.base import Tokenizer

SPACE = "\u2581"  # the visible space, as in SentencePiece


class CharacterTokenizer(Tokenizer):
    lossless = True

    class Options(WordsConfig):
        kind: Literal["character"]

    def tokenize(self, text: str) -> list[str]:
        return list(text.replace(" ", SPACE))

    def detokenize(self, tokens: Sequence[str]) -> str:
        return "".join(tokens).replace(SPACE, " ")
