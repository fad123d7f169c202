"""What 0 means where a key counts processes or threads."""

from __future__ import annotations

import os


def cores(wanted: int = 0) -> int:
    """As many as wanted, or one for each core this process may use."""
    if wanted:
        return wanted
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
