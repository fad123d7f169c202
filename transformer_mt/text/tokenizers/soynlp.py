"""soynlp: Korean words split into stem and ending, from cohesion scores learned without any dictionary."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from transformer_mt.text.spacing import Spacing
from transformer_mt.text.tokenizers.base import Tokenizer

FILE = "soynlp.json"


class SoynlpTokenizer(Tokenizer):
    """soynlp's LTokenizer over WordExtractor's cohesion scores; the way back joins particles to their stems."""

    def __init__(self, min_frequency: int = 5) -> None:
        self.min_frequency = min_frequency
        self.spacing = Spacing()
        self._use({})

    def train(self, sentences: Iterable[str]) -> None:
        from soynlp.word import WordExtractor

        texts = list(sentences)
        extractor = WordExtractor(min_frequency=self.min_frequency, verbose_points=-1)
        with contextlib.redirect_stdout(io.StringIO()):  # soynlp reports its progress on stdout
            extractor.train(texts)
            cohesion = extractor.all_cohesion_scores()
        self._use({word: round(scores[0], 6) for word, scores in sorted(cohesion.items()) if scores[0] > 0})
        self.spacing = Spacing.learn(map(self._tokens_and_spaces, texts))

    def tokenize(self, text: str) -> list[str]:
        return self._tokens_and_spaces(text)[0]

    def detokenize(self, tokens: Sequence[str]) -> str:
        return self.spacing.join(tokens)

    def _use(self, scores: dict[str, float]) -> None:
        from soynlp.tokenizer import LTokenizer

        self.scores = scores
        self._split = LTokenizer(scores=scores)

    def _tokens_and_spaces(self, text: str) -> tuple[list[str], list[bool]]:
        tokens, spaces = [], []
        for left, right in self._split.tokenize(text, flatten=False):
            for token, space in ((left, True), (right, False)):
                if token:
                    tokens.append(token)
                    spaces.append(space)
        return tokens, spaces

    def save(self, folder: Path) -> None:
        values = {"cohesion": self.scores, "spacing": self.spacing.to_json()}
        (folder / FILE).write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")

    def load(self, folder: Path) -> None:
        values = json.loads((folder / FILE).read_text(encoding="utf-8"))
        self._use(values["cohesion"])
        self.spacing = Spacing.from_json(values["spacing"])
