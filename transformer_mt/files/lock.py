"""A lock on a file, for one process at a time. The system releases it when the process ends."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from filelock import FileLock, Timeout

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)  # errors of file systems without locks


class HeldError(Exception):
    """Another process holds the lock."""


def lock(file: Path, waiting: Callable[[], None] | None = None) -> ExitStack:
    """Create `file` and lock it, until the result is closed or its `with` block ends.

    waiting: called before waiting for another process that holds the lock; None: HeldError is raised
    On a file system without locks, nothing is locked. Raises OSError if the file cannot be created.
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
