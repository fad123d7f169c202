"""Sentences as ids on disk: one flat array a side, with offsets, read through memory maps.

source.ids, target.ids          ids of all sentences, end marks included, as little-endian int32
source.offsets, target.offsets  where each sentence begins, and at last where the last one ends, as int64

A store knows neither words nor splits; opening one costs no memory, whatever its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from transformer_mt.errors import TmtError

SIDES = ("source", "target")
Ids = NDArray[np.int32]
Counts = NDArray[np.int64]


class StoreWriter:
    """Appends pairs to a new store; nothing but the current pair is held in memory."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._ids = [(folder / f"{side}.ids").open("wb") for side in SIDES]
        self._offsets = [(folder / f"{side}.offsets").open("wb") for side in SIDES]
        self._ends = [0, 0]
        for file in self._offsets:
            file.write(np.int64(0).tobytes())

    def append(self, source: Sequence[int], target: Sequence[int]) -> None:
        for side, ids in enumerate((source, target)):
            self._ids[side].write(np.asarray(ids, dtype="<i4").tobytes())
            self._ends[side] += len(ids)
            self._offsets[side].write(np.asarray(self._ends[side], dtype="<i8").tobytes())

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (*self._ids, *self._offsets):
            file.close()


class Side:
    """One side of a store: sentence i is ids[offsets[i] : offsets[i + 1]]."""

    def __init__(self, folder: Path, side: str) -> None:
        try:
            self.offsets: Counts = np.fromfile(folder / f"{side}.offsets", dtype="<i8")
            file = folder / f"{side}.ids"
            self.ids: Ids = np.memmap(file, dtype="<i4", mode="r") if file.stat().st_size else np.zeros(0, np.int32)
        except OSError as error:
            raise TmtError("prepared data is missing", place=error.filename, remedy=_REMEDY) from None
        if len(self.offsets) == 0 or self.offsets[-1] != len(self.ids):
            raise TmtError("prepared data is damaged: ids and offsets disagree", place=folder, remedy=_REMEDY)
        self.lengths: Counts = np.diff(self.offsets)  # tokens of each sentence, end mark included

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> list[int]:
        return self.ids[self.offsets[index] : self.offsets[index + 1]].tolist()

    def gather(self, rows: Counts, width: int, padding: int) -> NDArray[np.int64]:
        """The sentences `rows`, filled up with padding to [len(rows), width]."""
        starts, ends = self.offsets[rows], self.offsets[rows + 1]
        position_BT = starts[:, None] + np.arange(width)
        real_BT = position_BT < ends[:, None]
        taken = self.ids[np.where(real_BT, position_BT, starts[:, None])]
        return np.where(real_BT, taken, padding)


class Store:
    """The pairs of one split. Raises TmtError where files are missing or disagree."""

    def __init__(self, folder: Path) -> None:
        self.source, self.target = (Side(folder, side) for side in SIDES)
        if len(self.source) != len(self.target):
            raise TmtError("prepared data is damaged: sides of different size", place=folder, remedy=_REMEDY)

    def __len__(self) -> int:
        return len(self.source)


_REMEDY = "Prepare again:  tmt prepare --config C --force"
