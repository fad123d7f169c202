"""The third pass: vocabularies from what was counted, and tokens to ids, one store a split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from transformer_mt.config.tokenizer import WordsConfig
from transformer_mt.data.store import SIDES, StoreWriter
from transformer_mt.data.tokenising import BETWEEN, SOURCE, TARGET
from transformer_mt.text.codec import Codec, Segmenter
from transformer_mt.text.vocabulary import EOS, UNK, Vocabulary

STEP = 10_000  # pairs between two signs of life


def build_codecs(
    segmenters: Mapping[str, Segmenter], words: Mapping[str, Counter[str]], shared: bool
) -> dict[str, Codec]:
    """Vocabularies from counted words, or as a subword tokenizer fixes them. shared: one for both sides."""
    if shared:
        both = words[SOURCE] + words[TARGET]
        source = _codec(segmenters[SOURCE], both)
        one_tokenizer = segmenters[SOURCE] is segmenters[TARGET]
        return {SOURCE: source, TARGET: source if one_tokenizer else _codec(segmenters[TARGET], both)}
    return {side: _codec(segmenters[side], words[side]) for side in SIDES}


def _codec(segmenter: Segmenter, words: Counter[str]) -> Codec:
    inventory = segmenter.tokenizer.inventory()
    if inventory is not None:
        return Codec(segmenter, Vocabulary(inventory))
    settings = segmenter.config
    assert isinstance(settings, WordsConfig)
    return Codec(segmenter, Vocabulary.count(words, settings.min_frequency, settings.max_size))


@dataclass
class SideCounts:
    """lengths: sentences by number of tokens, without end marks and before any cut."""

    lengths: Counter[int] = field(default_factory=Counter)
    unknown: int = 0


@dataclass
class Written:
    """What a store received. cut: pairs with a sentence cut at max_length."""

    sides: dict[str, SideCounts] = field(default_factory=lambda: {side: SideCounts() for side in SIDES})
    pairs: int = 0
    cut: int = 0

    def count(self, pair: Sequence[Sequence[int]], most: int) -> None:
        self.pairs += 1
        self.cut += max(map(len, pair)) > most
        for counts, ids in zip(self.sides.values(), pair, strict=True):
            counts.lengths[len(ids)] += 1
            counts.unknown += ids.count(UNK)


def write_stores(
    scratch: Iterable[str],
    folder: Path,
    written: Mapping[str, Written],
    codecs: Mapping[str, Codec],
    max_length: int,
) -> Iterator[int]:
    """Turn tokens into a store for each split in `written`, and count; yields the pairs done now and then.

    scratch: lines of split, source tokens and target tokens.  Sentences are cut to max_length, end mark included.
    """
    vocabularies = [codecs[side].vocabulary for side in SIDES]
    with ExitStack() as stack:
        writers = {split: stack.enter_context(StoreWriter(folder / split)) for split in written}
        for number, line in enumerate(scratch, start=1):
            split, *sides = line[:-1].split("\t")
            pair = [
                vocabulary.encode(tokens.split(BETWEEN) if tokens else ())
                for vocabulary, tokens in zip(vocabularies, sides, strict=True)
            ]
            written[split].count(pair, max_length - 1)
            writers[split].append(*([*ids[: max_length - 1], EOS] for ids in pair))
            if number % STEP == 0:
                yield number
