"""The first pass: read and clean a corpus, and write the remaining pairs to scratch files.

A stream is one split of one corpus. A second file holds four 8-byte hashes for each pair (`KEYS`), so that duplicates
and leaks are found without reading the text again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.corpus import SplitConfig
from transformer_mt.corpora.base import WHOLE, Pair
from transformer_mt.data.languages import PLACES, LanguageCheck, Languages, merge, require_sentences
from transformer_mt.data.parallel import Progress, Workers, chunks
from transformer_mt.text.cleaning import PairKeys, clean_text, fault_of_pair, keys_of_pair, wrongly_decoded

KEYS = np.dtype([(name, "<u8") for name in PairKeys._fields])
_BREAKS = re.compile(r"[\t\n\r]")  # scratch files separate fields by tabs and lines by line breaks
EXAMPLES = 3  # pairs kept of each rule
LANGUAGE, DECODED = "language", "decoded"  # a rule that drops pairs, and a kind of outlier
_SURROGATES = re.compile("[\ud800-\udfff]")  # JSON can contain lone surrogates; UTF-8 cannot


class Line(NamedTuple):
    """A pair in a scratch file. In the file, a raw side is empty if cleaning did not change it.

    place: `file:line`, for reports
    """

    source: str
    target: str
    place: str
    raw_source: str
    raw_target: str


Examples = dict[str, list[Pair]]  # the first pairs, by the rule that drops them


@dataclass
class CleaningCounts:
    """What cleaning some pairs has found.

    changed:   pairs, by the rule that changed a side
    dropped:   pairs, by the first rule that they violate; examples: the first of them
    outliers:  pairs, by kind; places: the first of them
    languages: of a sample of the pairs, by file
    """

    read: int = 0
    kept: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    examples: Examples = field(default_factory=dict)
    outliers: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)
    languages: Languages = field(default_factory=dict)

    def add(self, other: CleaningCounts) -> None:
        self.read += other.read
        self.kept += other.kept
        self.changed.update(other.changed)
        self.dropped.update(other.dropped)
        self.outliers.update(other.outliers)
        for rule, pairs in other.examples.items():
            self.examples[rule] = [*self.examples.get(rule, ()), *pairs][:EXAMPLES]
        for kind, places in other.places.items():
            self.places[kind] = [*self.places.get(kind, ()), *places][:PLACES]
        merge(self.languages, other.languages)

    def drop(self, rule: str, pair: Pair) -> None:
        self.dropped[rule] += 1
        self.examples[rule] = [*self.examples.get(rule, ()), pair][:EXAMPLES]


@dataclass
class Stream:
    """One split of one corpus, cleaned, in a scratch file."""

    split: str
    weight: float
    division: SplitConfig | None
    file: Path
    counts: CleaningCounts = field(default_factory=CleaningCounts)

    @property
    def keys(self) -> Path:
        return self.file.with_suffix(".keys")

    @property
    def trains(self) -> bool:
        """Whether its pairs can become training pairs; then the rules for training apply."""
        return self.split in ("train", WHOLE)

    def lines(self) -> Iterator[Line]:
        with self.file.open(encoding="utf-8", newline="\n") as file:
            for text in file:
                source, target, place, raw_source, raw_target = text[:-1].split("\t")
                yield Line(source, target, place, raw_source or source, raw_target or target)


class Cleaned(NamedTuple):
    """A chunk of pairs after cleaning: the content for the files of the stream, and counts."""

    lines: str
    keys: bytes
    counts: CleaningCounts


@dataclass(frozen=True)
class Cleaner:
    """Cleans chunks of pairs in a worker process. source, target: languages.

    drops_languages: whether to drop pairs with a sentence in another language
    """

    rules: CleaningConfig
    source: str
    target: str
    trains: bool
    drops_languages: bool = False

    def __call__(self, pairs: list[Pair]) -> Cleaned:
        rules, lines, keys = self.rules, list[str](), list[bytes]()
        counts = CleaningCounts(len(pairs))
        check = LanguageCheck(self.source, self.target, True, counts.languages) if self.drops_languages else None
        for pair in pairs:
            # These replacements do not depend on the rules: the pair must fit into a line of UTF-8.
            raw_source, raw_target, place = (_SURROGATES.sub("\ufffd", _BREAKS.sub(" ", text)) for text in pair)
            by_rules: set[str] = set()
            source = clean_text(raw_source, rules, self.source, by_rules.add)
            target = clean_text(raw_target, rules, self.target, by_rules.add)
            counts.changed.update(by_rules)
            fault = fault_of_pair(source, target, rules, self.trains)
            if fault is None and check is not None and check(Pair(source, target, place)):
                fault = LANGUAGE
            if fault is not None:
                counts.drop(fault, Pair(source, target, place))
                continue
            if wrongly_decoded(raw_source) or wrongly_decoded(raw_target):
                counts.outliers[DECODED] += 1
                counts.places[DECODED] = [*counts.places.get(DECODED, ()), place][:PLACES]
            raws = "" if raw_source == source else raw_source, "" if raw_target == target else raw_target
            lines.append("\t".join((source, target, place, *raws)) + "\n")
            keys += keys_of_pair(source, target)
        counts.kept = len(lines)
        return Cleaned("".join(lines), b"".join(keys), counts)


def clean_stream(
    stream: Stream,
    pairs: Iterator[Pair],
    cleaner: Cleaner,
    workers: Workers,
    progress: Progress,
    check: LanguageCheck | None = None,
) -> None:
    """Write the files of a stream and fill its counts. Raises TmtError if a file has no sentences of its languages.

    check: checks a sample of the pairs in this process, because each process needs half a second to load the languages
    """
    if check is not None:
        pairs = _sampled(pairs, check)
        stream.counts.languages = check.found
    with stream.file.open("w", encoding="utf-8", newline="\n") as lines, stream.keys.open("wb") as keys:
        for part in workers.map(cleaner, chunks(pairs)):
            lines.write(part.lines)
            keys.write(part.keys)
            stream.counts.add(part.counts)
            progress(f"reading {stream.split}", stream.counts.read)
    require_sentences(stream.counts.languages, cleaner.source, cleaner.target)


def _sampled(pairs: Iterator[Pair], check: LanguageCheck) -> Iterator[Pair]:
    for pair in pairs:
        if pair.source != pair.target:  # cleaning counts these
            check(pair)
        yield pair
