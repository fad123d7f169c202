"""The report of `prepare` on the corpus, as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from transformer_mt.config.direction import SEVERAL, Direction
from transformer_mt.config.schema import Config
from transformer_mt.corpora.base import Pair, SkippedRows
from transformer_mt.data.languages import PLACES, Languages, merge
from transformer_mt.data.parent import ParentFigures
from transformer_mt.data.reading import unusual
from transformer_mt.data.selection import Selection
from transformer_mt.data.store import SIDES, SOURCE, TARGET
from transformer_mt.data.tokenising import Findings, ranks_shown
from transformer_mt.data.weighing import weights_of
from transformer_mt.text.codec import Codec
from transformer_mt.text.language import is_known
from transformer_mt.text.vocabulary import MARKS, UNK

LONGEST = 512  # tokens; the last bin of a histogram, which also counts longer sentences


@dataclass(frozen=True)
class PairCounts:
    """Pairs of a split as read from the files, and how many of them each rule changed or dropped."""

    read: int
    changed: dict[str, int]
    dropped: dict[str, int]
    kept: int


@dataclass(frozen=True)
class SideFigures:
    """One side of a split. Tokens are counted without end tokens and before cutting; words are separated by spaces.

    histogram: element n is the number of sentences with n tokens; element LONGEST includes longer sentences
    """

    tokens: int
    mean: float
    percentile_95: int
    longest: int
    words: int
    tokens_per_word: float
    unknown: int
    unknown_rate: float
    histogram: list[int]


@dataclass(frozen=True)
class SplitFigures:
    """cut: number of pairs with a sentence that was cut to `max_length`."""

    pairs: int
    cut: int
    source: SideFigures
    target: SideFigures

    def side(self, name: str) -> SideFigures:
        return self.source if name == SOURCE else self.target


@dataclass(frozen=True)
class Outliers:
    """Number of unusual pairs of one kind, and the places of the first ones."""

    pairs: int
    places: list[str]


@dataclass(frozen=True)
class LanguageFigures:
    """Of one file: pairs checked, those with a sentence in another language, these languages by side, first places."""

    file: str
    checked: int
    wrong: int
    others: dict[str, dict[str, int]]
    places: list[str]


@dataclass(frozen=True)
class DirectionFigures:
    """pairs: by split; seen: training pairs that an epoch sees of this direction"""

    pairs: dict[str, int]
    seen: int


@dataclass(frozen=True)
class CorpusFigures:
    """One of several corpora. number: in the config, from 1; name: its first file, or its kind if it names no files

    read:    pairs in its files, once for each direction; dropped: by rule
    train:   its training pairs; weight: how often an epoch sees each of them; share: of the pairs that an epoch sees
    """

    number: int
    name: str
    read: int
    dropped: dict[str, int]
    train: int
    weight: float
    tag: str | None
    share: float


@dataclass(frozen=True)
class DataReport:
    """The figures of a prepared corpus. Dictionaries from `source` and `target` have one value for each side.

    pairs:        by split as read from the files
    passed:       rows of files that were skipped, because they are not pairs
    splits:       by split as used
    vocabulary:   size of the vocabulary, by side; words: without marks
    counts_words: whether the vocabulary consists of counted words; False: the tokenizer defines it
    leaks:        for each split except train, the number of training pairs that are also in it, with the same `pair`,
                  the same `source` or the same `target`
    overlaps:     the same for every two other splits
    outliers:     by kind
    examples:     by split: three pairs as the model sees them
    drops:        by rule: the first pairs that it dropped
    foreign:      files with sentences in another language than theirs; language: what the rule does with them
    unknown:      languages that cannot be recognised
    parent:       the model whose tokenizers are used, with training.start_from
    directions:   of a config with several; empty for one
    of_examples:  the directions of `examples`; empty for one
    corpora:      in the order of the config; empty for one
    by_share:     pairs of validation and test that are a share of a corpus, and not a number of its pairs
    repeated:     for each split except train, the number of its pairs that are equal to an earlier one
    seconds:      duration of preparing
    """

    name: str
    languages: dict[str, str]
    pairs: dict[str, PairCounts]
    splits: dict[str, SplitFigures]
    vocabulary: dict[str, int]
    shared_vocabulary: bool
    counts_words: dict[str, bool]
    case: dict[str, str]
    lossless: dict[str, bool]
    max_length: int
    leaks: dict[str, dict[str, int]]
    leaks_dropped: str
    overlaps: list[dict[str, Any]]
    outliers: dict[str, Outliers]
    words: dict[str, int] = field(default_factory=dict)
    passed: list[SkippedRows] = field(default_factory=list)
    examples: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    drops: dict[str, list[Pair]] = field(default_factory=dict)
    foreign: list[LanguageFigures] = field(default_factory=list)
    language: str = "off"
    unknown: list[str] = field(default_factory=list)
    parent: ParentFigures | None = None
    directions: dict[str, DirectionFigures] = field(default_factory=dict)
    of_examples: dict[str, list[str]] = field(default_factory=dict)
    corpora: list[CorpusFigures] = field(default_factory=list)
    by_share: dict[str, int] = field(default_factory=dict)
    repeated: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        drops = {rule: [pair._asdict() for pair in pairs] for rule, pairs in self.drops.items()}
        passed = [rows._asdict() for rows in self.passed]
        for rows in passed:
            if rows["what"] == "row":  # as older versions wrote it
                del rows["what"]
        values = {**asdict(self), "passed": passed, "drops": drops}
        if not self.directions:  # as older versions wrote it
            del values["directions"], values["of_examples"]
        if not self.corpora:  # the same
            del values["corpora"]
        return values

    def language_of(self, side: str) -> str:
        """The language of a side, or the side if there are several."""
        return side if self.languages[side] == SEVERAL else self.languages[side]

    def codes(self, split: str, example: int) -> tuple[str, str]:
        """The languages of an example."""
        if self.of_examples:
            return Direction.of(self.of_examples[split][example])
        return self.languages[SOURCE], self.languages[TARGET]

    @classmethod
    def from_json(cls, values: Any) -> DataReport:
        """Raises ValueError if keys are missing or have values of another type."""
        return TypeAdapter(cls).validate_python(values)


def report_of(
    config: Config,
    selection: Selection,
    findings: Findings,
    codecs: Mapping[str, Codec],
    passed: Iterable[SkippedRows],
    seconds: float,
    examples: dict[str, list[tuple[str, str]]],
    parent: ParentFigures | None = None,
) -> DataReport:
    """The report, from what the passes over the corpus have counted."""
    return DataReport(
        name=config.name,
        languages={SOURCE: config.data.source_language, TARGET: config.data.target_language},
        pairs=_pair_counts(selection),
        passed=list(passed),
        splits={
            split: SplitFigures(
                selection.count(split),
                findings.cut[split],
                *(_side_figures(findings, split, side, codecs[side]) for side in SIDES),
            )
            for split in selection.splits
        },
        vocabulary={side: len(codec) for side, codec in codecs.items()},
        words={side: len(codec) - len(MARKS) for side, codec in codecs.items()},
        shared_vocabulary=config.has_shared_vocabulary,
        counts_words={side: codec.segmenter.tokenizer.inventory() is None for side, codec in codecs.items()},
        case={side: codec.segmenter.config.case for side, codec in codecs.items()},
        lossless={side: codec.segmenter.lossless for side, codec in codecs.items()},
        max_length=config.data.max_length,
        leaks=selection.leaks,
        leaks_dropped=config.data.cleaning.leaks,
        overlaps=selection.overlaps,
        outliers=_outliers(selection, findings),
        examples=examples,
        drops=selection.examples(),
        foreign=_foreign(selection),
        language=config.data.cleaning.language,
        unknown=_unknown(config, selection),
        parent=parent,
        directions=_directions(config, selection),
        of_examples=_of_examples(config, selection),
        corpora=_corpora(config, selection),
        by_share=dict(selection.by_share),
        repeated=selection.repeated,
        seconds=seconds,
    )


def _directions(config: Config, selection: Selection) -> dict[str, DirectionFigures]:
    found = dict[str, DirectionFigures]()
    if config.data.directions is None:
        return found
    weights = weights_of(config, selection)
    for direction in selection.directions:
        chosen = [stream.origin.direction == direction for stream in selection.streams]
        pairs = {
            split: sum(count for count, own in zip(selection.counts(split), chosen, strict=True) if own)
            for split in selection.splits
        }
        by_stream = zip(selection.counts("train"), weights, chosen, strict=True)
        seen = round(sum(count * weight for count, weight, own in by_stream if own))
        found[str(direction)] = DirectionFigures(pairs, seen)
    return found


def _corpora(config: Config, selection: Selection) -> list[CorpusFigures]:
    options = config.data.corpus
    if len(options) == 1:
        return []
    streams, counts, weights = selection.streams, selection.counts("train"), weights_of(config, selection)
    total = sum(pairs * weight for pairs, weight in zip(counts, weights, strict=True))
    found = []
    for number, one in enumerate(options, start=1):
        own = [place for place, stream in enumerate(streams) if stream.corpus == number]
        train, seen = sum(counts[place] for place in own), sum(counts[place] * weights[place] for place in own)
        dropped = Counter[str]()
        for place in own:
            dropped += streams[place].counts.dropped + Counter(selection.dropped(streams[place]))
        found.append(
            CorpusFigures(
                number=number,
                name=one.title,
                read=sum(streams[place].counts.read for place in own),
                dropped=dict(dropped.most_common()),
                train=train,
                weight=round(seen / train, 6) if train else one.weight,
                tag=one.tag,
                share=round(seen / total, 6),
            )
        )
    return found


def _of_examples(config: Config, selection: Selection) -> dict[str, list[str]]:
    if config.data.directions is None:
        return {}
    found = {}
    for split in selection.splits:
        ends = np.cumsum(selection.counts(split))
        streams = np.searchsorted(ends, ranks_shown(selection, split), side="right").tolist()
        found[split] = [str(selection.streams[stream].origin.direction) for stream in streams]
    return found


def _outliers(selection: Selection, findings: Findings) -> dict[str, Outliers]:
    counts, places = Counter(findings.outliers), dict(findings.places)
    for stream in selection.streams:
        told = unusual(stream.counts.outliers, stream.counts.read)
        counts += told
        for kind in told:
            places[kind] = [*places.get(kind, ()), *stream.counts.places.get(kind, ())]
    return {kind: Outliers(count, places[kind][:PLACES]) for kind, count in counts.items()}


def _foreign(selection: Selection) -> list[LanguageFigures]:
    found: Languages = {}
    for stream in selection.streams:
        merge(found, stream.counts.languages)
    return [
        LanguageFigures(file, one.checked, one.wrong, {side: dict(one.others[side]) for side in SIDES}, one.places)
        for file, one in found.items()
        if one.wrong
    ]


def _unknown(config: Config, selection: Selection) -> list[str]:
    """The languages of the config that were checked although they cannot be recognised."""
    is_checked = any(stream.counts.languages for stream in selection.streams)
    codes = dict.fromkeys(code for side in zip(*config.data.all_directions, strict=True) for code in side)
    return [code for code in codes if is_checked and not is_known(code)]


def _pair_counts(selection: Selection) -> dict[str, PairCounts]:
    """By split as read from the files. If several corpora have a split with the same name, their counts are added."""
    table: dict[str, PairCounts] = {}
    for stream in selection.streams:
        drops = stream.counts.dropped + Counter(selection.dropped(stream))
        before = table.get(stream.split, PairCounts(0, {}, {}, 0))
        table[stream.split] = PairCounts(
            before.read + stream.counts.read,
            dict(Counter(before.changed) + stream.counts.changed),
            dict(Counter(before.dropped) + drops),
            before.kept + stream.counts.read - sum(drops.values()),
        )
    return table


def _side_figures(findings: Findings, split: str, side: str, codec: Codec) -> SideFigures:
    counts = findings.sides[split, side]
    lengths, words, spaced = counts.lengths, counts.words, counts.spaced
    ids = codec.vocabulary.encode(words)
    unknown = counts.unknown + sum(count for count, number in zip(words.values(), ids, strict=True) if number == UNK)
    tokens = counts.tokens + sum(words.values())
    return SideFigures(
        tokens=tokens,
        mean=round(tokens / max(1, sum(lengths.values())), 2),
        percentile_95=_percentile(lengths, 0.95),
        longest=max(lengths, default=0),
        words=spaced,
        tokens_per_word=round(tokens / max(1, spaced), 3),
        unknown=unknown,
        unknown_rate=round(unknown / max(1, tokens), 6),
        histogram=_histogram(lengths),
    )


def _percentile(lengths: Mapping[int, int], share: float) -> int:
    """The smallest length that at least this share of the sentences does not exceed."""
    needed, seen = share * sum(lengths.values()), 0
    for length, count in sorted(lengths.items()):
        seen += count
        if seen >= needed:
            return length
    return 0


def _histogram(lengths: Mapping[int, int]) -> list[int]:
    bins = [0] * (min(LONGEST, max(lengths, default=0)) + 1)
    for length, count in lengths.items():
        bins[min(length, LONGEST)] += count
    return bins
