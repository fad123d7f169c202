"""Splits that the names of files tell, such as `train.de`, `dev.de`, `newstest2014.de` and `Validation/a.json`.

Such files must not be mixed: a test set in the training data makes every later score on it wrong.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from transformer_mt.corpora.parts import size_of
from transformer_mt.files.address import Address
from transformer_mt.files.opening import plain_path

TRAIN, VALIDATION, TEST = "train", "validation", "test"
Files = tuple[Path, ...]  # those of an entry: one, or two parallel ones
_ROLES = {  # a name with words of several is the first of them
    TEST: {
        *("test", "tests", "testing", "tst", "testset", "devtest", "blindtest", "newstest", "newsdiscusstest"),
        *("newssyscomb", "generaltest", "wmttest", "eval", "evaluation", "evalset", "heldout", "holdout"),
    },
    VALIDATION: {
        *("valid", "validation", "validate", "val", "validset", "valset", "tune", "tuning"),
        *("dev", "devel", "development", "devset", "newsdev", "newsdiscussdev"),
    },
    TRAIN: {"train", "training", "trainset"},
}
_WEAKER = {  # they tell something only if no other word does: every corpus of AI Hub is `AI 학습용 데이터`
    TEST: {"평가", "시험", "테스트"},
    VALIDATION: {"검증"},
    TRAIN: {"학습", "훈련"},
}
_HELD_OUT = re.compile("held[-_ ]out")
_AI_HUB = re.compile(r"([TV])[LS](?![^\W\d_])")  # AI Hub's names of labels and sources, for training and validation
_DATA = re.compile(r"(?<=[가-힣]{2})(?:용|데이터|세트|셋)+(?![가-힣])")  # `검증용데이터`: data for validation


def role_of(name: str) -> str | None:
    """The split that a file is by its name; None: no word tells it.

    The nearest folder that is named as a split decides, then a word in the name of the file, then one in that of a
    folder; but `train/dev.de` is for validation. Digits may follow the word: `dev2010`, `newstest2014`.
    """
    *folders, file = (_words(part) for part in PurePath(name).parts)
    alone = [words for words in reversed(folders) if len(words) == 1]
    found = next(filter(None, map(_role, (*alone, file, *reversed(folders)))), None)
    if found is None:
        weaker = [_role(words, _WEAKER) for words in (file, *reversed(folders))]
        found = next((role for role in weaker if role not in (None, TRAIN)), TRAIN if TRAIN in weaker else None)
    return (_role(file) or found) if found == TRAIN and len(file) == 1 else found


def is_column_of_splits(name: str, cells: Iterable[str]) -> bool:
    """Whether each cell of a column is the word for a split, as `train`; if it is always the same one, by its name."""
    different = set(filter(None, map(str.strip, cells)))
    roles = {_role(_words(one)) if len(one.split()) == 1 else None for one in different}
    return None not in roles and len(roles) > (0 if _words(name) & {"split", "splits", "set", "subset"} else 1)


def _role(words: set[str], known: Mapping[str, set[str]] = _ROLES) -> str | None:
    return next((role for role, some in known.items() if words & some), None)


def _words(part: str) -> set[str]:
    """The words of a name, also of `DevData`."""
    part = unicodedata.normalize("NFC", part)
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", part).lower()
    return set(re.findall(r"[^\W\d_]+", _DATA.sub("", _HELD_OUT.sub("heldout", apart))))


def names_of(entries: Sequence[Files], far_apart: int = 1) -> list[str]:
    """The name of each entry without its ending (or language), with its folders below those that all files have.

    far_apart: how many parts of a path count if all files have nothing but the root in common: without folders,
    `/projects/dev` is no validation set
    """
    paths = [str(one) if isinstance(one, Address) else os.path.abspath(one) for one, *_ in entries]  # noqa: PTH100
    try:
        common = os.path.commonpath([os.path.dirname(path) for path in paths]) if paths else ""  # noqa: PTH120
    except ValueError:  # addresses beside files, or two drives
        common = os.sep
    if common == Path(common).anchor != "":
        names = [PurePath(*PurePath(path).parts[-far_apart:]).as_posix() for path in paths]
    else:
        names = [path[len(common) :].lstrip("/\\") for path in paths]
    return [_without_ending(name, len(files) > 1) for name, files in zip(names, entries, strict=True)]


def roles_of(entries: Sequence[Files]) -> Mapping[Files, str]:
    """The split of each entry by its name; empty if the names do not tell training from other data.

    Beside smaller files for validation or test, those whose names tell nothing are for training.
    """
    names = names_of(entries)
    told = dict(zip(entries, map(role_of, names), strict=True))
    marks = [_AI_HUB.match(PurePath(name).name) for name in names]
    if not any(told.values()) and {"T", "V"} <= {mark[1] for mark in marks if mark}:
        told = {one: mark and {"T": TRAIN, "V": VALIDATION}[mark[1]] for one, mark in zip(entries, marks, strict=True)}
    roles = {files: role or TRAIN for files, role in told.items()}
    train = [files for files, role in roles.items() if role == TRAIN]
    others = [files for files, role in roles.items() if role != TRAIN]
    if not train or not others:
        return {}
    if TRAIN not in told.values():
        trained, held_out = (sum(size_of(files[0]) for files in some) for some in (train, others))
        if held_out >= trained > 0:  # in an archive, sizes are unknown
            return {}
    return roles


def mixed_of(entries: Sequence[Files], also_alone: bool = False) -> tuple[Path, str] | None:
    """Of several files, the first that is a validation or test set by its name, and which of these it is.

    If the files are far apart, the folder of each counts here: a message does no harm.
    also_alone: also a single file, and all files in a folder `Validation`; but `~/dev` and `tests` may have any files
    """
    if len(entries) < 2 and not also_alone:
        return None
    told = list(zip(entries, map(role_of, names_of(entries, far_apart=2)), strict=True))
    found = next(((files[0], role) for files, role in told if role is not None and role != TRAIN), None)
    if found is None and also_alone and entries and not any(role for _, role in told):
        path = PurePath(str(entries[0][0]))
        folders = (words for part in path.parts[:-1] if len(words := _words(part)) == 1)
        found = next(((entries[0][0], VALIDATION) for words in folders if words & {"validation", "valid"}), None)
    return found


def _without_ending(name: str, has_language: bool) -> str:
    plain = plain_path(PurePath(name))
    is_ending = plain.suffix and not _role(_words(plain.suffix))  # not `corpus.dev`
    return (plain.with_suffix("") if has_language or is_ending else plain).as_posix()
