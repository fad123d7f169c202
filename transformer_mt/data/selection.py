"""The split of each pair: drop duplicates, divide whole corpora, remove leaks from training.

Works on hashes and reads them in blocks. In addition to one block, it needs a few bytes of memory for each pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.corpus import SplitConfig
from transformer_mt.corpora.base import WHOLE, Pair
from transformer_mt.corpora.tables import listed
from transformer_mt.data.reading import EXAMPLES, KEYS, LANGUAGE, Examples, Line, Stream
from transformer_mt.errors import TmtError
from transformer_mt.text.cleaning import LOPSIDED, TOO_LONG

BLOCK = 250_000  # pairs with their keys in memory at the same time

DUPLICATE, LEAK = "duplicate", "leak"
DROPS = (DUPLICATE, LEAK, TOO_LONG, LOPSIDED)
KINDS = {"pair": "leak", "source": "source", "target": "target"}  # kind of leak -> the column of KEYS that is equal
SHARED = ("pair", "source")  # kinds that overlaps of evaluation splits are counted by
DROPPED_LEAKS = {
    "pair": ("pair",),
    "source": ("pair", "source"),
    "target": ("pair", "target"),
    "either": ("pair", "source", "target"),
    "off": (),
}
Labels = NDArray[np.uint8]  # the code of the split of each pair in a stream, or of the rule that dropped it
Hashes = NDArray[np.uint64]


class Selected(NamedTuple):
    """A pair and its split. number: its index among the pairs of all streams."""

    split: str
    line: Line
    number: int


RULE_KEYS = {  # the key of data that has the limit of a rule
    TOO_LONG: "max_length",
    LOPSIDED: "cleaning.max_ratio",
    DUPLICATE: "cleaning.duplicates",
    LEAK: "cleaning.leaks",
    LANGUAGE: "cleaning.language",
    "identical sides": "cleaning.identical",
    "too many characters": "cleaning.max_characters",
}


def key_of(rule: str) -> str:
    """The key of the config with the limit of a rule; for a rule without one, what else to check."""
    return f"data.{RULE_KEYS[rule]}" if rule in RULE_KEYS else "the columns of the files"


class Selection:
    """The split of every pair, or the rule that dropped it from training.

    splits:   train, validation, and the test sets in the order of the corpora
    leaks:    for each split except train, the number of training pairs that are also in it, by kind (KINDS)
    overlaps: for every two evaluation splits, the number of pairs of the second that are also in the first
    """

    def __init__(self, streams: Sequence[Stream], rules: CleaningConfig) -> None:
        """Raises TmtError if a corpus is too small for its split shares."""
        self.streams, self.rules = streams, rules
        names = ["train", "validation"]
        for stream in streams:
            if stream.split != WHOLE:
                names.append(stream.split)
            elif (stream.division or SplitConfig()).test:
                names.append("test")
        self.splits = list(dict.fromkeys(names))
        self._codes = {split: code for code, split in enumerate(self.splits)}
        self._drops = {rule: code for code, rule in enumerate(DROPS, start=len(self.splits))}
        starts = [self._codes["train" if stream.split == WHOLE else stream.split] for stream in streams]
        self.labels = [
            np.full(stream.counts.kept, code, np.uint8) for stream, code in zip(streams, starts, strict=True)
        ]
        if rules.duplicates:
            self._drop_duplicates()
        for stream, labels in zip(streams, self.labels, strict=True):
            if stream.split == WHOLE:
                self._divide(stream, labels)
        known = {split: self.hashes(split) for split in self.splits[1:]}
        self.leaks = {split: self._find_leaks(hashes) for split, hashes in known.items()}
        self.overlaps: list[dict[str, Any]] = [
            {"splits": [one, two], **{kind: int(np.isin(known[two][kind], known[one][kind]).sum()) for kind in SHARED}}
            for one, two in combinations(known, 2)
        ]

    def count(self, split: str) -> int:
        return sum(self.counts(split))

    def counts(self, split: str) -> list[int]:
        """The number of pairs of a split in each stream."""
        return [int(np.count_nonzero(labels == self._codes[split])) for labels in self.labels]

    def dropped(self, stream: Stream) -> dict[str, int]:
        """The number of pairs of a stream that this selection dropped, by rule."""
        labels = self.labels[self.streams.index(stream)]
        counts = {rule: int(np.count_nonzero(labels == code)) for rule, code in self._drops.items()}
        return {rule: count for rule, count in counts.items() if count}

    def selected(self, split: str | None = None) -> Iterator[Selected]:
        """The pairs of one split, or of all splits, in the order of the corpora."""
        wanted = {code: name for name, code in self._codes.items() if split in (None, name)}
        first = 0
        for stream, labels in zip(self.streams, self.labels, strict=True):
            if any((labels == code).any() for code in wanted):
                for number, (label, line) in enumerate(zip(labels.data, stream.lines(), strict=True), start=first):
                    if label in wanted:
                        yield Selected(wanted[label], line, number)
            first += len(labels)

    def discard(self, numbers: Mapping[str, Sequence[int]]) -> None:
        """Drop pairs that violate a rule about tokens. numbers: their `Selected.number`, by rule."""
        for rule, dropped in numbers.items():
            rest = np.asarray(dropped, dtype=np.int64)
            for labels in self.labels:
                labels[rest[(rest >= 0) & (rest < len(labels))]] = self._drops[rule]
                rest = rest - len(labels)

    def examples(self) -> Examples:
        """The first pairs that each rule dropped."""
        found: Examples = {}
        for stream, labels in zip(self.streams, self.labels, strict=True):
            for rule, pairs in stream.counts.examples.items():
                found[rule] = [*found.get(rule, ()), *pairs][:EXAMPLES]
            wanted = {
                int(n): rule for rule, code in self._drops.items() for n in np.flatnonzero(labels == code)[:EXAMPLES]
            }
            for number, line in enumerate(islice(stream.lines(), max(wanted, default=-1) + 1)):
                if number in wanted:
                    rule = wanted[number]
                    found[rule] = [*found.get(rule, ()), Pair(line.source, line.target, line.place)][:EXAMPLES]
        return found

    def nothing_left(self, split: str) -> TmtError:
        """The error for a split without pairs: which rules dropped them, and the first pair that each dropped."""
        lines = self._drop_lines([stream for stream in self.streams if stream.split in (split, WHOLE)])
        remedy = "\n  ".join(lines or ["The files are empty, or data.corpus.split leaves no pair for it."])
        return TmtError(f"no pair is left in the {split} split", place="data.corpus", remedy=remedy)

    def _drop_lines(self, streams: Sequence[Stream]) -> list[str]:
        """What each rule dropped from some streams, and the first of these pairs."""
        drops = Counter[str]()
        for stream in streams:
            drops += stream.counts.dropped + Counter(self.dropped(stream))
        read = sum(stream.counts.read for stream in streams)
        examples, lines = self.examples(), []
        for rule, count in drops.most_common():
            lines.append(f"'{rule}' drops {count:,} of {read:,} pairs (check {key_of(rule)}), such as:")
            first = examples[rule][0]
            lines.append(f"  {first.place}: {listed((first.source, first.target))}")
        return lines

    def _drop_duplicates(self) -> None:
        """Keep only the first of equal pairs, in train and in corpora that will be divided.

        Reads all keys once per partition of the hash values. The keys of one partition have about the size of a block.
        """
        candidates = [number for number, stream in enumerate(self.streams) if stream.trains]
        partitions = max(1, -(-sum(self.streams[number].counts.kept for number in candidates) // BLOCK))
        for partition in range(partitions):
            keys, owners = [np.zeros(0, np.uint64)], []
            for labels, block in self._blocks(candidates):
                rows = np.flatnonzero(block["pair"] % partitions == partition)
                keys.append(block["pair"][rows])
                owners.append((labels, rows))
            repeated = np.ones(sum(map(len, keys)), dtype=bool)
            repeated[np.unique(np.concatenate(keys), return_index=True)[1]] = False
            begin = 0
            for labels, rows in owners:
                labels[rows[repeated[begin : begin + len(rows)]]] = self._drops[DUPLICATE]
                begin += len(rows)

    def _divide(self, stream: Stream, labels: Labels) -> None:
        """Divide the remaining pairs of a whole corpus at random. Raises TmtError if there are too few."""
        division = stream.division or SplitConfig()
        remaining = labels == self._codes["train"]
        order = np.arange(np.count_nonzero(remaining), dtype=np.uint32)
        if not len(order) and division.validation + division.test > 0:
            raise self.nothing_left("train")
        validation, test = (
            max(1, round(share * len(order))) if 0 < share < 1 else int(share)  # a share gives at least one pair
            for share in (division.validation, division.test)
        )
        if 0 < validation + test >= len(order):
            drops = "\n  ".join(self._drop_lines([stream])) or "Cleaning dropped none."
            raise TmtError(
                f"a corpus of {len(order):,} pairs is too small for {validation:,} validation and {test:,} test pairs",
                place="data.corpus.split",
                remedy=f"Lower split.validation and split.test, or add pairs.\n  {drops}",
            )
        np.random.default_rng(division.seed).shuffle(order)
        shares = np.full(len(order), self._codes["train"], dtype=np.uint8)
        shares[order[:validation]] = self._codes["validation"]
        if test:
            shares[order[validation : validation + test]] = self._codes["test"]
        labels[remaining] = shares

    def hashes(self, split: str) -> dict[str, Hashes]:
        """The hashes of all pairs of a split, by kind of leak."""
        code = self._codes[split]
        found = {kind: [np.zeros(0, np.uint64)] for kind in KINDS}
        for labels, block in self._blocks(n for n, labels in enumerate(self.labels) if (labels == code).any()):
            for kind, column in KINDS.items():
                found[kind].append(block[column][labels == code])
        return {kind: np.concatenate(parts) for kind, parts in found.items()}

    def _find_leaks(self, known: dict[str, Hashes]) -> dict[str, int]:
        """Count the training pairs that are also in another split, by kind, and drop them if the rule says so."""
        train, leak = self._codes["train"], self._drops[LEAK]
        dropping = DROPPED_LEAKS[self.rules.leaks]
        counts = dict.fromkeys(KINDS, 0)
        for kind, column in KINDS.items():
            hashes = np.unique(known[kind])
            for labels, block in self._blocks(n for n, stream in enumerate(self.streams) if stream.trains):
                hits = np.isin(block[column], hashes) & ((labels == train) | (labels == leak))
                counts[kind] += int(np.count_nonzero(hits))
                if kind in dropping:
                    labels[hits] = leak
        return counts

    def _blocks(self, streams: Iterable[int]) -> Iterator[tuple[Labels, NDArray[np.void]]]:
        """The pairs of some streams in blocks: a view of their labels, and their keys."""
        for number in streams:
            start = 0
            with self.streams[number].keys.open("rb") as file:
                while len(block := np.fromfile(file, dtype=KEYS, count=BLOCK)):
                    yield self.labels[number][start : start + len(block)], block
                    start += len(block)
