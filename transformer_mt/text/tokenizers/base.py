"""What every tokenizer can do: learn from sentences, split one into tokens, and make tokens a sentence again."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from transformer_mt.config.tokenizer import TokenizerConfig


class Tokenizer(ABC):
    """A kind of tokenizer; `Options` are its keys in the config.

    lossless:     detokenize(tokenize(text)) == text for every text with single spaces and no mark of the tokenizer.
                  This is about tokens: through ids, a token that the vocabulary lacks becomes `<unk>` with every kind,
                  except SentencePiece with `byte_fallback`, which spells out what it has not seen.
    one_language: its rules are those of one language, so that two languages need two of it
    finds_words:  its tokens are words, so that scores may be counted on them
    """

    Options: ClassVar[type[TokenizerConfig]]
    lossless: ClassVar[bool] = False
    one_language: ClassVar[bool] = False
    finds_words: ClassVar[bool] = False

    def __init__(self, options: TokenizerConfig, language: str) -> None:  # noqa: B027
        """language: an ISO code."""

    def train(self, sentences: Iterable[str]) -> None:  # noqa: B027 (most kinds learn nothing)
        """Learn from the training split; does nothing if there is nothing to learn. Deterministic."""

    @abstractmethod
    def tokenize(self, text: str) -> list[str]:
        """Split a sentence; an empty one has no tokens."""

    def sample(self, text: str, random: random.Random) -> list[str]:
        """A segmentation drawn at random, for training with subword regularisation; by default the only one."""
        return self.tokenize(text)

    @abstractmethod
    def detokenize(self, tokens: Sequence[str]) -> str:
        """Natural text again, as well as it can be done."""

    def inventory(self) -> list[str] | None:
        """All tokens there are, in the order of their ids, for tokenizers that fix them; else None."""
        return None

    def save(self, folder: Path) -> None:  # noqa: B027
        """Write what was learned into a folder that exists."""

    def load(self, folder: Path) -> None:  # noqa: B027
        """Read it again. Raises OSError or ValueError if it is missing or damaged."""
