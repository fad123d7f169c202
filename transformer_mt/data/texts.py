"""The text of training pairs, for segmentations drawn at random: lines that stay on disk until they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import overload

import numpy as np

from transformer_mt.data.store import Counts
from transformer_mt.errors import TmtError
from transformer_mt.files.held import HeldFile

INDEXED = 16  # the start of each line with a multiple of this number is in memory
READ_BYTES = 1 << 22  # number of bytes that are read at once to find them
NEWLINE = 10


class Lines(Sequence[str]):
    """The lines of a UTF-8 text file, without their ends. Opening it reads the file once, in little memory.

    remedy: for the user, if the file is damaged
    Raises TmtError if the file is missing; and when a line is read, if that is not UTF-8.
    """

    def __init__(self, file: Path, remedy: str) -> None:
        starts, lines, size, end = [np.zeros(1, np.int64)], 0, 0, b"\n"
        try:
            self._file, self._remedy = HeldFile(file), remedy
        except FileNotFoundError:
            raise TmtError("a file of the prepared data is missing", place=file, remedy=remedy) from None
        while block := self._file.read(size, READ_BYTES):
            following: Counts = np.flatnonzero(np.frombuffer(block, np.uint8) == NEWLINE) + size + 1
            starts.append(following[-(lines + 1) % INDEXED :: INDEXED])
            lines, size, end = lines + len(following), size + len(block), block[-1:]
        self._lines = lines + (end != b"\n")
        self._starts = np.append(np.concatenate(starts), size)

    def __len__(self) -> int:
        return self._lines

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if not 0 <= index < self._lines:
            raise IndexError(index)
        start, end = self._starts[index // INDEXED : index // INDEXED + 2].tolist()
        lines = self._file.read(start, end - start).split(b"\n")
        try:
            return lines[index % INDEXED].decode("utf-8")
        except UnicodeDecodeError:
            problem = "the file is damaged: its text is not UTF-8"
            raise TmtError(problem, place=self._file.path, remedy=self._remedy) from None
