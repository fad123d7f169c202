"""How the time of a computation grows with its input. A limit in seconds would depend on the machine."""

from __future__ import annotations

import time
from collections.abc import Callable

_TIMES, _TRIES = 4, 3
LINEAR, CONSTANT = 7.0, 2.5  # times as long for four times the size; exactly linear is 4, quadratic 16


def assert_grows(work: Callable[[int], object], size: int, most: float = LINEAR) -> None:
    """Fails if `work(4 * size)` takes more than `most` times the CPU time of `work(size)`.

    A neighbour that takes the caches in one of the two measurements is no error: the best of three attempts counts.
    """
    work(size // 10)  # what is made once is not counted
    ratios = list[float]()
    for _ in range(_TRIES):
        ratios.append(_seconds(work, _TIMES * size) / _seconds(work, size))
        if ratios[-1] < most:
            return
    times = ", ".join(f"{ratio:.0f}" for ratio in ratios)
    raise AssertionError(f"{_TIMES} times the size took {times} times as long, not {most} at most")


def _seconds(work: Callable[[int], object], size: int) -> float:
    start = time.process_time()
    work(size)
    return max(time.process_time() - start, 1e-3)  # shorter is not measured: choose a size that takes 2 ms or more
