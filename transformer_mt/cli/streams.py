"""stdout and stderr whose reader leaves (`| head`, `2>&1 | tee log` and Ctrl-C), or whose disk is full."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TextIO

GONE = (errno.EPIPE, errno.EIO)  # the pipe's reader, the terminal


class Forgiving(io.TextIOWrapper):
    """A stderr that cannot be written on is no reason to stop: once its reader is gone, what comes goes nowhere."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            if error.errno in GONE:
                mute(self)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            if error.errno in GONE:
                mute(self)


def set_up_streams() -> None:
    """What is written to a closed stdout or stderr (`>&-`) goes nowhere, and stderr becomes a forgiving one, unless
    another program has put its own in its place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 (as long as we live)
    stderr = sys.__stderr__
    if sys.stderr is stderr and isinstance(stderr, io.TextIOWrapper):
        encoding, errors = stderr.encoding, stderr.errors
        sys.stderr = Forgiving(stderr.detach(), encoding, errors, line_buffering=True)
        sys.__stderr__ = sys.stderr  # type: ignore[misc]  # what Python itself says at the very end


def mute(stream: TextIO) -> None:
    """What is written from now on, and what waits to be written, goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def settle(stream: TextIO) -> None:
    """Give up what cannot be written at the end: Python would try once more, and end with 120."""
    try:
        io.TextIOWrapper.flush(stream) if isinstance(stream, io.TextIOWrapper) else stream.flush()
    except OSError:
        mute(stream)
