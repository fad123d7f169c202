"""SIGTERM and Ctrl-C during training: finish the step, save, stop. At other times both end the program at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

from transformer_mt.runtime.distributed import World

SIGNALS = (signal.SIGINT, signal.SIGTERM)
NOTICE = "stopping after this step, with a checkpoint; Ctrl-C once more leaves at once"


class StopSignal:
    """Inside the block, a signal asks training to stop and does not end the process; a second Ctrl-C ends it.

    The processes of a group stop together, as soon as one of them has got a signal. `votes` is how many have got one,
    exchanged in each update. A process alone needs no exchange.

    notice: printed on stderr when the signal comes, because the step may take a while; empty prints nothing.
    """

    def __init__(self, notice: str = NOTICE, alone: bool = True) -> None:
        self.requested = False
        self.votes = 0.0
        self._notice, self._alone = notice, alone
        self._before: dict[int, Any] = {}

    @property
    def is_agreed(self) -> bool:
        """Whether training stops after this step."""
        return self.votes > 0 or (self._alone and self.requested)

    def agree(self, world: World) -> None:
        """Ask all processes whether to stop."""
        (self.votes,) = world.sums([self.is_agreed or self.requested])

    def __enter__(self) -> StopSignal:
        if threading.current_thread() is threading.main_thread():
            for kind in SIGNALS:
                if signal.getsignal(kind) is not signal.SIG_IGN:  # a shell script sets this for background jobs
                    self._before[kind] = signal.signal(kind, self._note)
        return self

    def _note(self, kind: int, frame: FrameType | None) -> None:
        if self.requested:
            if kind == signal.SIGINT:
                raise KeyboardInterrupt
            return
        self.requested = True
        if self._notice:
            line = f"\n{self._notice}\n" if sys.stderr.isatty() else f"{self._notice}\n"
            with suppress(OSError):  # the same Ctrl-C may have ended the process that reads it
                os.write(2, line.encode())  # the interrupted code may be in the middle of printing

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
