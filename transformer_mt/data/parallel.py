"""Work spread over processes, results in order, and never more than a few chunks in memory at once."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing import get_context
from typing import Any, TypeVar

from transformer_mt.errors import TmtError

Item = TypeVar("Item")
Result = TypeVar("Result")
CHUNK = 2_000  # pairs that travel together

_work: Callable[[Any], Any] | None = None  # of this worker process


def cores(wanted: int = 0) -> int:
    """Processes to use: as many as wanted, or one for each core this process may use."""
    if wanted:
        return wanted
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chunks(items: Iterable[Item], size: int = CHUNK) -> Iterator[list[Item]]:
    items = iter(items)
    while chunk := list(islice(items, size)):
        yield chunk


def ordered_map(work: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """work(item) for each item, in order. `work` is sent to each process once; a single item is done here."""
    items = iter(items)
    first = list(islice(items, 2))
    if workers == 1 or len(first) < 2:
        yield from map(work, chain(first, items))
        return
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_receive, initargs=(work,))
    try:
        waiting: deque[Future[Any]] = deque(pool.submit(_do, item) for item in first)
        for item in items:
            waiting.append(pool.submit(_do, item))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise TmtError(
            "a worker process was killed while preparing data (often: out of memory)",
            remedy="Set data.workers: 1, or free some memory, and run the same command again.",
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _receive(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work


def _do(item: Any) -> Any:
    assert _work is not None
    return _work(item)
