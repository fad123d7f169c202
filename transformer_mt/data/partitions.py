"""Records on disk in partitions that fit into memory: what is equal or near each other comes into the same partition.

All work on a corpus is then one pass that writes the partitions, and one that reads them, whatever its size.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 20  # records that are in memory at the same time: of a partition, or waiting to be written
MOST = 256  # partitions, each of which is an open file
RECORD = np.dtype([("key", "<u8"), ("at", "<u8")])
Numbers = NDArray[np.uint64]
Records = NDArray[np.void]


def partitions_for(records: int) -> int:
    return min(MOST, max(1, -(-records // BLOCK)))


class Partitions:
    """Writes records as a context; afterwards, they can be read partition by partition, in the order of writing."""

    def __init__(self, folder: Path, name: str, count: int) -> None:
        self._paths = [folder / f"{name}-{number:03}.part" for number in range(count)]
        self._waiting: list[tuple[Numbers, Records]] = []
        self._n_waiting = 0

    def __enter__(self) -> Partitions:
        with ExitStack() as stack:
            self._opened = [stack.enter_context(path.open("wb")) for path in self._paths]
            self._files = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._files:
            if error is None:
                self._flush()

    def __len__(self) -> int:
        return len(self._paths)

    def add(self, keys: Numbers, at: Numbers, partitions: Numbers | None = None) -> None:
        """Add records. partitions: the partition of each; None: by the hash of its key"""
        if not len(keys):
            return
        records = np.empty(len(keys), RECORD)
        records["key"], records["at"] = keys, at
        self._waiting.append((keys % len(self) if partitions is None else partitions, records))
        self._n_waiting += len(keys)
        if self._n_waiting >= BLOCK:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        numbers, records = map(np.concatenate, zip(*self._waiting, strict=True))
        if len(self) > 1:
            order = np.argsort(numbers.astype(np.uint16), kind="stable")
            numbers, records = numbers[order], records[order]
        bounds = np.searchsorted(numbers, np.arange(len(self) + 1, dtype=np.uint64))
        for file, begin, end in zip(self._opened, bounds, bounds[1:], strict=False):
            if begin < end:
                file.write(records[begin:end].tobytes())
        self._waiting, self._n_waiting = [], 0

    def read(self, number: int) -> Records:
        """The records of a partition, and deletes its file."""
        path = self._paths[number]
        records = np.fromfile(path, RECORD)
        path.unlink()
        return records


def repeated(records: Records) -> Numbers:
    """`at` of all records but the first of each key."""
    order = np.argsort(records["key"], kind="stable")
    keys = records["key"][order]
    at: Numbers = records["at"][order[1:][keys[1:] == keys[:-1]]]
    return at


class Filter:
    """Whether a key may be among some keys: never False if it is."""

    SHIFT = np.uint64(40)  # the first 24 bits

    def __init__(self) -> None:
        self._known = np.zeros(1 << 24, dtype=bool)

    def add(self, keys: Numbers) -> None:
        self._known[keys >> self.SHIFT] = True

    def may_have(self, keys: Numbers) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self._known[keys >> self.SHIFT]
        return found
