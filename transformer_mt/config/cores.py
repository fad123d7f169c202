"""The number of processes and threads: the default, and what torchrun says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from transformer_mt.errors import TmtError


def cores(wanted: int = 0) -> int:
    """The number wanted; for 0, the number of cores that this process may use, also by the limit of its container."""
    if wanted:
        return wanted
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, cpu_quota() or allowed)


def cpu_quota(root: Path = Path("/")) -> int | None:
    """The CPUs whose time this process may use by the limits of its control groups, rounded up; None: no limit.

    Containers and services have such limits (`docker run --cpus 2`, `CPUQuota=200%`); no function of Python tells them.
    root: of the file system
    """
    return min(_quotas(root), default=None)


def _quotas(root: Path) -> Iterator[int]:
    """The limits of the control groups of this process and of those above, in either version of them."""
    places = {(root / "sys/fs/cgroup", PurePosixPath("/")), (root / "sys/fs/cgroup/cpu", PurePosixPath("/"))}
    with suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "" or "cpu" in controllers.split(","):
                places.add((root / "sys/fs/cgroup" / ("cpu" * bool(controllers)), PurePosixPath("/", path)))
    for folder in {base / one.relative_to("/") for base, path in places for one in (path, *path.parents)}:
        for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
            with suppress(OSError, ValueError):  # no such group, or no limit: "max"
                words = " ".join((folder / name).read_text(encoding="utf-8") for name in names).split()
                quota, period = map(int, words)
                if quota > 0 and period > 0:  # -1: no limit
                    yield -(-quota // period)


def launched(name: str, otherwise: str = "") -> int:
    """A number that torchrun gives to its processes in an environment variable, such as RANK.

    Raises TmtError for another value.
    """
    value = os.environ.get(name, otherwise)
    if not value.isdecimal():
        remedy = "torchrun sets RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE; for a single process, unset them."
        raise TmtError(f"the environment variable {name} must be a whole number, not {value!r}", remedy=remedy)
    return int(value)
