"""The phrasebook as a corpus: the package generates the sentences, so that a first run needs no download."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from transformer_mt.config.corpus import CorpusConfig
from transformer_mt.config.section import Positive
from transformer_mt.corpora.base import Corpus, Pair


class EmbeddedCorpus(Corpus):
    languages = ("ko", "en", "de")
    no_download = ("the phrasebook is part of tmt and needs no download", "Use it with  corpus: {kind: phrasebook}")

    class Options(CorpusConfig):
        kind: Literal["phrasebook"]
        train: Positive = Field(20_000, description="number of training pairs")
        validation: Positive = Field(500, description="number of validation pairs")
        test: Positive = Field(1_000, description="number of test pairs")
        seed: int = Field(1, description="seed of the grammar")

    options: Options

    def splits(self) -> tuple[str, ...]:
        return ("train", "validation", "test")

    def read(self, split: str) -> Iterator[Pair]:
        from transformer_mt.phrasebook import generate

        pairs = generate(self.source, self.target, split, getattr(self.options, split), self.options.seed)
        for number, (source, target) in enumerate(pairs, start=1):
            yield Pair(source, target, f"phrasebook/{split}:{number}")
