"""soynlp: splits Korean words into stem and ending by cohesion scores, which it learns without a dictionary."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field
from typing_extensions import TypedDict

from transformer_mt.config.section import Positive
from transformer_mt.config.tokenizer import WordsConfig
from transformer_mt.text.tokenizers.base import Tokenizer, read_json

FILE = "soynlp.json"
JOINED = "\uffed"  # marks the start of an ending, which sticks to the token before it
_REACH = 64  # characters of a word that are scored; without this limit a word of 100,000 takes minutes


class _Saved(TypedDict):
    """What `save` writes. cohesion: the score of each word, 0 to 1."""

    cohesion: dict[str, float]


class SoynlpTokenizer(Tokenizer):
    """soynlp's LTokenizer over WordExtractor's cohesion scores.

    An ending begins with the mark JOINED. So the particle 이 and the word 이 ("this") are two different tokens, and
    `detokenize` is exact.
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
        self.scores: dict[str, float] = {}

    def train(self, sentences: Iterable[str]) -> None:
        from soynlp.word import WordExtractor

        extractor = WordExtractor(min_frequency=self.min_frequency, verbose_points=-1)
        with contextlib.redirect_stdout(io.StringIO()):  # soynlp reports its progress on stdout
            extractor.train(list(sentences))
            cohesion = extractor.all_cohesion_scores()
        self.scores = {word: round(float(scores[0]), 6) for word, scores in sorted(cohesion.items()) if scores[0] > 0}

    def tokenize(self, text: str) -> list[str]:
        from soynlp.tokenizer import LTokenizer

        splitter, tokens = LTokenizer(scores=self.scores), []
        for word in text.split():
            ((stem, _),) = splitter.tokenize(word[:_REACH], flatten=False)
            tokens.append(stem)
            if len(stem) < len(word):
                tokens.append(JOINED + word[len(stem) :])
        return tokens

    def detokenize(self, tokens: Sequence[str]) -> str:
        pieces = [token[len(JOINED) :] if token.startswith(JOINED) else f" {token}" for token in tokens]
        return "".join(pieces).strip()

    def save(self, folder: Path) -> None:
        (folder / FILE).write_text(json.dumps({"cohesion": self.scores}, ensure_ascii=False), encoding="utf-8")

    def load(self, folder: Path) -> None:
        self.scores = read_json(folder / FILE, _Saved)["cohesion"]
