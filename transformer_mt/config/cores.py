"""The number of processes and threads: the default, and what torchrun says."""

from __future__ import annotations

import os

from transformer_mt.errors import TmtError


def cores(wanted: int = 0) -> int:
    """The number wanted; for 0, the number of cores that this process may use."""
    if wanted:
        return wanted
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def launched(name: str, otherwise: str = "") -> int:
    """A number that torchrun gives to its processes in an environment variable, such as RANK.

    Raises TmtError for another value.
    """
    value = os.environ.get(name, otherwise)
    if not value.isdecimal():
        remedy = "torchrun sets RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE; for a single process, unset them."
        raise TmtError(f"the environment variable {name} must be a whole number, not {value!r}", remedy=remedy)
    return int(value)
