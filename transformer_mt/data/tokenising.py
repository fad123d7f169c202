"""The second pass: learn tokenizers from the training split, tokenise everything, count words.

Tokens go through a scratch file, so that no more than a few chunks are in memory; what grows with the
corpus is the count of distinct words, and the numbers of the pairs that are dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TextIO

from transformer_mt.config.schema import Config
from transformer_mt.data.parallel import Workers, chunks
from transformer_mt.data.reading import Line
from transformer_mt.data.selection import Selected, Selection
from transformer_mt.data.store import SIDES
from transformer_mt.text.cleaning import LOPSIDED, fault_of_lengths
from transformer_mt.text.codec import Segmenter
from transformer_mt.text.script import foreign_script

SOURCE, TARGET = SIDES
BETWEEN = "\x1f"  # between tokens in a scratch file; cleaning makes a space of it, whatever its rules
SCRIPT = "script"  # kind of outlier: none of a sentence's letters is of its language
EXAMPLES = 5  # places shown of each kind of outlier


def train_segmenters(config: Config, selection: Selection, folder: Path) -> dict[str, Segmenter]:
    """Learn from the training split and save; source and target are one object where they are shared."""
    source = Segmenter(config.source_tokenizer, config.data.source)
    if config.has_shared_tokenizer:
        sample = _sample(selection, max(1, source.config.training_sentences // 2))
        source.train(side for line in sample for side in (line.source, line.target))
        segmenters = {SOURCE: source, TARGET: source}
    else:
        target = Segmenter(config.target_tokenizer, config.data.target)
        source.train(line.source for line in _sample(selection, source.config.training_sentences))
        target.train(line.target for line in _sample(selection, target.config.training_sentences))
        segmenters = {SOURCE: source, TARGET: target}
        target.save(folder / TARGET)
    source.save(folder / SOURCE)
    return segmenters


def _sample(selection: Selection, most: int) -> Iterator[Line]:
    """At most `most` training pairs, evenly spaced over the corpus."""
    total, taken = selection.count("train"), 0
    for count, pair in enumerate(selection.selected("train"), start=1):
        if count * min(most, total) // total > taken:
            taken += 1
            yield pair.line


@dataclass
class Findings:
    """What tokenising found beside tokens; summed over chunks."""

    words: dict[str, Counter[str]] = field(default_factory=lambda: {side: Counter() for side in SIDES})  # of training
    spaced: Counter[tuple[str, str]] = field(default_factory=Counter)  # (split, side): words between spaces
    outliers: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)  # of the first outliers of each kind
    pairs: int = 0
    dropped: dict[str, list[int]] = field(default_factory=dict)  # numbers of pairs, by the rule that they break

    def note_outlier(self, kind: str, place: str) -> None:
        self.outliers[kind] += 1
        self._show(kind, [place])

    def add(self, other: Findings) -> None:
        for side in SIDES:
            self.words[side].update(other.words[side])
        self.spaced.update(other.spaced)
        self.outliers.update(other.outliers)
        for kind, places in other.places.items():
            self._show(kind, places)
        self.pairs += other.pairs
        for rule, numbers in other.dropped.items():
            self.dropped.setdefault(rule, []).extend(numbers)

    def _show(self, kind: str, places: list[str]) -> None:
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
        return source, (source if self.config.has_shared_tokenizer else Segmenter.load(self.folder / TARGET))

    def __call__(self, pairs: list[Selected]) -> tuple[str, Findings]:
        """Scratch lines (split, source tokens, target tokens) of the pairs without fault."""
        found = Findings(pairs=len(pairs))
        return "".join(self._pair(pair, found) for pair in pairs), found

    def _pair(self, pair: Selected, found: Findings) -> str:
        split, line, number = pair
        source, target = (segmenter.tokenize(text) for segmenter, text in zip(self.segmenters, line[:2], strict=True))
        fault = self._judge(source, target, line, found) if split == "train" else None
        if fault is not None:
            found.dropped.setdefault(fault, []).append(number)
            return ""
        found.spaced[split, SOURCE] += len(line.source.split())
        found.spaced[split, TARGET] += len(line.target.split())
        return f"{split}\t{BETWEEN.join(source)}\t{BETWEEN.join(target)}\n"

    def _judge(self, source: list[str], target: list[str], line: Line, found: Findings) -> str | None:
        """What speaks against training on a pair; counts its words where nothing does."""
        data = self.config.data
        fault = fault_of_lengths(len(source) + 1, len(target) + 1, data.max_length, data.cleaning)
        if fault == LOPSIDED:
            found.note_outlier(LOPSIDED, line.place)
        if fault is not None:
            return fault
        if foreign_script(line.source, data.source) or foreign_script(line.target, data.target):
            found.note_outlier(SCRIPT, line.place)
        found.words[SOURCE].update(source)
        found.words[TARGET].update(target)
        return None


def tokenise(
    work: Tokenising, pairs: Iterable[Selected], scratch: TextIO, workers: Workers, total: Findings
) -> Iterator[int]:
    """Tokenise all pairs into a scratch file and sum up the findings; yields the pairs done so far."""
    for lines, found in workers.map(work, chunks(pairs)):
        scratch.write(lines)
        total.add(found)
        yield total.pairs
