"""The second pass: learn tokenizers from the training split, tokenise all pairs into stores, and count words.

A vocabulary needs the counts of all words. Until they are known, the stores contain a number for each word: words
are numbered by first occurrence (`WordNumbers`). Memory grows only with the distinct words and the dropped pairs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

from transformer_mt.config.schema import Config
from transformer_mt.data.languages import PLACES
from transformer_mt.data.parallel import Progress, Workers, chunks
from transformer_mt.data.reading import Line
from transformer_mt.data.selection import Selected, Selection
from transformer_mt.data.store import SIDES, SOURCE, TARGET, StoreWriter
from transformer_mt.text.cleaning import LOPSIDED, fault_of_lengths
from transformer_mt.text.codec import Segmenter
from transformer_mt.text.script import foreign_script
from transformer_mt.text.vocabulary import EOS, MARKS

SCRIPT = "script"  # kind of outlier: a sentence without any letter of its language
EXAMPLES_OF_CHUNK = 3  # pairs kept of each split, to be shown
Item = TypeVar("Item")


def evenly(items: list[Item], most: int) -> list[Item]:
    """At most `most` items, from the beginning, the end and evenly between them."""
    return (
        [items[place * (len(items) - 1) // max(1, most - 1)] for place in range(most)] if len(items) > most else items
    )


def train_segmenters(config: Config, selection: Selection, folder: Path) -> dict[str, Segmenter]:
    """Learn tokenizers from the training split and save them; by side. A shared tokenizer is one object."""
    source = Segmenter(config.source_tokenizer, config.data.source)
    if config.has_shared_tokenizer:
        sample = sample_of(selection, max(1, source.config.training_sentences // 2))
        source.train(side for line in sample for side in (line.source, line.target))
        segmenters = {SOURCE: source, TARGET: source}
    else:
        target = Segmenter(config.target_tokenizer, config.data.target)
        source.train(line.source for line in sample_of(selection, source.config.training_sentences))
        target.train(line.target for line in sample_of(selection, target.config.training_sentences))
        segmenters = {SOURCE: source, TARGET: target}
        target.save(folder / TARGET)
    source.save(folder / SOURCE)
    return segmenters


def sample_of(selection: Selection, most: int) -> Iterator[Line]:
    """At most `most` training pairs, evenly spaced over the corpus."""
    total, taken = selection.count("train"), 0
    for count, pair in enumerate(selection.selected("train"), start=1):
        if count * min(most, total) // total > taken:
            taken += 1
            yield pair.line


class Tokenised(NamedTuple):
    """A pair as tokens, cut to `max_length` minus the end token."""

    split: str
    source: list[str]
    target: list[str]


@dataclass
class Findings:
    """What tokenising has counted. Dropped pairs are counted only in `pairs`, `outliers` and `dropped`.

    lengths:  by split and side: sentences by number of tokens, without end tokens and before cutting
    words:    by split and side: occurrences of each token, before cutting
    spaced:   by split and side: words separated by spaces
    cut:      by split: pairs with a sentence that was cut to `max_length`
    outliers: training pairs, by kind of outlier; places: the first of them
    dropped:  numbers of training pairs, by the rule that they violate
    examples: by split: pairs as text, at most EXAMPLES_OF_CHUNK of each chunk, in the order of the corpus
    """

    pairs: int = 0
    lengths: defaultdict[tuple[str, str], Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    words: defaultdict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    spaced: Counter[tuple[str, str]] = field(default_factory=Counter)
    cut: Counter[str] = field(default_factory=Counter)
    outliers: Counter[str] = field(default_factory=Counter)
    places: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    dropped: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    examples: defaultdict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, other: Findings) -> None:
        self.pairs += other.pairs
        for part in other.words:
            self.lengths[part].update(other.lengths[part])
            self.words[part].update(other.words[part])
        self.spaced.update(other.spaced)
        self.cut.update(other.cut)
        self.outliers.update(other.outliers)
        for kind, places in other.places.items():
            self.places[kind] = [*self.places[kind], *places][:PLACES]
        for rule, numbers in other.dropped.items():
            self.dropped[rule] += numbers
        for split, pairs in other.examples.items():
            self.examples[split] += pairs


@dataclass(frozen=True)
class Tokenising:
    """Tokenises chunks of pairs in a worker process, which loads the segmenters once."""

    config: Config
    folder: Path

    @cached_property
    def segmenters(self) -> tuple[Segmenter, Segmenter]:
        source = Segmenter.load(self.folder / SOURCE)
        return source, (source if self.config.has_shared_tokenizer else Segmenter.load(self.folder / TARGET))

    def __call__(self, pairs: list[Selected]) -> tuple[list[Tokenised], Findings]:
        """The tokens of all pairs that are not dropped."""
        findings, tokenised = Findings(len(pairs)), []
        data, most = self.config.data, self.config.data.max_length - 1
        for split, line, number in pairs:
            source, target = self.segmenters[0].tokenize(line.source), self.segmenters[1].tokenize(line.target)
            if split == "train":
                fault = fault_of_lengths(len(source) + 1, len(target) + 1, data.max_length, data.cleaning)
                foreign = foreign_script(line.source, data.source) or foreign_script(line.target, data.target)
                outlier = fault if fault == LOPSIDED else SCRIPT if foreign and fault is None else None
                if outlier is not None:
                    findings.outliers[outlier] += 1
                    findings.places[outlier] = [*findings.places[outlier], line.place][:PLACES]
                if fault is not None:
                    findings.dropped[fault].append(number)
                    continue
            findings.cut[split] += max(len(source), len(target)) > most
            for side, text, tokens in (SOURCE, line.source, source), (TARGET, line.target, target):
                findings.lengths[split, side][len(tokens)] += 1
                findings.words[split, side].update(tokens)
                findings.spaced[split, side] += len(text.split())
            findings.examples[split].append((line.source, line.target))
            tokenised.append(Tokenised(split, source[:most], target[:most]))
        for split, pairs_of_split in findings.examples.items():
            findings.examples[split] = evenly(pairs_of_split, EXAMPLES_OF_CHUNK)
        return tokenised, findings


class WordNumbers(dict[str, int]):
    """Word -> number. Numbers start after the marks; a word that is looked up for the first time gets the next one."""

    def __missing__(self, word: str) -> int:
        return self.setdefault(word, len(MARKS) + len(self))


def tokenise(
    work: Tokenising, selection: Selection, workers: Workers, progress: Progress
) -> tuple[Findings, Mapping[str, WordNumbers]]:
    """Tokenise all selected pairs into a store for each split, and drop those that violate a rule.

    The stores contain word numbers and end tokens. Returns the findings, and the word numbers by side.
    """
    findings, numbers = Findings(), {side: WordNumbers() for side in SIDES}
    source, target = (numbers[side].__getitem__ for side in SIDES)
    with ExitStack() as stack:
        stores = {split: stack.enter_context(StoreWriter(work.folder / split)) for split in selection.splits}
        for pairs, more in workers.map(work, chunks(selection.selected())):
            for pair in pairs:
                stores[pair.split].append([*map(source, pair.source), EOS], [*map(target, pair.target), EOS])
            findings.add(more)
            progress("tokenising", findings.pairs)
    selection.discard(findings.dropped)
    return findings, numbers
