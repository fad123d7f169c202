"""Signals during training, such as SIGTERM and Ctrl-C: finish the step, save, stop. Otherwise they end the program."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from transformer_mt.errors import ENDING_SIGNALS, JOB_SIGNALS
from transformer_mt.reporting.program import interrupt
from transformer_mt.runtime.distributed import World

SIGNALS = (signal.SIGINT, signal.SIGTERM, *ENDING_SIGNALS)
NOTICE = "stopping after this step and saving a checkpoint; press Ctrl-C again to quit now"


class Interrupted(BaseException):
    """A signal has arrived inside `StopSignal.at_once`."""


class StopSignal:
    """Inside the block, a signal requests that training stops; only a second Ctrl-C ends the process.

    All processes stop together, soon after one of them has received a signal. They exchange `votes`, the number of
    processes with a signal; the caller decides how often.

    notice: printed on stderr when the signal arrives, because the step may take a while; empty prints nothing
    alone:  this is the only process, and needs no votes
    """

    def __init__(self, notice: str = NOTICE, alone: bool = True) -> None:
        self.requested = False
        self.votes = 0.0
        self._notice, self._alone = notice, alone
        self._at_once = False
        self._previous: dict[int, Any] = {}  # handlers by signal

    @property
    def is_agreed(self) -> bool:
        """Whether training stops after this step."""
        return self.votes > 0 or (self._alone and self.requested)

    def agree(self, world: World) -> None:
        """Exchange the votes of all processes."""
        (self.votes,) = world.sums([self.is_agreed or self.requested])

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside the block, a signal raises Interrupted if this is the only process: others would wait for this one.

        Raises Interrupted if it is already agreed that training stops.
        """
        self._at_once = self._alone
        try:
            if self.is_agreed:
                raise Interrupted
            yield
        finally:
            self._at_once = False

    def __enter__(self) -> StopSignal:
        if threading.current_thread() is threading.main_thread():
            for kind in SIGNALS:
                if not _is_taken(kind):
                    self._previous[kind] = signal.signal(kind, self._handle)
        return self

    def _handle(self, kind: int, frame: FrameType | None) -> None:
        if self.requested:
            if kind == signal.SIGINT:
                raise KeyboardInterrupt
            return
        self.requested = True
        if self._notice:
            line = f"\n{self._notice}\n" if sys.stderr.isatty() else f"{self._notice}\n"
            with suppress(OSError):  # the same Ctrl-C may have ended the program that reads stderr
                os.write(2, line.encode())  # print could be interrupted in the middle of another print
        if self._at_once:
            raise Interrupted

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)


def _is_taken(kind: int) -> bool:
    """Whether a signal is ignored, as a shell does for background jobs, or a program has its own use for it."""
    handler = signal.getsignal(kind)
    return handler not in (signal.SIG_DFL, interrupt) if kind in JOB_SIGNALS else handler is signal.SIG_IGN
