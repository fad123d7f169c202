"""Whether prepared data belongs to a config and to the files of its corpus; if not, what has changed since."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from transformer_mt.config.load import flat
from transformer_mt.config.schema import Config
from transformer_mt.corpora.base import Corpus
from transformer_mt.data.parallel import Progress
from transformer_mt.data.parent import Parent
from transformer_mt.data.prepared import FORMAT, MANIFEST, PARENT, CorpusFile, Prepared, settings_of
from transformer_mt.errors import TmtError, first_of
from transformer_mt.files.address import Address, identity_of, is_address
from transformer_mt.files.checksum import sha256_of
from transformer_mt.files.lines import printable
from transformer_mt.files.replace import replace_text

MOST_NAMES = 5  # of keys or files in a message


@dataclass(frozen=True)
class Basis:
    """What prepared data is made from. identities: of all files, before they were read"""

    config: Config
    corpora: Sequence[Corpus]
    parent: Parent | None
    identities: Mapping[Path, Any]

    @classmethod
    def of(cls, config: Config, corpora: Sequence[Corpus], parent: Parent | None) -> Basis:
        """Makes sure that the files exist. Raises TmtError or OSError if that fails."""
        for corpus in corpora:
            corpus.fetch()
        given = files_of_tokenizers(config, parent)
        for file in given:
            if not file.is_file():
                remedy = "Copy the file there, or change the key `file` of the tokenizer."
                is_there = "is not a regular file" if file.exists() else "is missing"
                raise TmtError(f"the file of the tokenizer {is_there}", place=file, remedy=remedy)
        files = [*(file for one in corpora for file in one.files()), *given]
        return cls(config, corpora, parent, {file: identity_of(file) for file in files})

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that the result depends on: settings, and size and modification time of the files."""
        files = [self.identities[file] for corpus in self.corpora for file in corpus.files()]
        files += [self.identities[file] for file in files_of_tokenizers(self.config, self.parent)]
        return _hash(self.config, self.parent, files)

    @cached_property
    def without_times(self) -> str:
        """The same without the times of files on disk, which a copy changes."""
        files = [
            identity if isinstance(file, Address) else (printable(file), identity[1])
            for file, identity in self.identities.items()
        ]
        return _hash(self.config, self.parent, files)


def files_of_tokenizers(config: Config, parent: Parent | None) -> list[Path]:
    """Those that the tokenizers are made from; none if they are those of another model."""
    sides = [] if parent is not None else [config.source_tokenizer, config.target_tokenizer]
    return list(dict.fromkeys(file for side in sides for file in side.files))


def current(folder: Path, basis: Basis, force: bool, progress: Progress) -> tuple[Prepared | None, str]:
    """The prepared data in a folder if it is up to date; otherwise None, and what has changed, for the user, or "".

    If only the times of files differ, as in a copy, their checksums decide, and the new times are remembered.
    force: it is never up to date
    """
    if not (folder / MANIFEST).is_file():
        return None, ""
    try:
        ready = Prepared.open(folder)
        _ = ready.report
    except TmtError as error:
        return None, _note_of_damage(error.message)
    manifest = ready.manifest
    if force and basis.without_times == manifest.without_times:
        return None, ""
    if basis.fingerprint != manifest.fingerprint:
        if changed := _note_of_changes(ready, basis, progress):
            return None, changed
        with suppress(OSError):  # prepared data may be read-only
            content = json.loads((folder / MANIFEST).read_bytes())
            replace_text(folder / MANIFEST, json.dumps({**content, "fingerprint": basis.fingerprint}, indent=1))
    return (None, "") if force else (ready, "")


def made_before(folder: Path, config: Config, parent: Parent | None) -> tuple[Prepared | None, str]:
    """Prepared data of these settings whose files are not here any more, all or some of them; and a note about it.

    (None, "") if there is none, if no file is missing, or if one that is here has changed.
    """
    with suppress(TmtError, OSError):
        ready = Prepared.open(folder)
        files = ready.manifest.files
        missing = [file.path for file in files if not os.path.exists(file.path)]  # noqa: PTH110 (False for any error)
        sizes = list(dict.fromkeys((file.path, file.size) for file in files))
        is_same = ready.manifest.without_times == _hash(config, parent, sizes)
        if not (missing and is_same and ready.report) or any(is_address(file.path) for file in files):
            return None, ""
        if all(file.path in missing or file == CorpusFile.of(Path(file.path)) for file in files):
            return ready, _note_of_missing(missing)
    return None, ""


def _note_of_missing(missing: Sequence[str]) -> str:
    listed = first_of(missing, MOST_NAMES)
    return f"using this data, which was prepared before with the same settings; not found now: {listed}"


def _note_of_changes(ready: Prepared, basis: Basis, progress: Progress) -> str:
    """What has changed since the data was prepared, for the user; "" if its files have the same bytes."""
    before, now = flat(ready.manifest.settings, lists=True), flat(settings_of(basis.config), lists=True)
    keys = [key for key in dict.fromkeys([*before, *now]) if before.get(key) != now.get(key)]
    if keys:
        listed = first_of(keys, MOST_NAMES)
        return f"this replaces data that was prepared with other settings ({listed}); another `name` would keep both"
    is_same = basis.without_times == ready.manifest.without_times
    if is_same:
        progress("comparing checksums of the corpus", 0, None)
    known = {file.path: file for file in ready.manifest.files}
    files = {str(file) if isinstance(file, Address) else printable(file): file for file in basis.identities}
    changed = [name for name, file in files.items() if name not in known or not _is(known[name], file, is_same)]
    changed += [name for name in known if name not in files]
    if changed:
        listed = first_of(changed, MOST_NAMES)
        return f"changed since the data was prepared: {listed}; preparing it again"
    return "" if is_same else "the data is prepared again: the corpus, or the model of training.start_from, has changed"


def _note_of_damage(problem: str) -> str:
    return f"the data is prepared again: {problem}"


def _is(known: CorpusFile, file: Path, by_checksum: bool) -> bool:
    if isinstance(file, Address):
        return (known.size, known.version) == file.status
    with suppress(OSError):  # reading it will say why
        return known.size == file.stat().st_size and (not by_checksum or known.sha256 == sha256_of(file))
    return False


def _hash(config: Config, parent: Parent | None, files: Sequence[Any]) -> str:
    settings = {
        "format": FORMAT,
        **settings_of(config),
        "files": files,
        **({PARENT: parent.identity()} if parent is not None else {}),
    }
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
