"""A file that is read in parts while another process may replace it."""

from __future__ import annotations

import os
import weakref
from pathlib import Path


class HeldFile:
    """A file that stays open, so that its parts are those of one file if another one takes its name.

    Several threads may read it. On Windows it is opened for each part.
    """

    def __init__(self, file: Path) -> None:
        """Raises OSError if the file cannot be opened."""
        self.path = file
        self._descriptor: int | None = None
        if hasattr(os, "pread"):
            self._descriptor = os.open(file, os.O_RDONLY)
            weakref.finalize(self, os.close, self._descriptor)

    def read(self, start: int, size: int) -> bytes:
        """`size` bytes from `start` on, fewer at the end of the file. Raises OSError if it cannot be read."""
        if self._descriptor is None:
            with self.path.open("rb") as file:
                file.seek(start)
                return file.read(size)
        parts = []
        while size and (part := os.pread(self._descriptor, size, start)):  # at most 2 GiB at once
            parts.append(part)
            start, size = start + len(part), size - len(part)
        return b"".join(parts)
