"""Upper and lower case: kept, lowered, or true (a sentence start written as the word is written elsewhere).

Truecasing is sacremoses' port of the Moses truecaser. That wants text tokenised its own way, so it is shown the
words and sentence ends alone; all between them stays as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

FILE = "truecase.txt"
_WORD = re.compile(r"\w+(?:['’-]\w+)*|[.?!]")
_SENTENCE_START = re.compile(r"(?:^|[.?!]\s)[^\w\s]*\w")


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
            self._truecaser.train([_WORD.findall(sentence) for sentence in sentences])

    def apply(self, text: str) -> str:
        if self.kind == "lower":
            return text.lower()
        if self._truecaser is not None:
            words = iter(self._truecaser.truecase(" ".join(_WORD.findall(text)), use_known=True))
            return _WORD.sub(lambda _: next(words), text)
        return text

    def undo(self, text: str) -> str:
        """Sentence starts in upper case again; lowered case is lost."""
        if self.kind == "true":
            return _SENTENCE_START.sub(lambda start: start[0][:-1] + start[0][-1].upper(), text)
        return text

    def save(self, folder: Path) -> None:
        if self._truecaser is not None:
            self._truecaser.save_model(str(folder / FILE))

    def load(self, folder: Path) -> None:
        if self._truecaser is not None:
            from sacremoses import MosesTruecaser

            self._truecaser = MosesTruecaser(str(folder / FILE))
