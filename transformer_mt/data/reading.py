"""The first pass: read and clean a corpus in worker processes, which write the remaining pairs to shards.

Ranges of plain files are read by the workers; so are whole files, if there are several. A single compressed file or
table is read here, and its pairs are sent to the workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.corpus import CorpusConfig
from transformer_mt.corpora.base import Corpus, Pair
from transformer_mt.corpora.parts import Part, Texts, size_of
from transformer_mt.data.journal import Journal, WrittenFile
from transformer_mt.data.languages import PLACES, LanguageCheck, is_sampled, require_sentences
from transformer_mt.data.parallel import LostError, Progress, Workers, chunks
from transformer_mt.data.passes import Pass, corpus_of
from transformer_mt.data.shards import CleaningCounts, Raws, Shard, Stream, write_shard
from transformer_mt.errors import TmtError
from transformer_mt.files.encodings import BROKEN
from transformer_mt.text.batches import Batch, as_lines, keys_of_pairs, one_line
from transformer_mt.text.cleaning import fault_of_pair

SHARD = 20_000  # most pairs of a shard
SEVERAL = 4  # whole files; fewer are read here, and their pairs are sent to the workers
LANGUAGE, INVALID = "language", "invalid bytes"  # rules that drop pairs
# Kinds of outliers.
DECODED, QUOTED, ENTITIES, TAGS = "decoded", "quoted", "entities", "tags"
PIECES, TOKENIZED, LOWER, LOWER_TARGET = "pieces", "tokenized", "lower", "lower target"
USUAL = {PIECES: 0.01, TOKENIZED: 0.1, LOWER: 0.9, LOWER_TARGET: 0.9}  # shares of the pairs that usual text may have
_UNUSUAL = {
    DECODED: Batch.wrongly_decoded,
    QUOTED: Batch.quoted_as_csv,
    TAGS: Batch.with_tags,
    PIECES: Batch.in_pieces,
    TOKENIZED: Batch.tokenized,
}


def unusual(outliers: Counter[str], read: int) -> Counter[str]:
    """The outliers that are frequent enough to report. read: number of pairs"""
    found = Counter({kind: count for kind, count in outliers.items() if count > USUAL.get(kind, 0) * read})
    if PIECES in found:
        del found[TOKENIZED]
    return found


@dataclass(frozen=True)
class Cleaner:
    """Cleans some pairs. source, target: languages.

    drops_languages: whether to drop pairs with a sentence in another language
    samples:         whether to check the languages of a sample of the pairs
    """

    rules: CleaningConfig
    source: str
    target: str
    trains: bool
    drops_languages: bool = False
    samples: bool = False

    def __call__(self, read: Texts) -> tuple[Texts, tuple[Raws, Raws], CleaningCounts]:
        """The remaining pairs, the raw text of those that changed, and counts."""
        raw = read._replace(
            sources=as_lines(read.sources),
            targets=as_lines(read.targets),
            file=one_line(read.file),
            numbers=read.numbers if read.file else as_lines(list(map(str, read.numbers))),
        )
        counts = CleaningCounts(len(raw.sources))
        invalid = self._invalid(read)
        self._check_sample(read, counts, invalid)
        batches = Batch(raw.sources), Batch(raw.targets)
        (sources, changed), (targets, changed_too) = (
            batch.clean(self.rules, language)
            for batch, language in zip(batches, (self.source, self.target), strict=True)
        )
        for row in sorted({*changed, *changed_too}):
            counts.changed.update(sorted(changed.get(row, set()) | changed_too.get(row, set())))
        cleaned = raw._replace(sources=sources, targets=targets)
        dropped = self._drop(cleaned, counts, invalid)
        unusual_lines = _UNUSUAL if self.rules.entities else {**_UNUSUAL, ENTITIES: Batch.with_entities}
        shown = (Batch(sources), Batch(targets)) if self.rules.entities else batches  # `&lt;b&gt;` becomes a tag
        found = {kind: rows_of(shown[0]) | rows_of(shown[1]) for kind, rows_of in unusual_lines.items()}
        found |= {LOWER: shown[0].in_lower_case(), LOWER_TARGET: shown[1].in_lower_case()}
        for kind, some in found.items():
            if kept := sorted(some - dropped):
                counts.outliers[kind] = len(kept)
                counts.places[kind] = [raw.place(row) for row in kept[:PLACES]]
        rows = [row for row in range(len(sources)) if row not in dropped] if dropped else range(len(sources))
        raws = tuple(
            {new: side[row] for new, row in enumerate(rows) if row in some} if some else {}
            for side, some in ((raw.sources, changed), (raw.targets, changed_too))
        )
        if dropped:
            sources, targets = ([side[row] for row in rows] for side in (sources, targets))
            cleaned = Texts(sources, targets, raw.file, [raw.numbers[row] for row in rows])
        return cleaned, (raws[0], raws[1]), counts

    def _invalid(self, read: Texts) -> set[int]:
        """The rows with bytes that are not in the encoding of their file; with another rule, they are an error."""
        if self.rules.invalid != "drop":
            return set()
        return {row for side in (read.sources, read.targets) for row, text in enumerate(side) if BROKEN in text}

    def _check_sample(self, read: Texts, counts: CleaningCounts, invalid: Set[int]) -> None:
        check = LanguageCheck(self.source, self.target, all_pairs=False, found=counts.languages)
        copies = not self.trains and self.rules.identical  # in training, cleaning counts these; or they are meant
        for row, number in enumerate(read.numbers if self.samples else ()):
            if row not in invalid and (copies or read.sources[row] != read.targets[row]):
                if isinstance(number, int) and not is_sampled(number):
                    continue
                check(Pair(read.sources[row], read.targets[row], read.place(row)))

    def _drop(self, texts: Texts, counts: CleaningCounts, invalid: Set[int]) -> set[int]:
        """Count the pairs that violate a rule, and return their rows."""
        longest, dropped = self.rules.max_characters, set[int]()
        check = LanguageCheck(self.source, self.target, True, counts.languages) if self.drops_languages else None
        for row, (source, target) in enumerate(zip(texts.sources, texts.targets, strict=True)):
            fault = None
            if row in invalid:
                fault = INVALID
            elif (
                source == target
                or source.isspace()
                or target.isspace()
                or not (0 < len(source) <= longest and 0 < len(target) <= longest)
            ):
                fault = fault_of_pair(source, target, self.rules, self.trains)
            if fault is None and check is not None and check(Pair(source, target, texts.place(row))):
                fault = LANGUAGE
            if fault is not None:
                counts.drop(fault, Pair(source, target, texts.place(row)))
                dropped.add(row)
        return dropped


class Item(NamedTuple):
    """What a worker cleans: the pairs of a part that it reads, or pairs that were read for it.

    name: of the shards that it writes
    """

    name: str
    part: Part | None
    texts: Texts | None = None


@dataclass
class Cleaned:
    """The shards that a worker has written, counts, and what its corpus has noted."""

    shards: list[Shard]
    counts: CleaningCounts
    files: list[WrittenFile]
    counted: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """Reads and cleans items of a stream, in a worker process. swapped: see `Pass`"""

    stream: Stream
    cleaner: Cleaner
    options: CorpusConfig
    swapped: bool = False

    @cached_property
    def _corpus(self) -> Corpus:
        languages = self.cleaner.source, self.cleaner.target
        source, target = languages[::-1] if self.swapped else languages
        return corpus_of(self.options, source, target, self.cleaner.rules)

    def __call__(self, item: Item) -> Cleaned:
        done, folder = Cleaned([], CleaningCounts(), []), self.stream.folder
        for number, texts in enumerate(self._texts(item)):
            if self.swapped:
                texts = texts.swapped()
            if texts.sources:
                kept, raws, counts = self.cleaner(texts)
                keys = keys_of_pairs(kept.sources, kept.targets)
                shard, files = write_shard(folder, f"{item.name}-{number:04}", kept, raws, keys)
                done.shards.append(shard)
                done.files += files
                done.counts.add(counts)
        if item.part is not None:
            done.counted = self._corpus.counted()
        return done

    def _texts(self, item: Item) -> Iterator[Texts]:
        if item.texts is not None:
            yield item.texts
        elif item.part is not None and item.part.spans is not None:
            yield from self._corpus.read_range(item.part).pieces(SHARD)
        elif item.part is not None:
            yield from map(Texts.of, chunks(self._corpus.read_part(self.stream.split, item.part), SHARD))


def clean_stream(
    stream: Stream, one: Pass, cleaner: Cleaner, workers: Workers, journal: Journal, progress: Progress
) -> None:
    """Write the shards of a stream and fill its counts. Raises TmtError if a file has no sentences of its languages."""
    corpus = one.corpus
    entries = corpus.entries(stream.split)
    weight = sum(size_of(entry[0]) for entry in entries if entry)
    items, n_done, done, entry = list[Part](), 0, 0, tuple[Path, ...]()
    work = Reading(stream, cleaner, corpus.options, one.swapped)

    def named() -> Iterator[tuple[str, Item]]:
        for item in _items(stream, corpus, entries):
            items.append(item.part or Part())
            yield item.name, item

    progress(f"reading {stream.split}", 0, None)
    try:
        for n_done, result in enumerate(journal.map(workers, work, Cleaned, named(), repr(cleaner)), start=1):
            part = items[n_done - 1]
            if part.files != entry:
                corpus.finish(entry)
                entry = part.files
            if result.counted:
                corpus.add_counted(result.counted)
            stream.counts.add(result.counts)
            stream.shards += result.shards
            done += part.weight
            progress(f"reading {stream.split}", stream.counts.read, done / weight if done else None)
    except LostError:  # nothing is wrong in the file
        raise
    except (TmtError, UnicodeDecodeError):
        if len(items) > n_done and items[n_done].spans is not None:
            for _ in corpus.read_part(stream.split, items[n_done]):  # raises this error with the right line and counts
                pass
        raise
    corpus.finish(entry)
    keys = "the codes in languages or direction of this corpus" if one.origin.tags else "data.source and data.target"
    require_sentences(stream.counts.languages, cleaner.source, cleaner.target, keys, one.swapped)


def _items(stream: Stream, corpus: Corpus, entries: list[tuple[Path, ...]]) -> Iterator[Item]:
    """The work for the workers, in order."""
    number = count()
    for part in (part for entry in entries for part in corpus.parts(entry)):
        if part.spans is not None or len(entries) >= SEVERAL:
            yield Item(f"{stream.name}-{next(number):06}", part)
        else:
            for pairs in chunks(corpus.read_part(stream.split, part), SHARD):
                yield Item(f"{stream.name}-{next(number):06}", None, Texts.of(pairs))
