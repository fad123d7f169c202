"""What every tokenizer can do: learn from sentences, split one into tokens, and make tokens a sentence again."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path


class Tokenizer(ABC):
    """lossless: detokenize(tokenize(text)) == text for every text with single spaces and no mark of the tokenizer.

    This speaks of tokens. Through ids, a token that the vocabulary lacks becomes `<unk>` with every kind;
    SentencePiece with `byte_fallback` alone spells out what it has not seen and loses nothing.
    """

    lossless: bool = False

    def train(self, sentences: Iterable[str]) -> None:  # noqa: B027 (most kinds learn nothing)
        """Learn from the training split; does nothing where there is nothing to learn. Deterministic."""

    @abstractmethod
    def tokenize(self, text: str) -> list[str]:
        """Split a sentence; an empty one has no tokens."""

    def sample(self, text: str, random: random.Random) -> list[str]:
        """A segmentation drawn at random, for training with subword regularisation; here: the only one."""
        return self.tokenize(text)

    @abstractmethod
    def detokenize(self, tokens: Sequence[str]) -> str:
        """Natural text again, as well as it can be done."""

    def inventory(self) -> list[str] | None:
        """All tokens there are, in the order of their ids, for tokenizers that fix them; else None."""
        return None

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write what was learned into a folder that exists."""

    @abstractmethod
    def load(self, folder: Path) -> None:
        """Read it again. Raises OSError or ValueError where it is missing or damaged."""
