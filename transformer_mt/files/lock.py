"""A lock on a file, for one process at a time. The system releases it when the process ends."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from filelock import FileLock, Timeout

from transformer_mt.errors import TmtError

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)  # errors of file systems without locks


def lock(file: Path, held_by_another: Callable[[], None] | TmtError) -> ExitStack:
    """Create `file` and lock it, until the result is closed or its `with` block ends.

    held_by_another: if another process holds the lock, called before waiting for it, or raised
    On a file system without locks, nothing is locked. Raises OSError if the file cannot be created.
    """
    held = FileLock(file, thread_local=False, fallback_to_soft=False)
    try:
        try:
            held.acquire(timeout=0)
        except Timeout:
            if isinstance(held_by_another, TmtError):
                raise held_by_another from None
            held_by_another()
            held.acquire()
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    holding = ExitStack()
    holding.callback(held.release)
    return holding
