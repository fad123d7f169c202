"""Replacing a file or a folder. After a crash or on a full disk, there is the complete old one or the complete new one.

The new content is written beside the old one and synced to the disk. Then the two are swapped: a file by a rename, a
folder by one system call that exchanges two names (Linux, macOS). Systems without that call first move the old folder
aside; if the process is killed at that moment, `recover` brings the old folder back.

Temporary names contain the number of the process and a counter: `.NAME.PID-N.new` while it is written, and
`.NAME.PID-N.old` while a folder is moved aside. The next replacement removes what killed processes have left.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from transformer_mt.files.system import is_running, rename
from transformer_mt.files.system import sync as _sync

_OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)  # others may be of what is read meanwhile
_in_use: set[Path] = set()  # paths that threads of this process are writing
_numbers = count()  # makes each temporary name unique


@contextmanager
def replaced_file(file: Path) -> Iterator[Path]:
    """A path to write to. If the block succeeds, that file takes the place of `file`; a symbolic link is followed.

    Raises OSError if that fails; `file` then stays as it was.
    """
    given, file = file, Path(os.path.realpath(file))
    aside = _beside(file, "new")
    remove_leftovers(file.parent, file.name)
    try:
        _in_use.add(aside)
        yield aside
        with suppress(OSError):  # usually there is no file yet
            shutil.copymode(file, aside)
        move_into_place(aside, file)
    except OSError as error:
        _name(error, aside, given)
        raise
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        _in_use.discard(aside)


def _name(error: OSError, aside: Path, path: Path) -> None:
    """Let an error name what is replaced: writing names nothing, and a temporary name is one that nobody knows."""
    if error.filename is None and error.errno in _OF_WRITING:
        error.filename = str(path)
    elif isinstance(error.filename, str):
        error.filename = error.filename.replace(str(aside), str(path))


def move_into_place(aside: Path, file: Path) -> None:
    """Rename a complete file to `file` and sync it to the disk. Raises OSError; `file` then stays as it was."""
    _sync(aside)
    rename(aside, file)
    _sync(file.parent)


def replace_text(file: Path, text: str) -> None:
    """Write `text` to `file` in UTF-8. Raises OSError; the file then stays as it was."""
    with replaced_file(file) as aside:
        aside.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def replaced_folder(
    folder: Path,
    can_continue: Callable[[Path], bool] = lambda aside: False,
    interruptions: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
) -> Iterator[Path]:
    """An empty folder to fill. If the block succeeds, it replaces `folder`, and the old content is removed.

    can_continue:  whether the content of such a folder can be completed. If it can, a folder that a killed process has
                   left is given instead of an empty one, and an interrupted block leaves its folder for the next call.
    interruptions: the exceptions of an interrupted block

    Only one process at a time may replace a folder; if several could, callers hold a lock. A symbolic link is followed.
    Raises OSError if that fails; `folder` then stays as it was.
    """
    given, folder = folder, Path(os.path.realpath(folder))
    recover(folder)
    aside, is_kept = _beside(folder, "new"), False
    left = next(filter(can_continue, unfinished(folder)), None)
    if left is not None:
        rename(left, aside)
    try:
        _in_use.add(aside)
        remove_leftovers(folder.parent, folder.name)
        aside.mkdir(parents=True, exist_ok=True)
        yield aside
        for path, _, names in os.walk(aside, topdown=False):
            for name in names:
                _sync(Path(path, name))
            _sync(Path(path))
        with suppress(OSError):  # usually there is no folder yet
            shutil.copymode(folder, aside)
        _swap(aside, folder)
        _sync(folder.parent)
    except interruptions:
        is_kept = can_continue(aside)
        raise
    except OSError as error:
        _name(error, aside, given)
        raise
    finally:
        if not is_kept:
            shutil.rmtree(aside, ignore_errors=True)
        _in_use.discard(aside)


def first_free(name: Callable[[int], Path]) -> Path:
    """The first of the paths name(1), name(2), ... that does not exist."""
    return next(path for path in map(name, count(1)) if not path.exists())


def unfinished(folder: Path) -> list[Path]:
    """What killed or interrupted processes have written to replace this folder."""
    folder = Path(os.path.realpath(folder))
    return [path for path in _left_by_killed(folder.parent, folder.name, "new") if path.is_dir()]


def recover(folder: Path) -> None:
    """Bring back a folder that a killed process had moved aside but not yet replaced."""
    if not folder.exists():
        for aside in _left_by_killed(folder.parent, folder.name, "old"):
            with suppress(OSError):  # another process may bring it back at the same time
                rename(aside, folder)


def recover_all(folder: Path) -> None:
    """`recover` every folder in `folder`."""
    for aside in _left_by_killed(folder, "", "old"):
        recover(folder / _replaced_by(aside))


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Remove the temporary files and folders of killed processes in `folder`: of one name, or of all names."""
    asides = _left_by_killed(folder, name, "new")
    for aside in _left_by_killed(folder, name, "old"):
        if (folder / _replaced_by(aside)).exists():
            asides.append(aside)
    for aside in asides:
        if aside.is_dir():
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.unlink(missing_ok=True)


def _swap(aside: Path, folder: Path) -> None:
    if not folder.exists():
        rename(aside, folder)
    elif not _exchange(aside, folder):
        old = _beside(folder, "old")
        rename(folder, old)
        try:
            rename(aside, folder)
        except BaseException:
            rename(old, folder)
            raise
        shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one system call. False if the system or the file system does not support it."""
    names = os.fsencode(one), os.fsencode(other)
    here, swap = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux; RENAME_SWAP of macOS is 2 as well
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            failed = libc.renamex_np(*names, swap)
        elif sys.platform == "linux":
            failed = libc.renameat2(here, names[0], here, names[1], swap)
        else:
            return False
    except (OSError, AttributeError, TypeError):  # another C library, or an old one
        return False
    if failed and ctypes.get_errno() not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(other))
    return not failed


def _beside(path: Path, state: str) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}-{next(_numbers)}.{state}")


def _replaced_by(aside: Path) -> str:
    """The name NAME that a temporary name stands for."""
    return re.sub(r"(\.\d+(-\d+)?)?\.(new|old)$", "", aside.name[1:])


def _left_by_killed(folder: Path, name: str, state: str) -> list[Path]:
    """Temporary paths in `folder` that no process writes any more."""
    pattern = re.compile(rf"\.{re.escape(name) or '.+?'}\.(\d+)(?:-\d+)?\.{state}")
    with suppress(OSError):
        found = ((entry, pattern.fullmatch(entry.name)) for entry in Path(os.path.realpath(folder)).iterdir())
        left = (entry for entry, match in found if match and not _is_another_process(int(match[1])))
        return sorted(entry for entry in left if entry not in _in_use)
    return []


def _is_another_process(pid: int) -> bool:
    """Whether a process other than this one is running with this number."""
    return pid != os.getpid() and is_running(pid)
