"""Work in several processes. Results come in order, and only a few chunks are in memory at once."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain, islice
from multiprocessing import connection, get_context, parent_process
from types import TracebackType
from typing import Any, TypeVar

from transformer_mt.errors import TmtError

Item = TypeVar("Item")
Result = TypeVar("Result")
# Called with the name of the pass, the number of pairs so far, and the share of the pass that is done if it is known.
Progress = Callable[[str, int, float | None], None]
CHUNK = 2_000  # pairs
AHEAD = 2  # chunks waiting for each worker


def no_progress(doing: str, pairs: int, share: float | None = None) -> None:
    """A progress that is not shown."""


def chunks(items: Iterable[Item], size: int = CHUNK) -> Iterator[list[Item]]:
    remaining = iter(items)
    return iter(lambda: list(islice(remaining, size)), [])  # stops at an empty chunk


class Workers:
    """Worker processes, as a context. They start at the first map of more than one item, and end with the context.

    With one worker, all work is done in this process.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self._pool: ProcessPoolExecutor | None = None

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """work(item) for each item, in order. A single item is processed here.

        Each worker unpickles `work` once and keeps it, with everything it has loaded, until the next map.
        """
        items = iter(items)
        first = list(islice(items, 2))
        if self.number == 1 or len(first) < 2:
            yield from map(work, chain(first, items))
            return
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.number, get_context("spawn"), initializer=_end_with_parent)
        pickled, waiting = pickle.dumps(work), deque[Future[Any]]()
        try:
            for item in chain(first, items):
                with _interruption_ignored(), _main_hidden():  # submitting may start a process
                    waiting.append(self._pool.submit(_do, pickled, item))
                if len(waiting) > AHEAD * self.number:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise TmtError(
                "a worker process was killed while preparing data, often because memory ran out",
                remedy="Set data.workers: 1 or free some memory, and run the same command again.",
            ) from None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _main_hidden() -> Iterator[None]:
    """Hide the main module. New processes would import it, and a script without a main guard would run again."""
    main = sys.modules["__main__"]
    hidden: dict[str, Any] = {name: vars(main)[name] for name in ("__file__", "__spec__") if name in vars(main)}
    vars(main).update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        vars(main).update(hidden)


@contextmanager
def _interruption_ignored() -> Iterator[None]:
    """Ignore Ctrl-C. New processes inherit this, and only their parent handles it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end_with_parent() -> None:
    """End this worker when its parent is killed. It would wait for work forever."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


_cached_work: tuple[bytes, Callable[[Any], Any]] | None = None  # of this worker process: pickled, and as a function


def _do(pickled: bytes, item: Any) -> Any:
    global _cached_work
    if _cached_work is None or _cached_work[0] != pickled:
        _cached_work = pickled, pickle.loads(pickled)
    return _cached_work[1](item)
