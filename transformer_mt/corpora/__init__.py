"""Corpora: one reader a kind. `open_corpus` finds the one that an entry of `data.corpus` asks for."""

from __future__ import annotations

from transformer_mt.config import data as kinds
from transformer_mt.corpora.base import WHOLE, Corpus, Pair

__all__ = ["WHOLE", "Corpus", "Pair", "open_corpus"]


def open_corpus(config: kinds.Corpus, source: str, target: str) -> Corpus:
    """The corpus of a config entry, read from language `source` to language `target`. Touches no file yet."""
    if isinstance(config, kinds.PhrasebookConfig):
        from transformer_mt.corpora.embedded import EmbeddedCorpus

        return EmbeddedCorpus(config, source, target)
    if isinstance(config, kinds.Multi30kConfig):
        from transformer_mt.corpora.multi30k import Multi30kCorpus

        return Multi30kCorpus(config, source, target)
    if isinstance(config, kinds.AihubConfig):
        from transformer_mt.corpora.aihub import AihubCorpus

        return AihubCorpus(config, source, target)
    return _open_files(config)


def _open_files(config: kinds.TextConfig | kinds.TsvConfig | kinds.CsvConfig | kinds.JsonlConfig) -> Corpus:
    from transformer_mt.corpora import tables, text

    if isinstance(config, kinds.TextConfig):
        return text.TextCorpus(config)
    if isinstance(config, kinds.TsvConfig):
        return tables.TsvCorpus(config)
    if isinstance(config, kinds.CsvConfig):
        return tables.CsvCorpus(config)
    return tables.JsonlCorpus(config)
