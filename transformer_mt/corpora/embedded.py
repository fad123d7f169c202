"""The phrasebook as a corpus: sentences that the package itself makes, so that a first run needs no download."""

from __future__ import annotations

from collections.abc import Iterator

from transformer_mt.config.data import PhrasebookConfig
from transformer_mt.corpora.base import Corpus, Pair


class EmbeddedCorpus(Corpus):
    def __init__(self, config: PhrasebookConfig, source: str, target: str) -> None:
        self._config = config
        self._source, self._target = source, target

    def splits(self) -> tuple[str, ...]:
        return ("train", "validation", "test")

    def read(self, split: str) -> Iterator[Pair]:
        from transformer_mt.phrasebook import generate

        count = {name: getattr(self._config, name) for name in self.splits()}[split]
        pairs = generate(self._source, self._target, split, count, self._config.seed)
        for number, (source, target) in enumerate(pairs, start=1):
            yield Pair(source, target, f"phrasebook/{split}:{number}")
