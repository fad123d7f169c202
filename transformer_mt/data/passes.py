"""Passes: one reading of a corpus for one direction. A config with several directions reads a corpus several times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.corpus import CorpusConfig
from transformer_mt.config.data import DataConfig
from transformer_mt.config.direction import Direction
from transformer_mt.corpora.base import Corpus
from transformer_mt.corpora.splits import TRAIN
from transformer_mt.files.encodings import MARKED, STRICT


class Origin(NamedTuple):
    """Where a pair comes from.

    tags:          before each source
    training_tags: after these, before the sources of training pairs
    """

    direction: Direction = Direction("", "")
    tags: tuple[str, ...] = ()
    training_tags: tuple[str, ...] = ()

    def tags_in(self, split: str) -> tuple[str, ...]:
        """The tags before the sources of a split."""
        return (*self.tags, *(self.training_tags if split == TRAIN else ()))


@dataclass(frozen=True)
class Pass:
    """number: of the corpus in the config, from 1; name: of its scratch files

    swapped: the corpus reads the pairs of the reversed direction
    """

    number: int
    name: str
    corpus: Corpus
    options: CorpusConfig
    origin: Origin
    swapped: bool = False


def corpus_of(options: CorpusConfig, source: str, target: str, rules: CleaningConfig) -> Corpus:
    """The corpus of an entry in the config. Raises TmtError as its constructor."""
    corpus: Corpus = options.corpus(options, source, target)
    corpus.errors = MARKED if rules.invalid == "drop" else STRICT
    return corpus


def passes_of(data: DataConfig) -> list[Pass]:
    """Corpus by corpus, in the order of the directions. Raises TmtError as the constructors of corpora."""
    passes = []
    for number, options in enumerate(data.corpus):
        tags = (options.tag,) if options.tag is not None else ()
        if data.directions is None:
            direction = data.one_direction
            corpus = corpus_of(options, *direction, data.cleaning)
            passes.append(Pass(number + 1, str(number), corpus, options, Origin(direction, (), tags)))
            continue
        for one in options.readings(data.all_directions):
            origin = Origin(one.direction, (one.direction.tag,), tags)
            corpus = corpus_of(options, *one.own, data.cleaning)
            passes.append(Pass(number + 1, f"{number}-{one.direction}", corpus, options, origin, one.swapped))
    return passes
