"""Finds the corpora in the files that a user has: their entries in a config, and how many pairs they have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer_mt.config.choices import choice
from transformer_mt.config.languages import code_of
from transformer_mt.corpora.base import WHOLE, Corpus, FilesCorpus
from transformer_mt.corpora.looking import Contents, common_encoding
from transformer_mt.errors import TmtError
from transformer_mt.files.opening import plain_path
from transformer_mt.reporting.notes import note
from transformer_mt.workflows.proposal.columns import (
    Side,
    not_read,
    note_other_languages,
    sides_of,
    with_true_languages,
)
from transformer_mt.workflows.proposal.counting import MOST_KEPT, Count, count_pairs
from transformer_mt.workflows.proposal.splits import (
    lacks_training,
    note_split_column,
    require_name,
    training_part,
    with_splits,
)
from transformer_mt.workflows.proposal.tables import SIDES, Tables, note_not_read

_BY_HEADERS = "files of several forms; their headers name the columns"


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
        looked = _pairs_of_texts(looked, texts)
    entries: list[dict[str, Any]] = []
    reasons: list[dict[str, str]] = []
    for path, named in looked:
        require_name(path)
        found = with_true_languages(named, path)
        sides = sides_of(found, path, source, target)
        note_other_languages(found, path, sides)
        source, target = (side.language for side in sides)
        entry = _entry(path, found, sides)
        same = next((one for one in entries if {**one, "files": 0} == {**entry, "files": 0}), None)
        if same is None:
            entries.append(entry)
            reasons.append(found.reasons | not_read(found, sides))
        else:
            same["files"] = [*(same["files"] if isinstance(same["files"], list) else [same["files"]]), entry["files"]]
    assert source
    assert target
    readers = [_corpus_of(entry, source, target) for entry in entries]
    if lacks_training(readers) and (one := _of_ai_hub(entries, source, target)):
        why = {key: text for some in reversed(reasons) for key, text in some.items() if key == "columns"}
        entries, reasons, readers = [one], [{"forms": _BY_HEADERS, **why}], [_corpus_of(one, source, target)]
    for path, _ in looked:
        note_not_read(path, readers)
    splits = with_splits(entries, readers)
    corpora, seen = list[FoundCorpus](), set[int]()
    for given, why, (divided, said) in zip(entries, reasons, splits, strict=True):
        if divided is not None:
            count = count_pairs(_corpus_of(training_part(divided), source, target), seen)
            why = why | ({"splits": said} if said else {})
            corpora.append(FoundCorpus(divided, _files_of(given), why, count))
    if not any(said for _, said in splits):
        for path, contents in looked:
            note_split_column(contents, path)
    return Found(corpora, (source, target))


def _of_ai_hub(entries: Sequence[dict[str, Any]], source: str, target: str) -> dict[str, Any] | None:
    """An entry of the kind that reads files of several forms by their headers; None if it would not read the same."""
    if "ko" not in (source, target) or not {entry["kind"] for entry in entries} <= {"xlsx", "csv", "json"}:
        return None
    one = {"kind": "aihub", "files": [file for entry in entries for file in _files_of(entry)]}
    corpus = _corpus_of(one, source, target)
    assert isinstance(corpus, FilesCorpus)
    try:
        for entry in entries:
            own = _corpus_of(entry, source, target)
            assert isinstance(own, FilesCorpus)
            for files in own.entries(WHOLE):
                if next(corpus.read_files(*files), None) != next(own.read_files(*files), None):
                    return None
    except TmtError:
        return None
    return one


def _looked(paths: Sequence[Path]) -> list[tuple[Path, Contents]]:
    """The paths, each once, and what they contain; instead of a folder or an archive that has tables, these."""
    found: dict[Path, tuple[Path, Contents]] = {}
    tables = Tables()
    given = [file for path in paths for file in tables.at(path)]
    folders = {file.resolve() for file in given if file.is_dir()}  # of parallel files, of which each is read
    for file in given:
        real, contents = file.resolve(), tables.contents(file)
        if real in found or (contents.kind == "text" and not folders.isdisjoint(real.parents)):
            note(f"{file}: given twice, and read once")
        else:
            found[real] = file, contents
    return list(found.values())


def _pairs_of_texts(looked: list[tuple[Path, Contents]], texts: list[Path]) -> list[tuple[Path, Contents]]:
    """Two files with a sentence in each line, as one table of two columns; of more files, those with the same name."""
    contents = dict(looked)
    groups: dict[Path, list[Path]] = {}
    for path in texts:
        groups.setdefault(plain_path(path).with_suffix(""), []).append(path)
    pairs = [texts] if len(texts) == 2 else list(groups.values())
    if any(len(pair) != 2 for pair in pairs) or len(looked) != len(texts):
        two = "Give the two files of a corpus:  --data corpus.de --data corpus.en"
        remedy = f"{two}   Or the folder that has them, or a table with two columns."
        place = next((pair[0] for pair in pairs if len(pair) != 2), texts[0])
        raise TmtError("the lines of this file have only one column", place=place, remedy=remedy)
    return [_two_texts(*((path, contents[path]) for path in _ordered(pair))) for pair in pairs]


def _ordered(pair: Sequence[Path]) -> list[Path]:
    """The source first, if the endings tell it: `.src` and `.trg`."""
    return sorted(pair, key=lambda path: plain_path(path).suffix.lower() in SIDES[1:])


def _two_texts(one: tuple[Path, Contents], other: tuple[Path, Contents]) -> tuple[Path, Contents]:
    columns: dict[str | int, list[str]] = {str(path): found.columns[0] for path, found in (one, other)}
    languages: dict[str | int, str] = {}
    for (path, _), (partner, _) in ((one, other), (other, one)):
        words = [word for word in _words(path) if word not in _words(partner)]
        if code := code_of(plain_path(path).suffix[1:]) or next(filter(None, map(code_of, words)), None):
            languages[str(path)] = code
    encoding = common_encoding(
        {path: (found.options.get("encoding", "utf-8"), found.columns[0]) for path, found in (one, other)}
    )
    options = {"encoding": encoding} if encoding != "utf-8" else {}
    return one[0], Contents("text", options, columns, languages, {**other[1].reasons, **one[1].reasons})


def _words(path: Path) -> list[str]:
    return re.findall(r"[^\W\d_]+", path.name)


def _entry(path: Path, found: Contents, sides: tuple[Side, Side]) -> dict[str, Any]:
    source, target = (side.column for side in sides)
    if str(path) in found.columns:
        return {"kind": "text", "files": {"source": source, "target": target}, **found.options}
    columns = {} if found.kind in ("text", "tmx") else {"source_column": source, "target_column": target}
    return {"kind": found.kind, "files": str(path), **found.options, **columns}


def _files_of(entry: dict[str, Any]) -> list[str]:
    """The files of an entry, as a user names them."""
    files = entry["files"] if isinstance(entry["files"], list) else [entry["files"]]
    return [name for one in files for name in (one.values() if isinstance(one, dict) else [one])]


def _corpus_of(entry: dict[str, Any], source: str, target: str) -> Corpus:
    cls = choice("corpus", entry["kind"])
    corpus: Corpus = cls(cls.Options.model_validate(entry), source, target)
    return corpus
