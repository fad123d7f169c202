"""A limit on the memory that a library may take while it parses a stranger's file, in this process."""

from __future__ import annotations

import threading
from pathlib import Path

_lock = threading.Lock()
_inside = 0  # `with` blocks in progress, of all threads
_before = (0, 0)  # the limits outside of them


class MemoryLimit:
    """Inside `with`, this process may have `most` bytes more than when the object was made; else MemoryError.

    Entering takes a microsecond, where a process of its own would take half a second. Only Linux has this limit.
    It holds for the whole process: of two threads inside, the first sets it.
    """

    def __init__(self, most: int) -> None:
        try:
            import resource

            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        except (ImportError, OSError):
            self._most = None
        else:
            self._most = pages * resource.getpagesize() + most

    def __enter__(self) -> None:
        if self._most is None:
            return
        import resource

        global _inside, _before
        with _lock:
            _inside += 1
            if _inside == 1:
                _before = soft, hard = resource.getrlimit(resource.RLIMIT_AS)
                given = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
                resource.setrlimit(resource.RLIMIT_AS, (min([self._most, *given]), hard))

    def __exit__(self, *_: object) -> None:
        if self._most is None:
            return
        import resource

        global _inside
        with _lock:
            _inside -= 1
            if _inside == 0:
                resource.setrlimit(resource.RLIMIT_AS, _before)
