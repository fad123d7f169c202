"""stdout and stderr when their reader goes away (`| head`, `2>&1 | tee log` and Ctrl-C) or the disk is full."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TextIO

GONE = (errno.EPIPE, errno.EIO)  # the pipe's reader, the terminal


class Forgiving(io.TextIOWrapper):
    """A stderr that never stops the program: once its reader has gone, output is discarded."""

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
    """Discard output to a closed stdout or stderr (`>&-`), and make stderr a Forgiving one, unless another program has
    replaced it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 (open until the process ends)
    stderr = sys.__stderr__
    if sys.stderr is stderr and isinstance(stderr, io.TextIOWrapper):
        encoding, errors = stderr.encoding, stderr.errors
        sys.stderr = Forgiving(stderr.detach(), encoding, errors, line_buffering=True)
        sys.__stderr__ = sys.stderr  # type: ignore[misc]  # for what Python itself prints at exit


def mute(stream: TextIO) -> None:
    """Discard buffered and later output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def settle(stream: TextIO) -> None:
    """Flush, or discard what cannot be written: otherwise Python would try again at exit, and end with code 120."""
    try:
        io.TextIOWrapper.flush(stream) if isinstance(stream, io.TextIOWrapper) else stream.flush()
    except OSError:
        mute(stream)
