"""How many pairs the files of a user have, read as `prepare` will do; of large files, only the beginning is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from transformer_mt.corpora.base import Corpus, FilesCorpus, Pair
from transformer_mt.corpora.parquet import open_parquet
from transformer_mt.errors import number_of
from transformer_mt.files.opening import open_bytes, readable
from transformer_mt.reporting.notes import note
from transformer_mt.text.batches import one_line

MOST_READ = 100_000  # pairs of a file; the number of pairs in a larger one is estimated
MOST_KEPT = 10_000  # pairs, to measure lengths
_READ_WHOLE = ("xlsx", "json", "aihub")  # kinds whose number of pairs cannot be estimated by lines


@dataclass
class Count:
    """Pairs that were read. different: not equal; about: estimated; some: the first ones."""

    pairs: int = 0
    different: int = 0
    about: bool = False
    some: list[Pair] = field(default_factory=list)


def count_pairs(corpus: Corpus, seen: set[int]) -> Count:
    """Read the training pairs of a corpus as `prepare` will do. Raises TmtError with file and row of a mistake.

    seen: the hashes of the pairs in the corpora before; those of this one are added
    """
    corpus.fetch()
    counted, before, empty, last = Count(), len(seen), 0, None
    for pair in corpus.read(corpus.splits()[0]):
        if not (pair.source.strip() and pair.target.strip()):
            empty += 1
            continue
        pair = pair._replace(source=one_line(pair.source), target=one_line(pair.target))
        counted.pairs += 1
        seen.add(hash(pair[:2]))
        if len(counted.some) < MOST_KEPT:
            counted.some.append(pair)
        if counted.pairs >= MOST_READ and corpus.options.kind not in _READ_WHOLE:
            last = pair
            break
    read, different, more = counted.pairs, len(seen) - before, ""
    if last is not None:
        share = read / (read + empty + sum(rows.rows for rows in corpus.skipped() if rows.what in ("row", "unit")))
        counted.pairs, counted.about = (
            _estimate(corpus, last, read, share),
            corpus.options.kind != "parquet" or share < 1,
        )
        more = f", looking at the first {read:,} pairs; `tmt prepare` reads all"
    counted.different = round(different * counted.pairs / max(1, read))
    _note_skipped(corpus, empty, more)
    return counted


def count_held_out(corpus: FilesCorpus, files: Sequence[tuple[Path, ...]]) -> int:
    """The number of pairs in some files of a corpus that is read by nobody else. Raises TmtError as `count_pairs`."""
    read = Counter[bool]()
    for some in files:
        read.update(bool(one.source.strip() and one.target.strip()) for one in corpus.read_files(*some))
    _note_skipped(corpus, read[False])
    return read[True]


def _note_skipped(corpus: Corpus, empty: int, more: str = "") -> None:
    """Notes on pairs with an empty side, and on rows that are no pairs. more: how far was read"""
    if empty:
        note(f"{', '.join(map(str, corpus.sources()))}: {number_of(empty, 'pair')} with an empty side left out{more}")
    for rows in corpus.skipped():
        which = ", this is the first" if rows.first and rows.rows > 1 else ""
        skipped = f"{number_of(rows.rows, rows.what)} skipped{which}{more}: {rows.reason}. {rows.remedy}"
        note(f"{next(iter(rows.first), rows.place)}: {skipped}".rstrip())


def _estimate(corpus: Corpus, last: Pair, read: int, share: float) -> int:
    """The number of pairs, if `read` were found until `last`: by the rows, units or lines of the files.

    share: of the rows or units until `last` that are pairs
    """
    files = corpus.sources()[:: 2 if corpus.options.kind == "text" else 1]
    if corpus.options.kind == "parquet":
        return max(read, round(share * sum(map(_parquet_rows, files))))
    if corpus.options.kind == "tmx":
        return max(read, round(share * sum(_occurrences(b"</tu>", file) for file in files)))
    name, _, line = last.place.rpartition(":")
    lines = {str(file): _occurrences(b"\n", file) for file in files}
    before = list(lines).index(name)
    estimate = round(read * sum(lines.values()) / (sum(list(lines.values())[:before]) + int(line)))
    return max(read, estimate)


def _parquet_rows(file: Path) -> int:
    with open_parquet(file) as opened:
        return int(opened.metadata.num_rows)


def _occurrences(mark: bytes, file: Path) -> int:
    """How often these bytes occur in a file."""
    found, rest = 0, b""
    with readable(file, "reading a corpus"), open_bytes(file) as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            found += (rest + block).count(mark)
            rest = (rest + block)[len(rest + block) - len(mark) + 1 :]
    return found
