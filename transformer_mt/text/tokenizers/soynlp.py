"""soynlp: Korean words split into stem and ending, from cohesion scores learned without any dictionary."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from transformer_mt.config.section import Positive
from transformer_mt.config.tokenizer import WordsConfig
from transformer_mt.text.tokenizers.base import Tokenizer

FILE = "soynlp.json"
JOINED = "\uffed"  # begins an ending: the token sticks to the one before it
_REACH = 64  # soynlp scores no longer prefix; without this bound a word of 100,000 characters takes minutes


class SoynlpTokenizer(Tokenizer):
    """soynlp's LTokenizer over WordExtractor's cohesion scores.

    An ending wears the mark JOINED, so that the particle 이 and the word 이 ("this") are two tokens and the
    way back is exact.
    """

    lossless = True
    one_language = True
    finds_words = True

    class Options(WordsConfig):
        kind: Literal["soynlp"]
        training_sentences: Positive = Field(
            200_000, description="at most this many training pairs are read to learn the cohesion scores"
        )
        min_word_frequency: Positive = Field(5, description="substrings seen less often get no cohesion score")

    def __init__(self, options: Options, language: str) -> None:
        self.min_frequency = options.min_word_frequency
        self._use({})

    def train(self, sentences: Iterable[str]) -> None:
        from soynlp.word import WordExtractor

        extractor = WordExtractor(min_frequency=self.min_frequency, verbose_points=-1)
        with contextlib.redirect_stdout(io.StringIO()):  # soynlp reports its progress on stdout
            extractor.train(list(sentences))
            cohesion = extractor.all_cohesion_scores()
        self._use({word: round(float(scores[0]), 6) for word, scores in sorted(cohesion.items()) if scores[0] > 0})

    def tokenize(self, text: str) -> list[str]:
        return [token for word in text.split() for token in self._parts(word)]

    def detokenize(self, tokens: Sequence[str]) -> str:
        pieces = [token[len(JOINED) :] if token.startswith(JOINED) else f" {token}" for token in tokens]
        return "".join(pieces).strip()

    def _use(self, scores: dict[str, float]) -> None:
        from soynlp.tokenizer import LTokenizer

        self.scores = scores
        self._split = LTokenizer(scores=scores)

    def _parts(self, word: str) -> Iterator[str]:
        ((stem, _),) = self._split.tokenize(word[:_REACH], flatten=False)
        yield stem
        if len(stem) < len(word):
            yield JOINED + word[len(stem) :]

    def save(self, folder: Path) -> None:
        (folder / FILE).write_text(json.dumps({"cohesion": self.scores}, ensure_ascii=False), encoding="utf-8")

    def load(self, folder: Path) -> None:
        self._use(json.loads((folder / FILE).read_text(encoding="utf-8"))["cohesion"])
