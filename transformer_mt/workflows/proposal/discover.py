"""Finds the corpora in the files that a user has: their entries in a config, and how many pairs they have."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformer_mt.config.choices import choice
from transformer_mt.config.languages import code_of
from transformer_mt.corpora.aihub import SUFFIXES
from transformer_mt.corpora.base import Corpus, Pair
from transformer_mt.corpora.looking import Contents, common_encoding, contents_of
from transformer_mt.corpora.parquet import open_parquet
from transformer_mt.corpora.tables import listed
from transformer_mt.errors import TmtError, number_of
from transformer_mt.files.folder import files_below
from transformer_mt.files.opening import COMPRESSED, open_bytes, read_head, readable, with_archived
from transformer_mt.reporting.notes import note
from transformer_mt.text.batches import one_line
from transformer_mt.workflows.proposal.columns import (
    Side,
    is_table,
    not_read,
    note_other_languages,
    sides_of,
    with_true_languages,
)
from transformer_mt.workflows.proposal.splits import note_split_column, require_name, training_part, with_splits

MOST_READ = 100_000  # pairs of a file; the number of pairs in a larger one is estimated
MOST_KEPT = 10_000  # pairs, to measure lengths
TABLES = (".tsv", ".csv", ".txt", ".jsonl", ".tmx", ".parquet", *SUFFIXES)
_IN_ARCHIVES = tuple(suffix for suffix in TABLES if suffix not in (".xlsx", ".parquet", ".txt"))
NOTES = (".txt", ".json")  # these may be about the tables, such as README.txt
_LONGEST_NOTE = 1 << 20  # bytes
_READ_WHOLE = ("xlsx", "json")  # kinds whose number of pairs cannot be estimated by lines


@dataclass
class Count:
    """Pairs that were read. different: not equal; about: estimated; some: the first ones."""

    pairs: int = 0
    different: int = 0
    about: bool = False
    some: list[Pair] = field(default_factory=list)


@dataclass(frozen=True)
class FoundCorpus:
    """entry: of data.corpus; files: as a user names them; reasons: in words, by the key that they decide; count: pairs
    that are not known to be for validation or test."""

    entry: dict[str, Any]
    files: list[str]
    reasons: dict[str, str]
    count: Count


@dataclass(frozen=True)
class Found:
    """languages: source and target"""

    corpora: list[FoundCorpus]
    languages: tuple[str, str]

    @property
    def total(self) -> Count:
        counts = [one.count for one in self.corpora]
        pairs, different = sum(one.pairs for one in counts), sum(one.different for one in counts)
        some = [pair for one in counts for pair in one.some]
        return Count(pairs, different, any(one.about for one in counts), some[:MOST_KEPT])


def discover(paths: Sequence[Path], source: str | None, target: str | None) -> Found:
    """The corpora in files and folders. Raises TmtError if they cannot be read, or if it is not clear what they are."""
    looked = _looked(paths)
    texts = [path for path, found in looked if found.kind == "text" and len(found.columns) == 1]
    if texts:
        looked = [_two_texts(looked, texts)]
    entries: list[dict[str, Any]] = []
    reasons: list[dict[str, str]] = []
    for path, named in looked:
        require_name(path)
        found = with_true_languages(named, path)
        sides = sides_of(found, path, source, target)
        note_other_languages(found, path, sides)
        note_split_column(found, path)
        source, target = (side.language for side in sides)
        entry = _entry(path, found, sides)
        same = next((one for one in entries if {**one, "files": 0} == {**entry, "files": 0}), None)
        if same is None or not (isinstance(entry["files"], str) and isinstance(same["files"], str | list)):
            entries.append(entry)
            reasons.append(found.reasons | not_read(found, sides))
        else:
            same["files"] = [*([same["files"]] if isinstance(same["files"], str) else same["files"]), entry["files"]]
    assert source
    assert target
    splits = with_splits(entries, [_corpus_of(entry, source, target) for entry in entries])
    corpora, seen = list[FoundCorpus](), set[int]()
    for given, why, (divided, said) in zip(entries, reasons, splits, strict=True):
        if divided is not None:
            count = _count(training_part(divided), source, target, seen)
            why = why | ({"splits": said} if said else {})
            corpora.append(FoundCorpus(divided, _files_of(given), why, count))
    return Found(corpora, (source, target))


def _looked(paths: Sequence[Path]) -> list[tuple[Path, Contents]]:
    """The paths, each once, and what they contain; instead of a folder that has tables, these."""
    found: dict[Path, tuple[Path, Contents]] = {}
    given = [file for path in paths for file in (_tables_in(path) if path.is_dir() else _archived(path)) or [path]]
    folders = {file.resolve() for file in given if file.is_dir()}  # of parallel files, of which each is read
    for file in given:
        real, contents = file.resolve(), contents_of(file)
        if real in found or (contents.kind == "text" and not folders.isdisjoint(real.parents)):
            note(f"{file}: given twice, and read once")
        else:
            found[real] = file, contents
    return list(found.values())


def _tables_in(folder: Path) -> list[Path]:
    """The tables in a folder; none if it has parallel files instead."""
    inside = sorted(one for one in folder.iterdir() if not one.name.startswith(("~$", ".")))
    named = [one for one in inside if one.suffix.lower() in TABLES]
    if not named and not _is_parallel(folder):
        inside = with_archived(files_below(folder), _IN_ARCHIVES)
        named = [one for one in inside if one.suffix.lower() in TABLES]
    notes = {one: why for one in named if one.suffix.lower() in NOTES and (why := _why_no_table(one))}
    tables = [one for one in named if one not in notes]
    if not tables and notes and _is_parallel(folder):
        note(f"{folder}: only the parallel files in it are read, not {listed([one.name for one in notes])}")
        return []
    if not tables:
        tables, notes = named, {}
    for one, why in notes.items():
        note(f"{one}: not read, because other files of this folder can be: {why}")
    if tables and (others := [one.name for one in inside if one not in named]):
        note(f"{folder}: only the tables in it are read, not {listed(others)}")
    return tables


def _archived(path: Path) -> list[Path]:
    """The tables in an archive that has no parallel files."""
    if path.suffix.lower() != ".zip" or not path.is_file() or _is_parallel(path):
        return []
    inside = with_archived([path], _IN_ARCHIVES)
    if len(inside) > 1 and path in inside:
        note(f"{path}: workbooks and Parquet files in it are not read; unpack it")
    return [one for one in inside if one != path]


def _why_no_table(file: Path) -> str:
    """Why a file is no table of pairs; "" if it may be one."""
    try:
        found = contents_of(file)
    except TmtError as error:
        if _is_about_others(file):
            return error.message
        raise
    return "" if is_table(found) else "it is no table of sentence pairs"


def _is_about_others(file: Path) -> bool:
    """Whether a file that is no table is by its name or form about other files, so that no pair is lost without it."""
    if file.suffix.lower() != ".json":
        return re.match("readme|licen[cs]e|copying|notice|citation|about|info", file.name, re.IGNORECASE) is not None
    try:
        content = read_head(file, _LONGEST_NOTE + 1)
        return len(content) <= _LONGEST_NOTE and isinstance(json.loads(content), dict)
    except (TmtError, ValueError, RecursionError):
        return False


def _is_parallel(folder: Path) -> bool:
    try:
        return bool(contents_of(folder).columns)
    except TmtError:
        return False


def _two_texts(looked: list[tuple[Path, Contents]], texts: list[Path]) -> tuple[Path, Contents]:
    """Two files with a sentence in each line, as one table of two columns."""
    if len(looked) != 2 or len(texts) != 2:
        two = "Give the two files of a corpus:  --data corpus.de --data corpus.en"
        remedy = f"{two}   Or the folder that has them, or a table with two columns."
        raise TmtError("the lines of this file have only one column", place=texts[0], remedy=remedy)
    (one, first), (_, second) = looked
    columns: dict[str | int, list[str]] = {str(path): found.columns[0] for path, found in looked}
    languages: dict[str | int, str] = {}
    for path in texts:
        plain = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
        if code := code_of(plain.suffix[1:]):
            languages[str(path)] = code
    encoding = common_encoding(
        {path: (found.options.get("encoding", "utf-8"), found.columns[0]) for path, found in looked}
    )
    options = {"encoding": encoding} if encoding != "utf-8" else {}
    return one, Contents("text", options, columns, languages, {**second.reasons, **first.reasons})


def _entry(path: Path, found: Contents, sides: tuple[Side, Side]) -> dict[str, Any]:
    source, target = (side.column for side in sides)
    if str(path) in found.columns:
        return {"kind": "text", "files": {"source": source, "target": target}, **found.options}
    columns = {} if found.kind in ("text", "tmx") else {"source_column": source, "target_column": target}
    return {"kind": found.kind, "files": str(path), **found.options, **columns}


def _files_of(entry: dict[str, Any]) -> list[str]:
    """The files of an entry, as a user names them."""
    files = entry["files"]
    return list(files.values()) if isinstance(files, dict) else [files] if isinstance(files, str) else list(files)


def _corpus_of(entry: dict[str, Any], source: str, target: str) -> Corpus:
    cls = choice("corpus", entry["kind"])
    corpus: Corpus = cls(cls.Options.model_validate(entry), source, target)
    return corpus


def _count(entry: dict[str, Any], source: str, target: str, seen: set[int]) -> Count:
    """Read a corpus as `prepare` will do. Raises TmtError with file and row for what cannot be read.

    seen: the hashes of the pairs in the corpora before; those of this one are added
    """
    corpus = _corpus_of(entry, source, target)
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
        if counted.pairs >= MOST_READ and entry["kind"] not in _READ_WHOLE:
            last = pair
            break
    read, different, more = counted.pairs, len(seen) - before, ""
    if last is not None:
        share = read / (read + empty + sum(rows.rows for rows in corpus.skipped() if rows.what in ("row", "unit")))
        counted.pairs, counted.about = _estimate(corpus, last, read, share), entry["kind"] != "parquet" or share < 1
        more = f", looking at the first {read:,} pairs; `tmt prepare` reads all"
    counted.different = round(different * counted.pairs / max(1, read))
    if empty:
        note(f"{', '.join(map(str, corpus.sources()))}: {number_of(empty, 'pair')} with an empty side left out{more}")
    for rows in corpus.skipped():
        which = ", this is the first" if rows.first and rows.rows > 1 else ""
        skipped = f"{number_of(rows.rows, rows.what)} skipped{which}{more}: {rows.reason}. {rows.remedy}"
        note(f"{next(iter(rows.first), rows.place)}: {skipped}".rstrip())
    return counted


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
