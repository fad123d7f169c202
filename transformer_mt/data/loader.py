"""Batches made ready ahead of the training loop, in threads, so that a GPU does not wait for them."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import torch

from transformer_mt.data.batching import Batches, Update
from transformer_mt.data.planning import Cursor


class Loader:
    """Gives the updates of a training one after the other.

    A thread assembles the next ones, and copies them to pinned memory for a CUDA GPU; another plans the next window.
    They draw no random numbers of the training, so its results do not depend on them.

    ahead:  updates that are ready at most; 0: no threads, each is assembled when it is asked for
    device: that they are for
    """

    def __init__(self, batches: Batches, ahead: int = 0, device: torch.device | None = None) -> None:
        self.batches, self.ahead, self.device = batches, ahead, device or torch.device("cpu")
        self._assembler: ThreadPoolExecutor | None = None
        self._planner: ThreadPoolExecutor | None = None
        self._ready = deque[Future[Update]]()
        self._asked: Cursor | None = None  # for next
        self._place = Cursor()  # of the assembler
        self._planned: tuple[int, int] | None = None  # the window that was last planned ahead

    def next(self, cursor: Cursor) -> Update:
        """The update at this place. Fast if it comes right after the one before; raises what assembling it raised."""
        if not self.ahead:
            return self.batches.at(cursor)
        if cursor != self._asked:
            self._restart(cursor)
        self._asked = None  # if an error or a Ctrl-C comes now
        update = self._ready.popleft().result()
        self._submit()  # not before: the thread would take Python's lock at once
        self._asked = update.next
        return update

    def _submit(self) -> None:
        assert self._assembler is not None
        self._ready.append(self._assembler.submit(self._assemble))

    def _restart(self, cursor: Cursor) -> None:
        self.close()
        self._assembler, self._planner = (ThreadPoolExecutor(1, f"batches-{work}") for work in ("assembly", "plan"))
        self._place = cursor
        for _ in range(self.ahead):
            self._submit()

    def _assemble(self) -> Update:
        """The next update. Runs in the first thread."""
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)  # else pinning would use memory of the first GPU of the machine
        cursor = self._place
        update = self.batches.at(cursor)
        self._plan_after(cursor)
        self._place = update.next
        return update.pinned() if self.device.type == "cuda" else update

    def _plan_after(self, cursor: Cursor) -> None:
        """Let the second thread plan the window after this one."""
        epoch, window, _ = cursor
        following = (epoch, window + 1) if window + 1 < self.batches.windows else (epoch + 1, 0)
        if following != self._planned:
            self._planned = following
            assert self._planner is not None
            self._planner.submit(self.batches.planner.read_ahead, *following)

    def close(self) -> None:
        """End the threads. What they have made ready is dropped."""
        for thread in (self._assembler, self._planner):
            if thread is not None:
                thread.shutdown(wait=True, cancel_futures=True)
        self._assembler = self._planner = self._planned = self._asked = None
        self._ready.clear()
