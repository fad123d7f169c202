"""Upper and lower case: kept, lowered, or true (a sentence start written as the word is written elsewhere).

Truecasing is sacremoses' port of the Moses truecaser.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

FILE = "truecase.txt"


class Casing:
    """The case step before a tokenizer, and its way back."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._truecaser = None
        if kind == "true":
            from sacremoses import MosesTruecaser

            self._truecaser = MosesTruecaser()

    @property
    def lossless(self) -> bool:
        return self.kind == "keep"

    def train(self, sentences: Iterable[str]) -> None:
        if self._truecaser is not None:
            self._truecaser.train([sentence.split() for sentence in sentences])

    def apply(self, text: str) -> str:
        if self.kind == "lower":
            return text.lower()
        if self._truecaser is not None:
            return " ".join(self._truecaser.truecase(text))
        return text

    def undo(self, text: str) -> str:
        """Sentence starts in upper case again; lowered case is lost."""
        if self.kind == "true":
            return text[:1].upper() + text[1:]
        return text

    def save(self, folder: Path) -> None:
        if self._truecaser is not None:
            self._truecaser.save_model(str(folder / FILE))

    def load(self, folder: Path) -> None:
        if self._truecaser is not None:
            from sacremoses import MosesTruecaser

            self._truecaser = MosesTruecaser(str(folder / FILE))
