"""The files in a folder and in the folders below it."""

from __future__ import annotations

import os
from pathlib import Path, PurePath

from transformer_mt.errors import from_os_error


def is_hidden(path: PurePath) -> bool:
    """Whether the name of a file, or of a folder on the way to it, begins with a dot, as `.ipynb_checkpoints/a.de`."""
    return any(part.startswith(".") and part not in (".", "..") for part in path.parts)


def files_below(folder: Path) -> list[Path]:
    """The files in a folder and in all folders below it, sorted by name, without hidden ones.

    Links to folders are followed. A folder that is reached in several ways, as in a loop of links, is read once.
    Raises TmtError if a folder cannot be read.
    """
    found, seen, waiting = list[Path](), set[str](), [folder]
    while waiting:
        for parent, folders, names in os.walk(waiting.pop(0), onerror=_refuse):
            real = os.path.realpath(parent)
            if real in seen:
                folders.clear()
                continue
            seen.add(real)
            folders[:] = sorted(name for name in folders if not is_hidden(PurePath(name)))
            waiting += [Path(parent, name) for name in folders if Path(parent, name).is_symlink()]
            files = (Path(parent, name) for name in names if not is_hidden(PurePath(name)))
            found += [file for file in files if file.is_file()]
    return sorted(found, key=str)


def _refuse(error: OSError) -> None:
    raise from_os_error(error, "reading a folder")
