"""What prepared data consists of, as checksums: two machines that prepared the same corpus have the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from transformer_mt.config.load import flat
from transformer_mt.data.prepared import Prepared
from transformer_mt.data.store import SIDES
from transformer_mt.errors import first_of, from_os_error
from transformer_mt.files.checksum import sha256_of

Contents = Mapping[str, Mapping[str, str]]


def contents_of(prepared: Prepared) -> Contents:
    """For settings, files of the corpus, tokenizers and ids: each part and its value or checksum.

    Times, and where the files are, do not count. Raises TmtError if a file cannot be read.
    """
    manifest, folder = prepared.manifest, prepared.folder
    try:
        return {
            "settings": {key: str(value) for key, value in flat(manifest.settings).items()},
            "files": {Path(file.path).name: file.sha256 or f"{file.version} {file.size}" for file in manifest.files},
            "tokenizers": {name: one for side in SIDES for name, one in _checksums(folder, side).items()},
            "ids": {name: one for split in prepared.splits for name, one in _checksums(folder, split).items()},
        }
    except OSError as error:
        raise from_os_error(error, "reading prepared data") from None


def different_parts(one: Contents, other: Contents) -> list[str]:
    """What differs, such as `settings: data.max_length` and `ids: train/source.ids`."""
    lines = []
    for kind, parts in one.items():
        names = dict.fromkeys([*parts, *other.get(kind, {})])
        unequal = [name for name in names if parts.get(name) != other.get(kind, {}).get(name)]
        if unequal:
            lines.append(f"{kind}: {first_of(unequal, 3)}")
    return lines


def _checksums(folder: Path, part: str) -> dict[str, str]:
    files = sorted(path for path in (folder / part).rglob("*") if path.is_file())
    return {file.relative_to(folder).as_posix(): sha256_of(file) for file in files}
