"""The split of each pair: drop duplicates, divide whole corpora, remove leaks from training.

Works on hashes and on a label of one byte for each pair; both stay on disk. Equal hashes are found partition by
partition (`partitions`), so that time grows with the number of pairs, and memory does not. (DuckDB and Polars can do
the same; for 16 million keys they needed as much time, and 3 and 10 times the memory.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.corpus import SplitConfig
from transformer_mt.config.direction import Direction
from transformer_mt.corpora.base import WHOLE, Pair
from transformer_mt.corpora.tables import listed
from transformer_mt.data import partitions
from transformer_mt.data.labels import Labels, PlacedShard
from transformer_mt.data.parallel import Progress, Workers, no_progress
from transformer_mt.data.partitions import Filter, Numbers, Partitions, Records, partitions_for, repeated
from transformer_mt.data.reading import INVALID, LANGUAGE
from transformer_mt.data.shards import EXAMPLES, Examples, Line, Shard, Stream, keys_of, lines_of, texts_of
from transformer_mt.data.store import SIDES
from transformer_mt.errors import TmtError
from transformer_mt.text.cleaning import LOPSIDED, TOO_LONG

_DIRECTION = np.uint64(48)  # bits of the place of a pair; the number of its direction stands above them
_PLACE = np.uint64((1 << 48) - 1)
DUPLICATE, LEAK = "duplicate", "leak"
DROPS = (DUPLICATE, LEAK, TOO_LONG, LOPSIDED)
KINDS = {"pair": "leak", "source": "source", "target": "target"}  # kind of leak -> the column of KEYS that is equal
OTHER = "other direction"  # kind of leak between pairs of different directions
SHARED = ("pair", "source")  # kinds that overlaps of evaluation splits are counted by
DROPPED_LEAKS = {
    "pair": ("pair",),
    "source": ("pair", "source"),
    "target": ("pair", "target"),
    "either": ("pair", "source", "target"),
    "off": (),
}


RULE_KEYS = {  # the key of data that has the limit of a rule
    TOO_LONG: "max_length",
    LOPSIDED: "cleaning.max_ratio",
    DUPLICATE: "cleaning.duplicates",
    LEAK: "cleaning.leaks",
    LANGUAGE: "cleaning.language",
    INVALID: "cleaning.invalid",
    "identical sides": "cleaning.identical",
    "too many characters": "cleaning.max_characters",
}


def key_of(rule: str) -> str:
    """The key of the config with the limit of a rule; for a rule without one, what else to check."""
    return f"data.{RULE_KEYS[rule]}" if rule in RULE_KEYS else "the columns of the files"


class Selection:
    """The split of every pair, or the rule that dropped it from training.

    splits:   train, validation, and the test sets in the order of the corpora
    codes:    the label of each split
    leaks:    for each split except train, the number of training pairs that are also in it, by kind (KINDS)
              with several directions, these count pairs of the same direction; OTHER counts training sentences
              that are in a pair of another direction of the split, on either side
    overlaps: for every two evaluation splits, the number of pairs of the second that are also in the first
    by_share: pairs of validation and test that are a share of a corpus, and not a number of its pairs
    repeated: for each split except train, the number of its pairs that are equal to an earlier one
    """

    def __init__(self, streams: Sequence[Stream], rules: CleaningConfig, progress: Progress = no_progress) -> None:
        """Raises TmtError if a corpus is too small for its split shares."""
        self.streams, self.rules = streams, rules
        self.directions = list(dict.fromkeys(stream.origin.direction for stream in streams))
        names = ["train", "validation"]
        for stream in streams:
            if stream.split != WHOLE:
                names.append(stream.split)
            elif (stream.division or SplitConfig()).test:
                names.append("test")
        self.splits = list(dict.fromkeys(names))
        self.codes = {split: code for code, split in enumerate(self.splits)}
        self._drops = {rule: code for code, rule in enumerate(DROPS, start=len(self.splits))}
        starts = [self.codes["train" if stream.split == WHOLE else stream.split] for stream in streams]
        self.labels = Labels(streams, starts)
        pairs, folder = self.labels.pairs, self.labels.folder
        if rules.duplicates:
            progress("finding duplicates", pairs, None)
            self._drop_duplicates()
        self.by_share = Counter[str]()
        for number, stream in enumerate(streams):
            if stream.split == WHOLE:
                self._divide(number, stream)
        self.repeated = {split: self._repetitions(split) for split in self.splits[1:]}
        self.leaks = {split: dict.fromkeys(KINDS, 0) for split in self.splits[1:]}
        self.overlaps: list[dict[str, Any]] = [
            {"splits": [one, two], **dict.fromkeys(SHARED, 0)} for one, two in combinations(self.splits[1:], 2)
        ]
        leaked = list[Path]()
        for kind in KINDS:
            progress(f"finding leaks by {kind}", pairs, None)
            leaked.append(self._compare(kind, folder / f"leaked-{kind}.numbers"))
        if len(self.directions) > 1:
            progress("finding leaks between directions", pairs, None)
            leaked.append(self._compare_directions(folder / f"leaked-{OTHER}.numbers"))
        self.labels.mark_all((some for file in leaked for some in _numbers_in(file)), self._drops[LEAK])

    def count(self, split: str) -> int:
        return sum(self.counts(split))

    def counts(self, split: str) -> list[int]:
        """The number of pairs of a split in each stream."""
        counts: list[int] = self.labels.counts[:, self.codes[split]].tolist()
        return counts

    def dropped(self, stream: Stream) -> dict[str, int]:
        """The number of pairs of a stream that this selection dropped, by rule."""
        counts = self.labels.counts[self.streams.index(stream)]
        return {rule: int(counts[code]) for rule, code in self._drops.items() if counts[code]}

    def selected(self, split: str) -> Iterator[Line]:
        """The pairs of a split, in the order of the corpora."""
        code = self.codes[split]
        for piece, labels in self.labels.having([code]):
            if code in labels:
                lines = lines_of(self.labels.folder, piece.shard)
                yield from (line for label, line in zip(labels.tolist(), lines, strict=True) if label == code)

    def picked(self, split: str, ranks: NDArray[np.int64], workers: Workers) -> Iterator[tuple[str, str]]:
        """Some pairs of a split. ranks: their places in it, ascending"""

        def items() -> Iterator[tuple[Shard, NDArray[np.int64]]]:
            first, code = 0, self.codes[split]
            for piece, labels in self.labels.having([code]):
                rows = np.flatnonzero(labels == code)
                begin, end = np.searchsorted(ranks, [first, first + len(rows)])
                if begin < end:
                    yield piece.shard, rows[ranks[begin:end] - first]
                first += len(rows)

        for pairs in workers.map(partial(_pick, self.labels.folder), items()):
            yield from pairs

    def discard(self, numbers: Mapping[str, Sequence[int]]) -> None:
        """Drop pairs that violate a rule about tokens. numbers: their places among all pairs, by rule."""
        for rule, dropped in numbers.items():
            self.labels.mark(np.array(dropped, np.uint64), self._drops[rule])

    def examples(self) -> Examples:
        """The first pairs that each rule dropped."""
        found: Examples = {}
        for number, stream in enumerate(self.streams):
            for rule, pairs in stream.counts.examples.items():
                found[rule] = [*found.get(rule, ()), *pairs][:EXAMPLES]
            missing = {self._drops[rule]: min(EXAMPLES, count) for rule, count in self.dropped(stream).items()}
            wanted = dict[int, int]()  # label by number
            for piece in self.labels.pieces if missing else ():
                if piece.stream == number and missing:
                    labels = self.labels.of(piece)
                    for code, count in list(missing.items()):
                        rows = np.flatnonzero(labels == code)[:count].tolist()
                        wanted |= dict.fromkeys(rows, code)
                        missing[code] -= len(rows)
                    missing = {code: count for code, count in missing.items() if count}
                    for row, line in enumerate(lines_of(stream.folder, piece.shard) if wanted else ()):
                        if row in wanted:
                            rule = DROPS[wanted[row] - len(self.splits)]
                            pair = Pair(line.source, line.target, line.place)
                            found[rule] = [*found.get(rule, ()), pair][:EXAMPLES]
                    wanted.clear()
        return found

    def nothing_left(self, split: str, direction: Direction | None = None) -> TmtError:
        """The error for a split without pairs: which rules dropped them, and the first pair that each dropped.

        direction: the only one that has none; None: all
        """
        streams = [stream for stream in self.streams if stream.split in (split, WHOLE)]
        lines = self._drop_lines([one for one in streams if direction in (None, one.origin.direction)])
        remedy = "\n  ".join(lines or ["The files are empty, or data.corpus.split leaves no pair for it."])
        of = f" for {direction}" if direction is not None else ""
        return TmtError(f"no pair is left in the {split} split{of}", place="data.corpus", remedy=remedy)

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
        """Keep only the first of equal pairs, in train and in corpora that will be divided."""
        pieces = [piece for piece in self.labels.pieces if self.streams[piece.stream].trains]
        count = partitions_for(sum(piece.shard.pairs for piece in pieces))
        with Partitions(self.labels.folder, "pairs", count) as parts:
            for piece in pieces:
                parts.add(self._keys(piece, "pair"), piece.numbers)
        self.labels.mark_all((repeated(parts.read(number)) for number in range(count)), self._drops[DUPLICATE])

    def _repetitions(self, split: str) -> int:
        """How many pairs of a split are equal to an earlier one."""
        code, count = self.codes[split], partitions_for(self.count(split))
        with Partitions(self.labels.folder, "held-out", count) as parts:
            for piece, labels in self.labels.having([code]):
                rows = labels == code
                parts.add(self._keys(piece, "pair")[rows], piece.numbers[rows])
        return sum(len(repeated(parts.read(number))) for number in range(count))

    def _divide(self, number: int, stream: Stream) -> None:
        """Divide the remaining pairs of a whole corpus at random. Raises TmtError if there are too few."""
        division, train = stream.division or SplitConfig(), self.codes["train"]
        remaining = int(self.labels.counts[number, train])
        if not remaining and division.validation + division.test > 0:
            raise self.nothing_left("train")
        validation, test = (
            max(1, round(share * remaining)) if 0 < share < 1 else int(share)  # a share gives at least one pair
            for share in (division.validation, division.test)
        )
        if 0 < validation + test >= remaining:
            drops = "\n  ".join(self._drop_lines([stream])) or "Cleaning dropped none."
            raise TmtError(
                f"a corpus of {remaining:,} pairs is too small for {validation:,} validation and {test:,} test pairs",
                place="data.corpus.split",
                remedy=f"Lower split.validation and split.test, or add pairs.\n  {drops}",
            )
        if not validation + test:
            return
        shares_of = {"validation": (division.validation, validation), "test": (division.test, test)}
        self.by_share.update({split: pairs for split, (share, pairs) in shares_of.items() if 0 < share < 1})
        order = _array(stream.folder / "order", remaining, np.uint32)
        for start in range(0, remaining, partitions.BLOCK):
            order[start : start + partitions.BLOCK] = np.arange(start, min(remaining, start + partitions.BLOCK))
        np.random.default_rng(division.seed).shuffle(order)
        shares = _array(stream.folder / "shares", remaining, np.uint8)
        shares[:] = train
        shares[order[:validation]] = self.codes["validation"]
        if test:
            shares[order[validation : validation + test]] = self.codes["test"]
        taken = 0
        for piece in (piece for piece in self.labels.pieces if piece.stream == number):
            labels = self.labels.of(piece)
            rows = labels == train
            labels[rows] = shares[taken : taken + np.count_nonzero(rows)]
            taken += int(np.count_nonzero(rows))
            self.labels.write(piece, labels)

    def keys(self, split: str) -> Iterator[NDArray[np.void]]:
        """The hashes of all pairs of a split, in blocks."""
        code = self.codes[split]
        for piece, labels in self.labels.having([code]):
            yield keys_of(self.labels.folder, piece.shard)[labels == code]

    def _keys(self, piece: PlacedShard, column: str) -> Numbers:
        """A column of KEYS. With several directions, equal keys mean the same direction too."""
        keys: Numbers = keys_of(self.labels.folder, piece.shard)[column]
        several = len(self.directions) > 1
        return keys ^ _number_of(str(self.streams[piece.stream].origin.direction)) if several else keys

    def _sentence_keys(self, piece: PlacedShard) -> Iterator[Numbers]:
        """Of each side; equal keys mean the same sentence of the same language."""
        keys = keys_of(self.labels.folder, piece.shard)
        for side, language in zip(SIDES, self.streams[piece.stream].origin.direction, strict=True):
            sentences: Numbers = keys[side]
            yield sentences ^ _number_of(language)

    def _known_and_trained(
        self, keys_of: Callable[[PlacedShard], Iterable[Numbers]], number: int, of_stream: Numbers
    ) -> Iterator[tuple[Records, Records]]:
        """By partition of the keys: those of held-out pairs, and those of training pairs that may be among them.

        They stand at the label of the split, or at the place of the pair; above both is the number of the direction.
        keys_of: the keys of each pair, `number` of them; of_stream: the numbers of the directions
        """
        train, folder, known_keys = self.codes["train"], self.labels.folder, Filter()
        count = partitions_for(number * self.labels.pairs)
        with Partitions(folder, "known", count) as known, Partitions(folder, "trained", count) as trained:
            for piece, labels in self.labels.having(range(1, len(self.splits))):
                rows = (labels != train) & (labels < len(self.splits))
                at = labels[rows].astype(np.uint64) | of_stream[piece.stream] << np.uint64(8)
                for keys in keys_of(piece):
                    known.add(keys[rows], at)
                    known_keys.add(keys[rows])
            for piece, labels in self.labels.having([train]):
                for keys in keys_of(piece):
                    rows = (labels == train) & known_keys.may_have(keys)
                    trained.add(keys[rows], piece.numbers[rows] | of_stream[piece.stream] << _DIRECTION)
        return ((known.read(part), trained.read(part)) for part in range(count))

    def _compare_directions(self, leaked: Path) -> Path:
        """As `_compare`, for training pairs with a sentence, on either side, of a held-out pair of another direction.

        A held-out pair of ko-en is a training pair of en-ko when it is reversed, and de-en may share its English one.
        """
        numbers = {direction: number for number, direction in enumerate(self.directions)}
        of_stream = np.array([numbers[stream.origin.direction] for stream in self.streams], np.uint64)
        self.leaks = {split: {**counts, OTHER: 0} for split, counts in self.leaks.items()}
        with leaked.open("wb") as file:
            for held_out, training in self._known_and_trained(self._sentence_keys, len(SIDES), of_stream):
                for direction in np.unique(training["at"] >> _DIRECTION):
                    own = training[training["at"] >> _DIRECTION == direction]
                    others = held_out[held_out["at"] >> np.uint64(8) != direction]
                    for split in self.splits[1:]:
                        of_split = others["key"][others["at"] & np.uint64(255) == self.codes[split]]
                        hits = np.isin(own["key"], of_split)
                        self.leaks[split][OTHER] += int(np.count_nonzero(hits))
                        if self.rules.leaks != "off":
                            file.write((own["at"][hits] & _PLACE).tobytes())
        return leaked

    def _compare(self, kind: str, leaked: Path) -> Path:
        """Count what training and evaluation splits, and every two of these, have in common by one kind.

        Writes the numbers of the training pairs that the rule for leaks drops to a file, and returns it.
        """
        same = np.zeros(len(self.streams), np.uint64)  # `_keys` tell directions apart
        with leaked.open("wb") as file:
            for held_out, training in self._known_and_trained(lambda piece: [self._keys(piece, KINDS[kind])], 1, same):
                by_split = {split: held_out["key"][held_out["at"] == self.codes[split]] for split in self.splits[1:]}
                for split, keys in by_split.items():
                    hits = np.isin(training["key"], keys)
                    self.leaks[split][kind] += int(np.count_nonzero(hits))
                    if kind in DROPPED_LEAKS[self.rules.leaks]:
                        file.write(training["at"][hits].tobytes())
                for overlap in self.overlaps if kind in SHARED else ():
                    one, two = overlap["splits"]
                    overlap[kind] += int(np.isin(by_split[two], by_split[one]).sum())
        return leaked


def _pick(folder: Path, item: tuple[Shard, NDArray[np.int64]]) -> list[tuple[str, str]]:
    """Some pairs of a shard, read in a worker process."""
    shard, rows = item
    texts = texts_of(folder, shard)
    return [(texts.sources[row], texts.targets[row]) for row in rows.tolist()]


@cache
def _number_of(name: str) -> Any:
    """A hash (uint64) of a direction or language, to tell apart equal texts of different ones."""
    return np.uint64(int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little"))


def _numbers_in(file: Path) -> Iterator[Numbers]:
    with file.open("rb") as opened:
        while len(block := np.fromfile(opened, "<u8", partitions.BLOCK)):
            yield block


def _array(file: Path, size: int, kind: Any) -> NDArray[Any]:
    """An array in memory, or in a file if it is large: the system can then take its memory back."""
    return (
        np.empty(size, kind)
        if size <= partitions.BLOCK
        else np.memmap(file, kind, "w+", shape=(size,)).view(np.ndarray)
    )
