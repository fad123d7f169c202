"""The second pass: learn tokenizers from the training split, tokenise all pairs in worker processes, and count words.

A worker writes the ids of the pairs of a shard. If the vocabulary must be counted first, it writes numbers of words
instead, by their first occurrence in the shard, and the list of these words. Memory grows only with the distinct words.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_mt.config.direction import Direction
from transformer_mt.config.schema import Config
from transformer_mt.data.journal import Journal, WrittenFile, write
from transformer_mt.data.labels import Codes, PlacedShard
from transformer_mt.data.languages import PLACES
from transformer_mt.data.parallel import Progress, Workers
from transformer_mt.data.passes import Origin
from transformer_mt.data.selection import Selection
from transformer_mt.data.shards import texts_of
from transformer_mt.data.store import SIDES, SOURCE, TARGET
from transformer_mt.data.weighing import weights_of
from transformer_mt.errors import TmtError
from transformer_mt.text.cleaning import LOPSIDED, TOO_LONG
from transformer_mt.text.codec import Segmenter, tokenizers_digest
from transformer_mt.text.script import foreign_script
from transformer_mt.text.vocabulary import EOS, MARKS, UNK

SCRIPT = "script"  # kind of outlier: a sentence without any letter of its language
SHOWN_PAIRS = 3  # of each split, in the report
SCRATCH = "scratch"  # folder of the files that are needed only while data is prepared
WORDS = ".words"  # the file of the words of a shard, if the vocabulary must be counted
Numbers = NDArray[np.int32]


def train_segmenters(config: Config, selection: Selection, folder: Path, workers: Workers) -> dict[str, Segmenter]:
    """Learn tokenizers from the training split and save them; by side. A shared tokenizer is one object.

    With several directions, a tokenizer learns from all languages of its side, weighed as training does.
    """
    source = Segmenter(config.source_tokenizer, config.data.source_language)
    shares = weights_of(config, selection) if config.data.directions is not None else None
    if config.has_shared_tokenizer:
        sample = sample_of(selection, max(1, source.config.training_sentences // 2), workers, shares)
        source.train(side for pair in sample for side in pair)
        segmenters = {SOURCE: source, TARGET: source}
    else:
        target = Segmenter(config.target_tokenizer, config.data.target_language)
        for place, (side, segmenter) in enumerate(((SOURCE, source), (TARGET, target))):
            sample = sample_of(selection, segmenter.config.training_sentences, workers, shares)
            try:
                segmenter.train(pair[place] for pair in sample)
            except TmtError as error:  # the config has these keys for each side
                error.place = re.sub(r"^tokenizer\b", f"tokenizer.{side}", error.place)
                error.remedy = re.sub(r"\btokenizer\.(?=[a-z])", f"tokenizer.{side}.", error.remedy)
                raise
        segmenters = {SOURCE: source, TARGET: target}
        target.save(folder / TARGET)
    source.save(folder / SOURCE)
    return segmenters


def sample_of(
    selection: Selection, most: int, workers: Workers, weights: Sequence[float] | None = None
) -> Iterator[tuple[str, str]]:
    """At most `most` training pairs, evenly spaced over the corpus.

    weights: how often each pair of a stream is in the sample, relative to those of other streams; None: equally often
    """
    total = selection.count("train")
    most = min(most, total)
    if weights is None:
        return selection.picked("train", _spaced(total, most), workers)
    counts = selection.counts("train")
    scale = most / sum(pairs * weight for pairs, weight in zip(counts, weights, strict=True))
    ranks, first = [np.zeros(0, np.int64)], 0
    for pairs, weight in zip(counts, weights, strict=True):
        ranks.append(first + _spaced(pairs, round(scale * weight * pairs)))
        first += pairs
    return selection.picked("train", np.concatenate(ranks), workers)


def _spaced(total: int, number: int) -> NDArray[np.int64]:
    """So many numbers below `total`, evenly spaced and ascending; some several times if they are more."""
    if not total or not number:
        return np.zeros(0, np.int64)
    return -(-np.arange(1, number + 1, dtype=np.int64) * total // number) - 1


def shown(selection: Selection, workers: Workers) -> dict[str, list[tuple[str, str]]]:
    """By split: the first pair, the last, and one in the middle."""
    return {split: list(selection.picked(split, ranks_shown(selection, split), workers)) for split in selection.splits}


def ranks_shown(selection: Selection, split: str) -> NDArray[np.int64]:
    """The places of the pairs of a split that the report shows."""
    last = selection.count(split) - 1
    return np.unique([last * place // (SHOWN_PAIRS - 1) for place in range(SHOWN_PAIRS)])


@dataclass
class SideCounts:
    """What was counted in one side of a split, without end tokens and before cutting.

    lengths: sentences by number of tokens
    tokens, unknown: known only if the tokenizer fixes the vocabulary
    words:   occurrences of each token, if the vocabulary must be counted; workers write them to files
    spaced:  words separated by spaces
    """

    lengths: Counter[int] = field(default_factory=Counter)
    tokens: int = 0
    unknown: int = 0
    words: Counter[str] = field(default_factory=Counter)
    spaced: int = 0

    def add(self, other: SideCounts) -> None:
        self.lengths.update(other.lengths)
        self.tokens += other.tokens
        self.unknown += other.unknown
        self.words.update(other.words)
        self.spaced += other.spaced


class Stored(NamedTuple):
    """The ids of a split in the file of a shard. ids: number by side, with end tokens"""

    split: str
    pairs: int
    ids: list[int]


@dataclass
class Tokenised:
    """What a worker has written for a shard, and counted. Dropped pairs are counted only in `outliers` and `dropped`.

    stream:   the number of its stream
    stored:   the content of the file NAME.ids, in order: for each split and side the lengths, then the ids
    sides:    counts by split and side
    cut:      by split: pairs with a sentence that was cut to `max_length`
    outliers: training pairs, by kind of outlier; places: the first of them
    dropped:  rows of training pairs, by the rule that they violate
    """

    name: str
    pairs: int
    stream: int = 0
    stored: list[Stored] = field(default_factory=list)
    sides: dict[str, dict[str, SideCounts]] = field(default_factory=dict)
    cut: Counter[str] = field(default_factory=Counter)
    outliers: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)
    dropped: dict[str, list[int]] = field(default_factory=dict)
    files: list[WrittenFile] = field(default_factory=list)


@dataclass
class Findings:
    """The sum of what all workers have counted."""

    pairs: int = 0
    sides: defaultdict[tuple[str, str], SideCounts] = field(default_factory=lambda: defaultdict(SideCounts))
    cut: Counter[str] = field(default_factory=Counter)
    outliers: Counter[str] = field(default_factory=Counter)
    places: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, other: Tokenised, counted_words: dict[str, dict[str, dict[str, int]]]) -> None:
        self.pairs += other.pairs
        for split, sides in other.sides.items():
            for side, counts in sides.items():
                self.sides[split, side].add(counts)
        for split, by_side in counted_words.items():
            for side, words in by_side.items():
                self.sides[split, side].words.update(words)
        self.cut.update(other.cut)
        self.outliers.update(other.outliers)
        for kind, places in other.places.items():
            self.places[kind] = [*self.places[kind], *places][:PLACES]


class WordNumbers(dict[str, int]):
    """Word -> number. Numbers start after the marks; a word that is looked up for the first time gets the next one."""

    def __missing__(self, word: str) -> int:
        return self.setdefault(word, len(MARKS) + len(self))


class Flat(NamedTuple):
    """Sentences as numbers, concatenated. words: of the numbers after the marks; None: they are ids"""

    numbers: Numbers
    lengths: Numbers
    words: list[str] | None

    @classmethod
    def of(cls, texts: list[str], segmenter: Segmenter) -> Flat:
        sentences, words = segmenter.ids_of(texts), None
        if sentences is None:
            numbers = WordNumbers()
            sentences = [list(map(numbers.__getitem__, segmenter.tokenize(text))) for text in texts]
            words = list(numbers)
        lengths = np.fromiter(map(len, sentences), np.int32, len(sentences))
        return cls(np.fromiter(chain.from_iterable(sentences), np.int32, int(lengths.sum())), lengths, words)

    def only(self, rows: NDArray[np.bool_]) -> Flat:
        return Flat(self.numbers[np.repeat(rows, self.lengths)], self.lengths[rows], self.words)

    def stored(self, most: int) -> tuple[Numbers, Numbers]:
        """Lengths and ids of the sentences cut to `most` tokens, with end tokens."""
        cut = np.minimum(self.lengths, most)
        ends = np.cumsum(cut + 1)
        ids = np.full(int(ends[-1]) if len(ends) else 0, EOS, np.int32)
        place = np.arange(len(self.numbers)) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        kept = place < most
        ids[np.repeat(ends - cut - 1, self.lengths)[kept] + place[kept]] = self.numbers[kept]
        return (cut + 1).astype(np.int32), ids

    def counts(self, texts: list[str]) -> SideCounts:
        found = SideCounts(
            Counter(dict(zip(*_counted(self.lengths), strict=True))), spaced=sum(len(text.split()) for text in texts)
        )
        if self.words is None:
            found.tokens, found.unknown = len(self.numbers), int(np.count_nonzero(self.numbers == UNK))
        else:
            numbers, counts = _counted(self.numbers)
            found.words = Counter({self.words[n - len(MARKS)]: count for n, count in zip(numbers, counts, strict=True)})
        return found


@dataclass(frozen=True)
class Tokenising:
    """Tokenises a shard in a worker process, which loads the segmenters once.

    codes:   the label of each split
    origins: of the pairs of each stream
    """

    config: Config
    folder: Path
    codes: dict[str, int]
    origins: Sequence[Origin]

    @cached_property
    def segmenters(self) -> tuple[Segmenter, Segmenter]:
        source = Segmenter.load(self.folder / SOURCE)
        return source, (source if self.config.has_shared_tokenizer else Segmenter.load(self.folder / TARGET))

    def __call__(self, item: tuple[PlacedShard, Codes]) -> Tokenised:
        """Writes the ids of all pairs that are not dropped."""
        (piece, labels), scratch = item, self.folder / SCRATCH
        texts, chosen = texts_of(scratch, piece.shard), np.flatnonzero(labels < len(self.codes))
        columns = [[side[row] for row in chosen.tolist()] for side in (texts.sources, texts.targets)]
        sides = [Flat.of(column, segmenter) for column, segmenter in zip(columns, self.segmenters, strict=True)]
        done, labels = Tokenised(piece.shard.name, len(chosen), piece.stream), labels[chosen]
        origin = self.origins[piece.stream]
        if self.codes["train"] in labels:
            faults = self._faults(labels, sides, len(origin.tags_in("train")))
            foreign = self._foreign(columns, origin.direction, (labels == self.codes["train"]) & (faults == 0))
            for kind, rows in (LOPSIDED, faults == 2), (SCRIPT, foreign):
                if rows.any():
                    done.outliers[kind] = int(np.count_nonzero(rows))
                    done.places[kind] = [texts.place(row) for row in chosen[rows][:PLACES].tolist()]
            for code, rule in (1, TOO_LONG), (2, LOPSIDED):
                if (faults == code).any():
                    done.dropped[rule] = chosen[faults == code].tolist()
            labels[faults > 0] = len(self.codes)
        content = list[bytes]()
        for split, code in self.codes.items():
            if code in labels:
                tags = len(origin.tags_in(split))
                content += self._store(split, labels == code, columns, sides, done, tags)
        done.files.append(write(scratch, f"{done.name}.ids", b"".join(content)))
        if any(flat.words is not None for flat in sides):
            counts = {split: {side: one.words for side, one in both.items()} for split, both in done.sides.items()}
            content = [json.dumps([[flat.words for flat in sides], counts]).encode()]
            done.files.append(write(scratch, f"{done.name}{WORDS}", b"".join(content)))
            for one in (one for both in done.sides.values() for one in both.values()):
                one.words = Counter()
        return done

    def _faults(self, labels: Codes, sides: list[Flat], tags: int) -> Codes:
        """By pair: the first rule that it violates, 1: TOO_LONG, 2: LOPSIDED.

        tags: before each source; they count for the longest, and not for the ratio
        """
        most, ratio = self.config.data.max_length, self.config.data.cleaning.max_ratio
        one, other = (flat.lengths.astype(np.float64) + 1 for flat in sides)
        shorter, longer = np.minimum(one, other), np.maximum(one, other)
        lopsided = longer > ratio * shorter if ratio is not None else np.zeros(len(one), dtype=bool)
        faults = np.where(np.maximum(one + tags, other) > most, 1, np.where(lopsided, 2, 0))
        return np.where(labels == self.codes["train"], faults, 0).astype(np.uint8)

    def _foreign(self, columns: list[list[str]], languages: Direction, judged: NDArray[np.bool_]) -> NDArray[np.bool_]:
        sources, targets = columns
        found = np.zeros(len(judged), dtype=bool)
        found[judged] = [
            foreign_script(sources[row], languages.source) or foreign_script(targets[row], languages.target)
            for row in np.flatnonzero(judged).tolist()
        ]
        return found

    def _store(
        self,
        split: str,
        rows: NDArray[np.bool_],
        columns: list[list[str]],
        sides: list[Flat],
        done: Tokenised,
        tags: int,
    ) -> Iterator[bytes]:
        """The lengths and ids of a split by side, without tags; counts them in `done`. tags: how many get added"""
        mosts = self.config.data.max_length - 1 - tags, self.config.data.max_length - 1
        are_cut = np.logical_or(*(flat.lengths[rows] > most for flat, most in zip(sides, mosts, strict=True)))
        done.cut[split] += int(np.count_nonzero(are_cut))
        done.sides[split] = {}
        sizes = list[int]()
        for name, column, flat, most in zip(SIDES, columns, sides, mosts, strict=True):
            some = flat.only(rows)
            texts = column if rows.all() else [column[row] for row in np.flatnonzero(rows).tolist()]
            done.sides[split][name] = some.counts(texts)
            lengths, ids = some.stored(most)
            sizes.append(len(ids))
            yield lengths.astype("<i4").tobytes()
            yield ids.astype("<i4").tobytes()
        done.stored.append(Stored(split, int(np.count_nonzero(rows)), sizes))


def tokenise(
    work: Tokenising, selection: Selection, workers: Workers, journal: Journal, progress: Progress
) -> tuple[Findings, list[Tokenised]]:
    """Tokenise all selected pairs, and drop those that violate a rule. Returns the counts, and what was written."""
    findings, written, total = Findings(), list[Tokenised](), sum(map(selection.count, selection.splits))
    pieces = list[PlacedShard]()

    def items() -> Iterator[tuple[str, tuple[PlacedShard, Codes]]]:
        for piece, labels in selection.labels.having(selection.codes.values()):
            pieces.append(piece)
            yield f"{piece.shard.name}.ids", (piece, labels)

    for number, done in enumerate(journal.map(workers, work, Tokenised, items(), tokenizers_digest(work.folder))):
        first = pieces[number].first
        selection.discard({rule: [first + row for row in rows] for rule, rows in done.dropped.items()})
        findings.add(done, words_of(work.folder / SCRATCH, done)[1])
        done.sides.clear()
        written.append(done)
        progress("tokenising", findings.pairs, findings.pairs / max(1, total))
    return findings, written


def words_of(scratch: Path, done: Tokenised) -> tuple[list[list[str] | None], dict[str, dict[str, dict[str, int]]]]:
    """The words by side that the numbers of a shard stand for, and how often each occurs, by split and side."""
    if not any(file.name.endswith(WORDS) for file in done.files):
        return [None, None], {}
    words, counts = json.loads((scratch / f"{done.name}{WORDS}").read_bytes())
    return words, counts


def _counted(numbers: Numbers) -> tuple[list[int], list[int]]:
    """The different numbers and how often each occurs."""
    counts = np.bincount(numbers)
    found = np.flatnonzero(counts)
    return found.tolist(), counts[found].tolist()
