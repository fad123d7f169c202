"""Dynamic batching: sentences of different clients are translated together, in one thread for each model.

A request waits only while others are likely to join it: while fewer wait than were under way before (who has just got
an answer often has another question), and one arrived in the last few milliseconds. So a lone client never waits, and
clients that come at different times soon come together. Long requests take turns: each batch has sentences
of all of them. Everything but the translation itself happens in the event loop, so there are no locks.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from transformer_mt.config.direction import Direction
from transformer_mt.decoding.terms import LineTerms
from transformer_mt.decoding.translation import Translation
from transformer_mt.errors import is_gpu_failure
from transformer_mt.serving.limits import RequestError

WAIT, LONGEST_WAIT = 0.005, 0.03  # seconds: without a new request, after which a batch is complete; in all
SECONDS = 0.5  # batches that take longer become smaller, so that nobody waits for them
FEWEST, LARGEST = 64, 512  # most sentences of a batch; with less than these 64, a slow model would be slower yet
Result = TypeVar("Result")


@dataclass(frozen=True)
class Settings:
    """How sentences are translated; only those with equal settings share a batch.

    beam:  None: that of the model
    align: whether the translations have scores of their tokens and alignments
    split: whether an item may hold several sentences
    direction: None: that of the translator
    """

    beam: int | None = None
    n_best: int = 1
    align: bool = False
    split: bool = False
    direction: Direction | None = None


class Item(NamedTuple):
    """A text to translate, and the terms that its translation must contain."""

    text: str
    terms: LineTerms = ()


Work = Callable[[Sequence[Item], Settings], Sequence[Translation]]


@dataclass(eq=False)
class _Job:
    """The items of a request. taken: how many are translated, or being translated."""

    items: Sequence[Item]
    settings: Settings
    answer: asyncio.Future[list[Translation]]
    taken: int = 0
    found: list[Translation] = field(default_factory=list)

    @property
    def left(self) -> int:
        return 0 if self.answer.done() else len(self.items) - self.taken


class Batcher:
    """The queue of one model, and its thread.

    work:    translates items; it is called in the thread of the model
    queue:   the most items that wait or are being translated
    observe: is called with the number of items of each batch
    """

    def __init__(self, work: Work, queue: int) -> None:
        self.work, self.queue = work, queue
        self.observe: Callable[[int], None] = lambda items: None
        self.waiting = 0  # items of unanswered requests
        self.has_gpu_failed = False  # in the newest batches, and no other one succeeded since
        self._jobs: deque[_Job] = deque()
        self._answered, self._wanted = 0, 1  # requests: answered by the last batch; that the next one waits for
        self._arrived, self._complete = 0.0, asyncio.Event()  # when the last request came; whether all wanted came
        self._thread = ThreadPoolExecutor(1, "translating")
        self._began: float | None = None  # when what runs in the thread began
        self._turn = asyncio.Lock()  # of functions: batches wait for at most one of them
        self._loop: asyncio.Task[None] | None = None
        self._size, self._rate = FEWEST, 0.0  # items: most in a batch, and in a second

    async def translate(self, items: Sequence[Item], settings: Settings) -> list[Translation]:
        """The translations of the items. If the caller is cancelled, items that still wait are dropped.

        Raises RequestError if the queue is full.
        """
        if not items:
            return []
        self._check_room(len(items))
        if self._loop is None:
            self._loop = asyncio.create_task(self._translate_all())
        job = _Job(items, settings, asyncio.get_running_loop().create_future())
        self.waiting += len(items)
        self._jobs.append(job)
        self._arrived = time.monotonic()
        if len(self._jobs) >= self._wanted:
            self._complete.set()
        try:
            return await job.answer
        finally:
            self.waiting -= len(items)

    async def run(self, function: Callable[[], Result]) -> Result:
        """Call a function in the thread of the model, between two batches. Raises RequestError if the queue is full."""
        self._check_room(1)
        self.waiting += 1
        try:
            async with self._turn:
                return await self._in_thread(function)
        finally:
            self.waiting -= 1

    @property
    def running(self) -> float:
        """Seconds since the batch or function that runs now began; 0 if none does."""
        began = self._began
        return 0.0 if began is None else time.monotonic() - began

    async def _in_thread(self, function: Callable[[], Result]) -> Result:
        def timed() -> Result:
            self._began = time.monotonic()
            try:
                return function()
            finally:
                self._began = None

        return await asyncio.get_running_loop().run_in_executor(self._thread, timed)

    async def close(self) -> None:
        """Stop after the batch that is being translated."""
        if self._loop is not None:
            self._loop.cancel()
            with suppress(asyncio.CancelledError):
                await self._loop
        self._thread.shutdown(cancel_futures=True)

    def _check_room(self, items: int) -> None:
        if self.waiting + items > self.queue:
            seconds = max(1, round(self.waiting / self._rate)) if self._rate else 1
            raise RequestError(429, "the server is busy; try again later", {"Retry-After": str(min(seconds, 60))})

    async def _translate_all(self) -> None:
        while True:
            await self._until_complete()
            batch, settings = self._next_batch()
            if not batch:
                continue
            start = time.perf_counter()
            await self._translate_batch(batch, settings)
            self._adapt(len(batch), time.perf_counter() - start)

    async def _translate_batch(self, batch: Sequence[tuple[_Job, int]], settings: Settings) -> None:
        """Translate the items, and answer the jobs that are complete, or that failed."""
        items = [job.items[index] for job, index in batch]
        try:
            found = await self._in_thread(lambda: self.work(items, settings))
            pairs = list(zip(batch, found, strict=True))
        except Exception as error:
            self.has_gpu_failed |= is_gpu_failure(error)
            jobs = dict.fromkeys(job for job, _ in batch)
            if len(jobs) == 1 and not batch[0][0].answer.done():
                batch[0][0].answer.set_exception(error)
            for one in jobs if len(jobs) > 1 else ():  # only the guilty one must fail
                await self._translate_batch([(job, index) for job, index in batch if job is one], settings)
            return
        self.has_gpu_failed = False
        self.observe(len(items))
        for (job, _), translation in pairs:
            job.found.append(translation)
            if len(job.found) == len(job.items) and not job.answer.done():
                job.answer.set_result(job.found)
                self._answered += 1

    async def _until_complete(self) -> None:
        """Wait for a request; then for as many as were under way before, while they keep coming."""
        wanted = self._answered + len(self._jobs)
        self._answered, self._wanted = 0, 1
        if not self._jobs:
            self._complete.clear()
            await self._complete.wait()
        start = time.monotonic()  # whoever was just answered could not ask before
        self._wanted, end = wanted, start + LONGEST_WAIT
        while len(self._jobs) < wanted and (left := min(max(self._arrived, start) + WAIT, end) - time.monotonic()) > 0:
            self._complete.clear()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._complete.wait(), left)

    def _next_batch(self) -> tuple[list[tuple[_Job, int]], Settings]:
        """Items of the jobs with the settings of the first one, in turn. What is left of them then comes last."""
        while self._jobs and not self._jobs[0].left:
            self._jobs.popleft()
        if not self._jobs:
            return [], Settings()
        settings = self._jobs[0].settings
        taking = [job for job in self._jobs if job.settings == settings and job.left]
        batch: list[tuple[_Job, int]] = []
        turn = deque(taking)
        while turn and len(batch) < self._size:
            job = turn.popleft()
            batch.append((job, job.taken))
            job.taken += 1
            if job.left:
                turn.append(job)
        served = dict.fromkeys(job for job, _ in batch)
        others = [job for job in self._jobs if job not in served and job.left]
        self._jobs = deque([*others, *(job for job in served if job.left)])
        return batch, settings

    def _adapt(self, items: int, seconds: float) -> None:
        self._rate = items / max(seconds, 1e-6)
        if items == self._size:
            factor = 0.5 if seconds > SECONDS else 2.0 if seconds < SECONDS / 2 else 1.0
            self._size = int(min(max(self._size * factor, FEWEST), LARGEST))
