"""Splits that the names of files tell, such as `train.de`, `dev.de` and `newstest2014.de`.

Such files must not be mixed: a test set in the training data makes every later score on it wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from transformer_mt.corpora.base import RESERVED_SPLITS, WHOLE, Corpus, FilesCorpus
from transformer_mt.corpora.parts import size_of
from transformer_mt.files.opening import COMPRESSED

TRAIN, VALIDATION, TEST = "train", "validation", "test"
_ROLES = {
    TRAIN: ("train", "training"),
    VALIDATION: ("valid", "validation", "val", "dev", "devel", "development", "devset"),
    TEST: ("test", "tst", "testset", "newstest", "devtest", "eval", "evaluation", "heldout"),
}
_ROLE_OF = {word: role for role, words in _ROLES.items() for word in words}


@dataclass(frozen=True)
class Splits:
    """Files by split, those that belong together in one tuple. tests: by name."""

    train: list[tuple[Path, ...]] = field(default_factory=list)
    validation: list[tuple[Path, ...]] = field(default_factory=list)
    tests: dict[str, tuple[Path, ...]] = field(default_factory=dict)


def role_of(name: str) -> str | None:
    """The split that a file is by a word of its name, or of its folders; None: no word tells it.

    Digits may follow the word: `dev2010`, `newstest2014`.
    """
    for part in reversed(PurePath(name.lower()).parts):
        for word in re.findall(r"[^\W\d_]+", part):
            if word in _ROLE_OF:
                return _ROLE_OF[word]
    return None


def splits_of(corpus: Corpus) -> Splits | None:
    """The splits that the names of files tell, in a corpus that mixes and divides them; None if they tell none.

    Beside a smaller one for validation or test, a file whose name tells nothing is for training. Of several validation
    sets, the first is the one, and the others are test sets.
    """
    if not isinstance(corpus, FilesCorpus) or corpus.splits() != (WHOLE,):
        return None
    given = getattr(corpus.options, "files", ())
    folders = [Path(one) for one in given if isinstance(one, str)]
    found, is_sure = Splits(), False
    for files in corpus.entries(WHOLE):
        folder = next((one for one in folders if one in files[0].parents), None)
        name = _name(files[0], folder, is_text=len(files) > 1)
        role = role_of(name)
        is_sure |= role == TRAIN
        if role in (None, TRAIN):
            found.train.append(files)
        elif role == VALIDATION and not found.validation:
            found.validation.append(files)
        else:
            found.tests[_new_name(name, found.tests)] = files
    others = [*found.validation, *found.tests.values()]
    if not found.train or not others:
        return None
    trained, held_out = (sum(size_of(files[0]) for files in some) for some in (found.train, others))
    return found if is_sure or held_out < trained else None


def _name(file: Path, folder: Path | None, is_text: bool) -> str:
    """The name of a file without its ending; with its folders inside `folder`."""
    plain = file.relative_to(folder) if folder is not None else Path(file.name)
    plain = plain.with_suffix("") if plain.suffix.lower() in COMPRESSED else plain
    return (plain.with_suffix("") if is_text or plain.suffix else plain).as_posix()


def _new_name(name: str, names: Mapping[str, object]) -> str:
    """The name as that of a test set, which has only some characters."""
    stem = re.sub(r"[^\w.-]+", "-", name).strip("-.") or TEST
    stem = f"{stem}-set" if stem in RESERVED_SPLITS else stem
    return next(one for one in (stem, *(f"{stem}-{n}" for n in range(2, len(names) + 3))) if one not in names)
