"""The phrasebook as a corpus: sentences that the package itself makes, so that a first run needs no download."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from transformer_mt.config.corpus import CorpusConfig
from transformer_mt.config.section import Positive
from transformer_mt.corpora.base import Corpus, Pair


class EmbeddedCorpus(Corpus):
    languages = ("ko", "en", "de")
    no_download = ("the phrasebook comes with tmt; nothing is to be downloaded", "corpus: {kind: phrasebook}")

    class Options(CorpusConfig):
        kind: Literal["phrasebook"]
        train: Positive = Field(20_000, description="number of training pairs")
        validation: Positive = Field(500, description="number of validation pairs")
        test: Positive = Field(1_000, description="number of test pairs")
        seed: int = Field(1, description="seed of the grammar")

    def __init__(self, options: Options, source: str, target: str) -> None:
        self._config = options
        self._source, self._target = source, target

    def splits(self) -> tuple[str, ...]:
        return ("train", "validation", "test")

    def read(self, split: str) -> Iterator[Pair]:
        from transformer_mt.phrasebook import generate

        count = {name: getattr(self._config, name) for name in self.splits()}[split]
        pairs = generate(self._source, self._target, split, count, self._config.seed)
        for number, (source, target) in enumerate(pairs, start=1):
            yield Pair(source, target, f"phrasebook/{split}:{number}")
