"""Entries of `data.corpus` whose files are training, validation and test data by their names."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from transformer_mt.corpora.base import RESERVED_SPLITS, WHOLE, Corpus, FilesCorpus, files_like
from transformer_mt.corpora.looking import Contents
from transformer_mt.corpora.splits import (
    TEST,
    TRAIN,
    VALIDATION,
    Files,
    is_column_of_splits,
    mixed_of,
    names_of,
    role_of,
    roles_of,
)
from transformer_mt.errors import TmtError
from transformer_mt.files.address import is_address
from transformer_mt.files.lines import path_of
from transformer_mt.reporting.notes import note
from transformer_mt.workflows.proposal.counting import count_held_out

Value = str | dict[str, str]  # files, as in a config
_LONGEST_NAME = 60  # characters of the name of a test set
_LARGE = 20_000  # pairs for validation without a test set, as at AI Hub: each validation would take long
_MANY, _MOST = 20, 1_000  # training files, of which more get a pattern if they can, and more must


def with_splits(
    entries: Sequence[dict[str, Any]], corpora: Sequence[Corpus]
) -> list[tuple[dict[str, Any] | None, str]]:
    """Each entry with the splits that the names of all files tell, and in words what these are.

    None instead of an entry that has only validation or test sets, beside others; a note names them.
    """
    listed, roles = _roles_in(corpora)
    if not roles:
        if mixed := mixed_of([files for some in listed for files in some], also_alone=True):
            why = "but all pairs are divided by chance. If there are training files too, give them with it"
            note(f"{mixed[0]}: a {mixed[1]} set by its name, {why}")
        return [(entry, "") for entry in entries]
    names = set[str]()
    sets = [_sets(one, roles, names) if isinstance(one, FilesCorpus) else [] for one in corpora]
    held_out = [one for some in sets for one in some]
    number = sum(one.pairs for one in held_out) if all(one.role == VALIDATION for one in held_out) else 0
    many = number if number > _LARGE else 0
    return [_with_splits(*one, roles, many) for one in zip(entries, listed, sets, strict=True)]


def lacks_training(corpora: Sequence[Corpus]) -> bool:
    """Whether the files of one entry are all for validation or test, by the names of all files."""
    listed, roles = _roles_in(corpora)
    return bool(roles) and any(TRAIN not in map(roles.get, some) for some in listed)


def _roles_in(corpora: Sequence[Corpus]) -> tuple[list[list[Files]], Mapping[Files, str]]:
    """The files of each entry, and what all of them are by their names."""
    listed = [one.entries(WHOLE) if isinstance(one, FilesCorpus) else [] for one in corpora]
    return listed, roles_of([files for some in listed for files in some])


def note_split_column(contents: Contents, file: Path) -> None:
    """A note for a column that tells the split of each row: no kind of corpus reads it."""
    for name, cells in contents.columns.items():
        if is_column_of_splits(str(name), cells):
            remedy = "Write the rows of each split to a file of its own, such as train.tsv and test.tsv."
            note(f"{file}: the column {name} tells splits, and is not read: rows are divided by chance. {remedy}")


def require_name(path: Path) -> None:
    """Raises TmtError if a config cannot name this file or folder."""
    problem = ""
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        problem = "the name of this file is not UTF-8, so a config cannot name it"
    if any(unicodedata.category(one) == "Cc" for one in str(path)):
        problem = "the name of this file has a control character, so a config cannot name it"
    if problem:
        raise TmtError(problem, place=path, remedy="Rename it.")


def training_part(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with its training files alone, not divided."""
    rest = {key: value for key, value in entry.items() if key not in (TRAIN, VALIDATION, TEST)}
    return {**rest, "files": entry[TRAIN]} if TRAIN in entry else rest


class _Set(NamedTuple):
    """A validation or test set. value: its files in a config; first: the first of them"""

    name: str
    role: str
    value: Value
    first: Files
    pairs: int

    def __str__(self) -> str:
        return f"{self.name} ({self.pairs:,} pairs)"


def _with_splits(
    entry: dict[str, Any], listed: Sequence[Files], sets: Sequence[_Set], roles: Mapping[Files, str], many: int
) -> tuple[dict[str, Any] | None, str]:
    """many: the pairs of all sets if these are for validation, and so many that they are test sets; otherwise 0"""
    train = [files for files in listed if roles[files] == TRAIN]
    if not sets:
        return entry, ""
    if not train:  # such an entry has no place for them
        for one in sets:
            what = f"it is a {one.role} set by its name, and the training data has another form: write it in that form"
            note(f"{one.first[0]}: not read, because {what}")
        return None, ""
    named = dict(zip(listed, names_of(listed), strict=True))
    validation = None if many else next((one for one in sets if one.role == VALIDATION), None)
    said = f"by the names of the files: training {_shown([named[files] for files in train])}"
    if many:
        said += f", of which validation pairs are drawn: sets for validation with {many:,} pairs are test sets"
    elif validation is not None:
        said += f"; validation {validation}"
    splits: dict[str, Any] = {"files" if validation is None else TRAIN: _all_of(train)}
    if validation is not None:
        splits[VALIDATION] = validation.value
    # Further validation sets are scored, too. The first set is the one that is scored by default: a real test set.
    if tests := sorted((one for one in sets if one is not validation), key=lambda one: one.role != TEST):
        splits[TEST] = {one.name: one.value for one in tests}
        said += f"; test {', '.join(map(str, tests))}"
    return _replaced(entry, splits), said


def _sets(corpus: FilesCorpus, roles: Mapping[Files, str], names: set[str]) -> list[_Set]:
    """The validation and test sets of an entry. Raises TmtError if one cannot be read.

    names: of the sets of other entries, to which those of these are added
    Numbered parts (`test-00000-of-00002`) are one set, and so are files in a folder that is named as validation data.
    """
    together: dict[str, list[Files]] = {}
    listed = corpus.entries(WHOLE)
    for files, name in zip(listed, names_of(listed), strict=True):
        if roles[files] != TRAIN:
            folder = _validation_folder(name) if roles[files] == VALIDATION else None
            key = name if folder is None else folder
            together.setdefault(re.sub(r"[-_.]?\d+[-_]of[-_]\d+", "", key), []).append(files)
    found = list[_Set]()
    for key, some in together.items():
        pattern = _value(some[0]) if len(some) == 1 else _pattern_of(some)
        for part in [some] if pattern is not None else [[files] for files in some]:
            names.add(name := _new_name(key, names))
            pairs = count_held_out(type(corpus)(corpus.options, corpus.source, corpus.target), part)
            found.append(_Set(name, roles[part[0]], pattern or _value(part[0]), part[0], pairs))
    return found


def _validation_folder(name: str) -> str | None:
    """The nearest folder of a file that is named as validation data, whatever folders it has inside."""
    folders = [folder.as_posix() for folder in PurePath(name).parents]
    return next((one for one in folders if role_of(f"{PurePath(one).name}/file") == VALIDATION), None)


def _pattern_of(some: Sequence[Files]) -> Value | None:
    """A pattern for the files of one set; None if it would match others too."""
    patterns = []
    for paths in zip(*some, strict=True):
        texts = [str(path) for path in paths]
        start = os.path.commonprefix(texts)  # noqa: RUF071 (characters are meant, not folders)
        end = os.path.commonprefix([text[len(start) :][::-1] for text in texts])[::-1]  # noqa: RUF071
        pattern = f"{start}*{end}"
        if any("/" in text[len(start) : len(text) - len(end)] for text in texts):
            folder = start.rpartition("/")[0]
            if not folder or is_address(folder) or not _is_small(Path(folder), len(some)):
                return None
            pattern = f"{folder}/**/*{end.rpartition('/')[2]}"
        try:
            if sorted(files_like(pattern)) != sorted(map(path_of, texts)):
                return None
        except TmtError:
            return None
        patterns.append(pattern)
    return patterns[0] if len(patterns) == 1 else {"source": patterns[0], "target": patterns[1]}


def _is_small(folder: Path, files: int) -> bool:
    """Whether a folder has not many more files than these: it may be the whole disk, and a pattern looks at each."""
    found = (len(folders) + len(names) for _, folders, names in os.walk(folder))
    seen = 0
    return all((seen := seen + one) <= 10 * files + 1_000 for one in found)


def _new_name(key: str, names: set[str]) -> str:
    """The key as the name of a test set, which has only some characters."""
    stem = re.sub(r"[^\w.-]+", "-", key)[-_LONGEST_NAME:].strip("-.") or TEST
    stem = f"{stem}-set" if stem in RESERVED_SPLITS else stem
    return next(one for one in (stem, *(f"{stem}-{n}" for n in range(2, len(names) + 3))) if one not in names)


def _replaced(entry: Mapping[str, Any], splits: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with these keys where it had `files`."""
    return dict(pair for key in entry for pair in (splits.items() if key == "files" else [(key, entry[key])]))


def _value(files: Files) -> Value:
    for file in files:
        require_name(file)
    return str(files[0]) if len(files) == 1 else {"source": str(files[0]), "target": str(files[1])}


def _all_of(train: Sequence[Files]) -> Value | list[Value]:
    """Training files; many of them as a pattern if that is possible."""
    if len(train) == 1:
        return _value(train[0])
    pattern = _pattern_of(train) if len(train) > _MANY else None
    if pattern is None and len(train) > _MOST:
        problem = f"a config cannot name {len(train):,} training files"
        raise TmtError(problem, place=str(train[0][0]), remedy="Put them into a folder of their own, such as train.")
    return pattern or list(map(_value, train))


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 6 else f"{', '.join(names[:4])} and {len(names) - 4} more"
