"""One process at a time: a lock on a file, which the system releases when its holder ends."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from filelock import FileLock, Timeout

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)  # what file systems without locks answer


class HeldError(Exception):
    """Another process holds the lock."""


def lock(file: Path, waiting: Callable[[], None] | None = None) -> ExitStack:
    """Create `file` and lock it; the lock is held until the result is closed, or its `with` block ends.

    waiting: called before waiting for another process that holds the lock; without it HeldError is raised.
    On a file system without locks everyone goes ahead. Raises OSError if the file cannot be created.
    """
    held = FileLock(file, thread_local=False, fallback_to_soft=False)
    try:
        try:
            held.acquire(timeout=0)
        except Timeout:
            if waiting is None:
                raise HeldError(str(file)) from None
            waiting()
            held.acquire()
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    holding = ExitStack()
    holding.callback(held.release)
    return holding
