"""One process at a time: locks on files, which the system forgets when their holder ends.

Where the system or the file system has no such locks, everyone goes ahead: a safeguard less.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TextIO


class HeldError(Exception):
    """Another process holds the lock."""


def lock(file: Path, waiting: Callable[[], None] | None = None) -> TextIO:
    """Make `file` and take its lock, which is held until what is returned is closed.

    waiting: called where another process holds the lock, before waiting for it.
    Raises OSError where the file cannot be made, and without `waiting` HeldError.
    """
    opened = file.open("a")
    try:
        _take(opened, waiting)
    except BaseException:
        opened.close()
        raise
    return opened


def _take(opened: TextIO, waiting: Callable[[], None] | None) -> None:
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if waiting is None:
            raise HeldError(opened.name) from None
        waiting()
        fcntl.flock(opened, fcntl.LOCK_EX)
    except OSError:  # no such locks on this file system
        return
