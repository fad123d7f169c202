"""The default number of processes and threads."""

from __future__ import annotations

import os


def cores(wanted: int = 0) -> int:
    """The number wanted; for 0, the number of cores that this process may use."""
    if wanted:
        return wanted
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
