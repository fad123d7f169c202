"""Processes of this machine, of the standard library.

Added to it: no worker outlives its parent, only the parent handles Ctrl-C, and a script without a main guard is not run
again by each worker.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from typing import Any

from transformer_mt.data.parallel import LostError, do_pickled
from transformer_mt.errors import JOB_SIGNALS

# Signals that only the parent handles: Ctrl-C, and the end of the terminal, which Windows does not have.
_LEFT_TO_PARENT = [getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]
_MOST_ON_WINDOWS = 61  # processes that it can wait for
_HIDING = threading.Lock()  # a second thread would take what the first one has hidden for what was there


class Processes:
    """An `Executor` of processes, which start when they are needed."""

    def __init__(self, number: int) -> None:
        self.slots = min(number, _MOST_ON_WINDOWS) if sys.platform == "win32" else number
        self._pool = ProcessPoolExecutor(self.slots, get_context("spawn"), initializer=_begin)

    def starter(self, pickled: bytes) -> Callable[[Any], Callable[[], Any]]:
        def start(item: Any) -> Callable[[], Any]:
            with _interruption_ignored(), _main_hidden(), _lost_worker_reported():  # submitting may start a process
                future = self._pool.submit(do_pickled, pickled, item)
            return lambda: _result(future)

        return start

    def require(self, paths: Sequence[Path]) -> None:
        """All are on this machine."""

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def _result(future: Future[Any]) -> Any:
    with _lost_worker_reported():
        return future.result()


@contextmanager
def _lost_worker_reported() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool:
        raise LostError(
            "a worker process was killed while preparing data, often because memory ran out",
            remedy="Set data.workers: 1 or free some memory, and run the same command again.",
        ) from None


@contextmanager
def _main_hidden() -> Iterator[None]:
    """Hide the main module. New processes would import it, and a script without a main guard would run again."""
    with _HIDING:
        main = sys.modules["__main__"]
        hidden: dict[str, Any] = {name: vars(main)[name] for name in ("__file__", "__spec__") if name in vars(main)}
        vars(main).update(dict.fromkeys(hidden))
        try:
            yield
        finally:
            vars(main).update(hidden)


@contextmanager
def _interruption_ignored() -> Iterator[None]:
    """Ignore Ctrl-C and the end of the terminal. New processes inherit this, and only their parent handles it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.signal(one, signal.SIG_IGN) for one in _LEFT_TO_PARENT}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _begin() -> None:
    """Leave Ctrl-C to the parent, which a thread cannot arrange for a worker; end when the parent is killed.

    A cluster may send its signals to all processes.
    """
    for one in (*_LEFT_TO_PARENT, *JOB_SIGNALS):
        signal.signal(one, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
