"""export.json in an export: the model that it was made of, and the checksums of its files.

Nothing in it differs between two exports of one model with one version. config.yaml has no checksum, so that the
settings of the search can be edited. Older versions did not write this file.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from transformer_mt import __version__
from transformer_mt.config.load import CONFIG
from transformer_mt.config.runs import EXPORT, EXPORT_WEIGHTS
from transformer_mt.errors import TmtError
from transformer_mt.files.checksum import sha256_of
from transformer_mt.text.codec import tokenizer_files
from transformer_mt.text.tokenizers.base import read_json

# The files of an export that does not list them
_KNOWN = re.compile(
    rf"{EXPORT_WEIGHTS}|config\.json|(?:source|target|shared)_vocabulary\.json|(?:source|target)/(?:vocabulary\.txt|tags\.txt"
    r"|tokenizer\.json|truecase\.txt|sentencepiece\.model|soynlp\.json|spacing\.json)"
)
_REMEDY = "Copy the whole folder again, or export the model again: the files of an export belong together."


def is_exported(folder: Path) -> bool:
    """Whether the folder is a whole export."""
    return (folder / EXPORT_WEIGHTS).is_file() and (folder / CONFIG).is_file()


@dataclass(frozen=True)
class Origin:
    """version: of this program. fingerprint: sha256 of the model's weights. sha256: of files, by their names."""

    version: str
    quantization: str
    fingerprint: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None
    sha256: dict[str, str]


def write_origin(folder: Path, quantization: str, fingerprint: str | None) -> None:
    """Write export.json beside the other files of an export."""
    origin = Origin(__version__, quantization, fingerprint, _checksums(folder))
    (folder / EXPORT).write_text(json.dumps(asdict(origin), indent=1) + "\n", encoding="utf-8", newline="\n")


def parts_of(folder: Path) -> set[str]:
    """The names of the files in a folder that are parts of an export, also of a damaged one; none if it is none."""
    found = {file.relative_to(folder).as_posix() for file in _files(folder)}
    try:
        found &= read_json(folder / EXPORT, Origin).sha256.keys()
    except (OSError, ValueError):  # of an older version, damaged, or of another program
        found = {name for name in found if _KNOWN.fullmatch(name)} if is_exported(folder) else set()
        if not found:
            return set()
    return {EXPORT, CONFIG, *found}


def verified_origin(folder: Path) -> Origin | None:
    """What export.json says; None if there is none. Raises TmtError if it is damaged, or does not fit the files."""
    file = folder / EXPORT
    if not os.path.lexists(file):
        return None
    try:
        origin = read_json(file, Origin)
    except (OSError, ValueError) as error:
        raise TmtError(f"cannot be read: {error}", place=file, remedy=_REMEDY) from None
    found = _checksums(folder)  # never of a name that export.json gives
    if missing := sorted(origin.sha256.keys() - found.keys()):
        problem = f"missing files of this export: {', '.join(missing[:3])}"
        raise TmtError(problem, place=folder, remedy=_REMEDY)
    if others := sorted(name for name in found.keys() - origin.sha256.keys() if not Path(name).name.startswith(".")):
        problem = f"files of another export: {', '.join(others[:3])}"
        raise TmtError(problem, place=folder, remedy=_REMEDY)
    for name, digest in origin.sha256.items():
        if found[name] != digest:
            problem = f"damaged, or not the file of this export: its checksum differs from that in {EXPORT}"
            raise TmtError(problem, place=folder / name, remedy=_REMEDY)
    return origin


def _checksums(folder: Path) -> dict[str, str]:
    return {file.relative_to(folder).as_posix(): sha256_of(file) for file in _files(folder)}


def _files(folder: Path) -> list[Path]:
    """All files of an export, without this one and config.yaml."""
    named = [folder / EXPORT_WEIGHTS, folder / "config.json"]
    files = [*named, *folder.glob("*_vocabulary.json"), *tokenizer_files(folder)]
    return sorted(file for file in files if file.is_file())
