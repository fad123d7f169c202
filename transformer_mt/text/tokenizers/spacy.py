"""spaCy's rule-based tokenizers (`spacy.blank`): words and punctuation, without a model to download."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from transformer_mt.config.tokenizer import WordsConfig
from transformer_mt.errors import TmtError
from transformer_mt.text.spacing import SavedSpacing, Spacing
from transformer_mt.text.tokenizers.base import Tokenizer, read_json

if TYPE_CHECKING:
    from spacy.tokens import Token

FILE = "spacing.json"
LONGEST_RUN = 1_000  # characters without a space that are split together: spaCy's time grows with their square
RENEWAL = 100_000  # after this many texts, spaCy gets a new vocabulary
_LONG_RUN = re.compile(rf"\S{{{LONGEST_RUN}}}(?=\S)")


class SpacyTokenizer(Tokenizer):
    """Words and punctuation marks; `detokenize` restores spaces as learned from the training split.

    A longer run of characters without a space than LONGEST_RUN is split there, too.
    A double space gives a token " ", as spaCy always does; `detokenize` drops it.
    """

    one_language = True
    finds_words = True

    class Options(WordsConfig):
        kind: Literal["spacy"]

    def __init__(self, options: Options, language: str) -> None:
        """Raises TmtError if spaCy has no rules for the language."""
        import spacy

        self._blank = partial(spacy.blank, language)
        try:
            self._tokenizer, self._texts_read = self._blank().tokenizer, 0
        except ImportError as error:
            raise TmtError(
                f"spaCy has no tokenizer for '{language}' ({str(error).splitlines()[0]})",
                place="tokenizer.kind",
                remedy="Use kind: soynlp (Korean), sentencepiece or whitespace for this side.",
            ) from None
        self.spacing = Spacing()

    def train(self, sentences: Iterable[str]) -> None:
        split = (self._split(" ".join(text.split())) for text in sentences)
        self.spacing = Spacing.learn(
            ([word.text for word in words], [True, *(bool(word.whitespace_) for word in words[:-1])]) for words in split
        )

    def tokenize(self, text: str) -> list[str]:
        return [token.text for token in self._split(text)]

    def detokenize(self, tokens: Sequence[str]) -> str:
        return self.spacing.join(tokens)

    def _split(self, text: str) -> list[Token]:
        if self._texts_read == RENEWAL:  # spaCy stores every word it reads, so memory would grow with the text
            self._tokenizer, self._texts_read = self._blank().tokenizer, 0
        self._texts_read += 1
        cuts = [run.end() for run in _LONG_RUN.finditer(text)]
        return [token for start, end in pairwise([0, *cuts, len(text)]) for token in self._tokenizer(text[start:end])]

    def save(self, folder: Path) -> None:
        (folder / FILE).write_text(json.dumps(self.spacing.to_json(), ensure_ascii=False), encoding="utf-8")

    def load(self, folder: Path) -> None:
        self.spacing = Spacing.from_json(read_json(folder / FILE, SavedSpacing))
