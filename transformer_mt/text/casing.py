"""Upper and lower case: keep it, lower it, or truecase it.

Truecasing writes the first word of a sentence as it is written inside sentences. The truecaser is sacremoses' port of
the one in Moses. It expects Moses tokens, so it gets only words and sentence ends; the text between them is unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from transformer_mt.config.languages import two_letters
from transformer_mt.files.opening import read_small

FILE = "truecase.txt"
LARGEST = 1 << 26  # bytes of that file
_WORD = re.compile(r"\w+(?:['’-]\w+)*|[.?!]")
_DOTLESS = {"tr", "az"}  # languages with ı beside i
_SENTENCE_START = re.compile(r"(?:^|[.?!]\s)[^\w\s]*\w")


def lowered(text: str, language: str) -> str:
    """The text in lower case. I is the capital of ı in Turkish and Azerbaijani, and İ that of i everywhere."""
    if two_letters(language) in _DOTLESS:
        text = text.replace("I", "ı")
    return text.replace("İ", "i").lower()


def capitalised(text: str, language: str) -> str:
    """The text as it begins a sentence. Georgian letters, and those with a capital of two letters, such as ß, stay."""
    first = "İ" if text[:1] == "i" and two_letters(language) in _DOTLESS else text[:1].title()
    return first + text[1:] if len(first) == 1 else text


class Casing:
    """The case step before a tokenizer, and its inverse.

    language: ISO code
    lossless: whether the inverse gives the same text back
    """

    def __init__(self, kind: str, language: str = "") -> None:
        self.kind = kind
        self.language = language
        self.lossless = kind == "keep"
        self._truecaser = None
        if kind == "true":
            from sacremoses import MosesTruecaser

            self._truecaser = MosesTruecaser()

    def train(self, sentences: Iterable[str]) -> None:
        if self._truecaser is not None:
            self._truecaser.train([_WORD.findall(sentence) for sentence in sentences])

    def apply(self, text: str) -> str:
        """The sentence in the case that the tokenizer sees."""
        if self.kind == "lower":
            return lowered(text, self.language)
        if self._truecaser is not None:
            words = iter(self._truecaser.truecase(" ".join(_WORD.findall(text)), use_known=True))
            return _WORD.sub(lambda _: next(words), text)
        return text

    def undo(self, text: str) -> str:
        """The text with upper case at sentence starts, if it was truecased; lower-casing cannot be undone."""
        if self.kind == "true":
            return _SENTENCE_START.sub(lambda start: start[0][:-1] + capitalised(start[0][-1], self.language), text)
        return text

    def at_start(self, text: str, line: str) -> str:
        """A text that begins a translation: with a capital, unless the line or the model has lower case there."""
        is_lower = self.kind == "lower" or line.lstrip()[:1].islower()
        return text if is_lower or not text.split(" ")[0].islower() else capitalised(text, self.language)

    def save(self, folder: Path) -> None:
        if self._truecaser is not None:
            self._truecaser.save_model(str(folder / FILE))

    def load(self, folder: Path) -> None:
        """Read what `save` wrote. Raises OSError or ValueError if it is missing or damaged."""
        if self._truecaser is not None:
            from sacremoses import MosesTruecaser

            read_small(folder / FILE, LARGEST)  # raises if the file is too large
            try:
                self._truecaser = MosesTruecaser(str(folder / FILE))
            except (LookupError, TypeError, AttributeError) as error:  # some of its versions do not check the file
                raise ValueError(f"{FILE}: {error}") from None
