"""The second pass: learn tokenizers from the training split, tokenise everything, count words, write ids.

Tokens go through a scratch file, so that no more than a few chunks are in memory; what grows with the
corpus is only the count of distinct words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TextIO

from transformer_mt.config.schema import Config
from transformer_mt.config.tokenizer import WordsConfig
from transformer_mt.data.parallel import chunks, ordered_map
from transformer_mt.data.reading import Line
from transformer_mt.data.script import foreign_script
from transformer_mt.data.selection import Selection
from transformer_mt.data.store import StoreWriter
from transformer_mt.text.cleaning import fault_of_lengths
from transformer_mt.text.codec import Codec, Segmenter
from transformer_mt.text.vocabulary import EOS, MARKS, UNK, Vocabulary

SOURCE, TARGET = "source", "target"
BETWEEN = "\x1f"  # between tokens in a scratch file: a control character, which cleaning takes out
EXAMPLES = 5  # places shown of each kind of outlier


class Split(NamedTuple):
    """A line with the split it belongs to."""

    split: str
    line: Line


def selected(selection: Selection, split: str | None = None) -> Iterator[Split]:
    """All pairs that belong to a split (or to the named one), in the order of the corpora."""
    for stream, fates in zip(selection.streams, selection.fates, strict=True):
        wanted = {selection.names.index(name): name for name in selection.splits if split in (None, name)}
        if not any((fates == code).any() for code in wanted):
            continue
        for fate, line in zip(fates.tolist(), stream.lines(), strict=True):
            if fate in wanted:
                yield Split(wanted[fate], line)


def train_segmenters(config: Config, selection: Selection, folder: Path) -> dict[str, Segmenter]:
    """Learn from the training split and save; source and target are one object where they are shared."""
    total = selection.count("train")
    source = Segmenter(config.source_tokenizer, config.data.source)
    if config.has_shared_vocabulary:
        sample = _sample(selection, total, source.config.training_sentences // 2)
        source.train(side for line in sample for side in (line.source, line.target))
        segmenters = {SOURCE: source, TARGET: source}
    else:
        target = Segmenter(config.target_tokenizer, config.data.target)
        source.train(line.source for line in _sample(selection, total, source.config.training_sentences))
        target.train(line.target for line in _sample(selection, total, target.config.training_sentences))
        segmenters = {SOURCE: source, TARGET: target}
        target.save(folder / TARGET)
    source.save(folder / SOURCE)
    return segmenters


def _sample(selection: Selection, total: int, most: int) -> Iterator[Line]:
    """At most `most` training pairs, evenly spaced over the corpus."""
    taken = 0
    for number, (_, line) in enumerate(selected(selection, "train"), start=1):
        if number * min(most, total) // total > taken:
            taken += 1
            yield line


class Tokenised(NamedTuple):
    split: str
    source: str  # tokens, BETWEEN them
    target: str
    fault: str | None


@dataclass
class Findings:
    """What tokenising found beside tokens; summed over chunks."""

    source_words: Counter[str] = field(default_factory=Counter)
    target_words: Counter[str] = field(default_factory=Counter)
    spaced: Counter[tuple[str, str]] = field(default_factory=Counter)  # (split, side): words between spaces
    outliers: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)  # training pairs, by rule
    faulty: bytearray = field(default_factory=bytearray)  # for each pair, in order: was it dropped?

    def note_outlier(self, kind: str, place: str) -> None:
        self.outliers[kind] += 1
        if len(self.places.setdefault(kind, [])) < EXAMPLES:
            self.places[kind].append(place)

    def add(self, other: Findings) -> None:
        self.source_words.update(other.source_words)
        self.target_words.update(other.target_words)
        self.spaced.update(other.spaced)
        self.outliers.update(other.outliers)
        for kind, places in other.places.items():
            known = self.places.setdefault(kind, [])
            known += places[: EXAMPLES - len(known)]


@dataclass(frozen=True)
class Tokenising:
    """Tokenises chunks of pairs; runs in a worker process, which loads the segmenters once."""

    config: Config
    folder: Path

    @cached_property
    def segmenters(self) -> tuple[Segmenter, Segmenter]:
        source = Segmenter.load(self.folder / SOURCE)
        return source, (source if self.config.has_shared_vocabulary else Segmenter.load(self.folder / TARGET))

    def __call__(self, pairs: list[Split]) -> tuple[list[Tokenised], Findings]:
        found = Findings()
        return [self._pair(split, line, found) for split, line in pairs], found

    def _pair(self, split: str, line: Line, found: Findings) -> Tokenised:
        source, target = (segmenter.tokenize(text) for segmenter, text in zip(self.segmenters, line[:2], strict=True))
        fault = None
        if split == "train":
            fault = self._judge(source, target, line, found)
        if fault is None:
            found.spaced[split, SOURCE] += len(line.source.split())
            found.spaced[split, TARGET] += len(line.target.split())
        return Tokenised(split, BETWEEN.join(source), BETWEEN.join(target), fault)

    def _judge(self, source: list[str], target: list[str], line: Line, found: Findings) -> str | None:
        """What speaks against training on a pair; counts its words where nothing does."""
        data = self.config.data
        fault = fault_of_lengths(len(source) + 1, len(target) + 1, data.max_length, data.cleaning)
        if fault == "length ratio":
            found.note_outlier(fault, line.place)
        if fault is not None:
            return fault
        if foreign_script(line.source, data.source) or foreign_script(line.target, data.target):
            found.note_outlier("script", line.place)
        found.source_words.update(source)
        found.target_words.update(target)
        return None


def tokenise(work: Tokenising, pairs: Iterable[Split], scratch: TextIO, workers: int, total: Findings) -> Iterator[int]:
    """Tokenise all pairs into a scratch file and sum up the findings; yields the pairs done so far."""
    for lines, found in ordered_map(work, chunks(pairs), workers):
        for split, source, target, fault in lines:
            if fault is None:
                scratch.write(f"{split}\t{source}\t{target}\n")
            else:
                total.dropped[fault] += 1
            total.faulty.append(fault is not None)
        total.add(found)
        yield len(total.faulty)


def build_codecs(config: Config, segmenters: dict[str, Segmenter], found: Findings) -> dict[str, Codec]:
    """Vocabularies from what was counted, or as a subword tokenizer fixes them; one object where they are shared."""
    if config.has_shared_vocabulary:
        codec = _codec(segmenters[SOURCE], found.source_words + found.target_words)
        return {SOURCE: codec, TARGET: codec}
    return {
        SOURCE: _codec(segmenters[SOURCE], found.source_words),
        TARGET: _codec(segmenters[TARGET], found.target_words),
    }


def _codec(segmenter: Segmenter, words: Counter[str]) -> Codec:
    inventory = segmenter.tokenizer.inventory()
    if inventory is not None:
        return Codec(segmenter, Vocabulary(inventory))
    settings = segmenter.config
    assert isinstance(settings, WordsConfig)
    return Codec(segmenter, Vocabulary.count(words, settings.min_frequency, settings.max_size))


@dataclass
class Written:
    """What a store received: ids of unknown words by side, and sentences cut because of max_length."""

    pairs: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    cut: int = 0


def write_stores(
    scratch: TextIO, folder: Path, splits: list[str], codecs: dict[str, Codec], max_length: int
) -> dict[str, Written]:
    """Turn the scratch file of tokens into one store a split; outside training, sentences are cut at max_length."""
    writers = {split: StoreWriter(folder / split) for split in splits}
    written = {split: Written() for split in splits}
    for text in scratch:
        split, *tokens = text[:-1].split("\t")
        ids = {
            side: codecs[side].vocabulary.encode(joined.split(BETWEEN) if joined else [])
            for side, joined in zip((SOURCE, TARGET), tokens, strict=True)
        }
        note = written[split]
        note.pairs += 1
        note.unknown.update({side: side_ids.count(UNK) for side, side_ids in ids.items()})
        note.cut += any(len(side_ids) >= max_length for side_ids in ids.values())
        writers[split].append(*([*side_ids[: max_length - 1], EOS] for side_ids in ids.values()))
    for writer in writers.values():
        writer.__exit__(None, None, None)
    return written


def kinds_of_tokens(codec: Codec) -> int:
    """Entries of a vocabulary beyond the four marks."""
    return len(codec) - len(MARKS)
