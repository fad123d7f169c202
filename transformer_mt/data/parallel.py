"""Work in several processes, of this machine or of a cluster. Results come in order, and few are in memory at once.

An `Executor` knows where work runs: `processes` on this machine, `cluster` on the nodes of Ray. `Workers` knows the
order and how far ahead to start.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from transformer_mt.config.cores import cores
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


class LostError(TmtError):
    """A worker was lost. What others have finished is kept."""


class Executor(Protocol):
    """Where work runs.

    slots: the number of items that it works on at the same time
    """

    slots: int

    def starter(self, pickled: bytes) -> Callable[[Any], Callable[[], Any]]:
        """A function that starts pickled work on an item, and returns a function that waits for the result.

        The second one raises what the work has raised, and TmtError if the process or the node was lost.
        """

    def require(self, paths: Sequence[Path]) -> None:
        """Raises TmtError if work may run where one of these files and folders is not seen."""

    def close(self) -> None:
        """End what was started here."""


class Workers:
    """Worker processes, as a context. They start at the first map of more than one item, and end with it or by `close`.

    With one worker and without a cluster, all work is done in this process.
    """

    def __init__(self, number: int, cluster: str | None = None) -> None:
        """number: of processes; 0: one per core of this machine, or of the cluster.

        cluster: None, or an address of Ray: `auto`, `local`, `ray://host:port` or `host:port`
        """
        self.number, self.cluster = number if cluster is not None else cores(number), cluster
        self._executor: Executor | None = None

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """work(item) for each item, in order. A single item is processed here.

        Each worker unpickles `work` once and keeps it, with everything it has loaded, until the next map.
        Raises what `work` raises, and TmtError if a worker was lost and nobody else could do its work.
        """
        items = iter(items)
        first = list(islice(items, 2))
        if (self.number == 1 and self.cluster is None) or len(first) < 2:
            yield from map(work, chain(first, items))
            return
        executor = self._executor = self._executor or self._make()
        start, waiting = executor.starter(pickle.dumps(work)), deque[Callable[[], Any]]()
        for item in chain(first, items):
            waiting.append(start(item))
            if len(waiting) > AHEAD * executor.slots:
                yield waiting.popleft()()
        while waiting:
            yield waiting.popleft()()

    def require(self, paths: Iterable[Path]) -> None:
        """Raises TmtError if a node of the cluster does not see one of these files and folders of this machine."""
        if self.cluster is not None:
            self._executor = self._executor or self._make()
            self._executor.require(list(paths))

    def _make(self) -> Executor:
        if self.cluster is None:
            from transformer_mt.data.processes import Processes

            return Processes(self.number)
        from transformer_mt.data.cluster import Cluster

        return Cluster(self.cluster, self.number)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes. The next map starts new ones."""
        if self._executor is not None:
            self._executor.close()
            self._executor = None


_cached_work: tuple[bytes, Callable[[Any], Any]] | None = None  # of this worker process: pickled, and as a function


def do_pickled(pickled: bytes, item: Any) -> Any:
    """The result of pickled work for an item, in a worker process."""
    global _cached_work
    if _cached_work is None or _cached_work[0] != pickled:
        _cached_work = pickled, pickle.loads(pickled)
    return _cached_work[1](item)
