"""Entries of `data.corpus` whose files are training, validation and test data by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer_mt.corpora.base import Corpus
from transformer_mt.corpora.splits import TEST, TRAIN, VALIDATION, splits_of
from transformer_mt.reporting.notes import note


def with_splits(entry: Mapping[str, Any], corpus: Corpus) -> tuple[dict[str, Any], str]:
    """An entry of `data.corpus` with the splits that its files have by their names, and what was found, in words."""
    found = splits_of(corpus)
    if found is None:
        return dict(entry), ""
    entry = {key: value for key, value in entry.items() if key != "files"}
    train = [_value(one) for one in found.train]
    shown = train[0] if len(train) == 1 else train
    of_train = _named([files[0] for files in found.train])
    if not found.validation:  # a part of the training files is for validation
        for name, one in found.tests.items():
            note(f"{one[0]}: not read, because it is a test set by its name ({name}). Score with it:  tmt evaluate")
        return {**entry, "files": shown}, f"training {of_train}; its name keeps a test set out of it"
    said = f"by the names of the files: training {of_train}; validation {_named([found.validation[0][0]])}"
    entry |= {TRAIN: shown, VALIDATION: _value(found.validation[0])}
    if found.tests:
        entry[TEST] = {name: _value(one) for name, one in found.tests.items()}
        said += f"; test {', '.join(found.tests)}"
    return entry, said


def training_part(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with its training files alone, not divided."""
    if TRAIN not in entry:
        return dict(entry)
    rest = {key: value for key, value in entry.items() if key not in (TRAIN, VALIDATION, TEST)}
    return {**rest, "files": entry[TRAIN]}


def _value(files: tuple[Path, ...]) -> str | dict[str, str]:
    """Files as in a config."""
    return str(files[0]) if len(files) == 1 else {"source": str(files[0]), "target": str(files[1])}


def _named(files: Sequence[Path]) -> str:
    return files[0].name if len(files) == 1 else f"{files[0].name} and {len(files) - 1} more"
