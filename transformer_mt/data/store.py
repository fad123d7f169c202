"""Sentences as ids on disk: one flat array a side, with offsets, read through memory maps.

source.ids, target.ids          ids of all sentences, end marks included, as little-endian int32
source.offsets, target.offsets  where each sentence begins, and at last where the last one ends, as int64

A store knows neither words nor splits; opening one costs no memory, whatever its size.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from transformer_mt.errors import TmtError

SIDES = ("source", "target")
PARTS = IDS, OFFSETS = ("ids", "offsets")  # files of a side
BUFFER = 1 << 16  # ids in memory before they are written
Ids = NDArray[np.int32]
Counts = NDArray[np.int64]


class _SideWriter:
    def __init__(self, ids: BinaryIO, offsets: BinaryIO) -> None:
        self._files = ids, offsets
        self._ids, self._offsets, self._end = array("i"), array("q", [0]), 0

    def append(self, ids: Sequence[int]) -> None:
        self._ids.extend(ids)
        self._end += len(ids)
        self._offsets.append(self._end)
        if len(self._ids) > BUFFER:
            self.flush()

    def flush(self) -> None:
        for file, values, kind in zip(self._files, (self._ids, self._offsets), ("<i4", "<i8"), strict=True):
            file.write(np.asarray(values).astype(kind).tobytes())
        self._ids, self._offsets = array("i"), array("q")


class StoreWriter:
    """Appends pairs to a new store, as a context; only the last few pairs are held in memory."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._files = ExitStack()
        self._sides = [
            _SideWriter(*(self._files.enter_context((folder / f"{side}.{what}").open("wb")) for what in PARTS))
            for side in SIDES
        ]

    def append(self, source: Sequence[int], target: Sequence[int]) -> None:
        """A pair of ids, end marks included."""
        for side, ids in zip(self._sides, (source, target), strict=True):
            side.append(ids)

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._files:
            for side in self._sides if error is None else ():
                side.flush()


class Side:
    """One side of a store: sentence i is ids[offsets[i] : offsets[i + 1]]."""

    def __init__(self, folder: Path, side: str) -> None:
        self._folder = folder
        self.offsets: Counts = _mapped(folder / f"{side}.{OFFSETS}", "<i8")
        self.ids: Ids = _mapped(folder / f"{side}.{IDS}", "<i4")
        if len(self.offsets) == 0 or self.offsets[0] != 0 or self.offsets[-1] != len(self.ids):
            raise _damaged("ids and offsets disagree", folder)

    @cached_property
    def lengths(self) -> Counts:
        """Tokens of each sentence, end mark included. Raises TmtError where one has none."""
        lengths = np.diff(self.offsets)
        if len(lengths) and lengths.min() < 1:
            raise _damaged("a sentence without a token", self._folder)
        return lengths

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
            raise _damaged("sides of different size", folder)

    def __len__(self) -> int:
        return len(self.source)


def _mapped(file: Path, kind: str) -> NDArray[Any]:
    """A file as an array that stays on disk. Raises TmtError where it is missing or holds half a number."""
    try:
        if file.stat().st_size == 0:
            return np.zeros(0, dtype=kind)
        return np.memmap(file, dtype=kind, mode="r").view(np.ndarray)
    except OSError as error:
        raise TmtError("prepared data is missing", place=error.filename or file, remedy=_REMEDY) from None
    except ValueError:
        raise _damaged("a file is cut off", file) from None


def _damaged(what: str, place: Path) -> TmtError:
    return TmtError(f"prepared data is damaged: {what}", place=place, remedy=_REMEDY)


_REMEDY = "Prepare again:  tmt prepare --config C --force"
