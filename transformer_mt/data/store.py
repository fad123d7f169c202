"""Sentences as ids on disk: a flat array of ids and an array of offsets for each side, read through memory maps.

source.ids, target.ids          ids of all sentences, with end tokens, as little-endian int32
source.offsets, target.offsets  start of each sentence, then the end of the last one, as little-endian int64

Opening a store takes no memory, whatever its size.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_mt.errors import TmtError

SIDES = SOURCE, TARGET = ("source", "target")
IDS, OFFSETS = "ids", "offsets"  # the files of a side
WRITE_IDS = 1 << 16  # number of ids that are written at once
CHECKED_IDS = 1 << 20  # number of ids that are compared at once
Ids = NDArray[np.int32]
Counts = NDArray[np.int64]
_REMEDY = "Prepare it again:  tmt prepare --config CONFIG --force"


class StoreWriter:
    """Writes a new store pair by pair, as a context. Only the last pairs are in memory."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._files = ExitStack()
        self._sides = [_SideWriter(folder, side, self._files) for side in SIDES]

    def append(self, source: Sequence[int], target: Sequence[int]) -> None:
        """Add a pair. source, target: ids with end tokens."""
        for side, ids in zip(self._sides, (source, target), strict=True):
            side.ids.extend(ids)
            side.end += len(ids)
            side.offsets.append(side.end)
            if len(side.ids) > WRITE_IDS:
                side.flush()

    def extend(self, source: tuple[Ids, Ids], target: tuple[Ids, Ids]) -> None:
        """Add many pairs. source, target: lengths with end tokens, and the ids of all sentences"""
        for side, (lengths, ids) in zip(self._sides, (source, target), strict=True):
            side.flush()
            side.write(ids, side.end + np.cumsum(lengths, dtype=np.int64))
            side.end += len(ids)

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._files:
            for side in self._sides if error is None else ():
                side.flush()


class _SideWriter:
    """The files of one side, and the values not yet written to them."""

    def __init__(self, folder: Path, side: str, files: ExitStack) -> None:
        self._files = [files.enter_context((folder / f"{side}.{part}").open("wb")) for part in (IDS, OFFSETS)]
        self.ids, self.offsets, self.end = array("i"), array("q", [0]), 0

    def flush(self) -> None:
        if self.offsets:
            self.write(np.asarray(self.ids), np.asarray(self.offsets))
        self.ids, self.offsets = array("i"), array("q")

    def write(self, ids: NDArray[Any], offsets: NDArray[Any]) -> None:
        for file, values, kind in zip(self._files, (ids, offsets), ("<i4", "<i8"), strict=True):
            file.write(np.ascontiguousarray(values, kind).data)


class Side:
    """One side of a store: sentence i is ids[offsets[i] : offsets[i + 1]]."""

    def __init__(self, folder: Path, side: str) -> None:
        self._folder = folder
        self.offsets: Counts = _mapped(folder / f"{side}.{OFFSETS}", "<i8")
        self.ids: Ids = _mapped(folder / f"{side}.{IDS}", "<i4")
        if len(self.offsets) == 0 or self.offsets[0] != 0 or self.offsets[-1] != len(self.ids):
            raise _damaged("ids and offsets do not match", folder)

    @cached_property
    def lengths(self) -> Counts:
        """Number of tokens of each sentence, with end token. Raises TmtError if a sentence has none."""
        lengths = np.diff(self.offsets)
        if len(lengths) and lengths.min() < 1:
            raise _damaged("a sentence has no tokens", self._folder)
        return lengths

    def require_below(self, size: int) -> None:
        """Raises TmtError if an id is not one of a vocabulary of this size."""
        for start in range(0, len(self.ids), CHECKED_IDS):
            block = self.ids[start : start + CHECKED_IDS]
            if block.min() < 0 or block.max() >= size:
                raise _damaged("an id is not in the vocabulary", self._folder)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> list[int]:
        ids: list[int] = self.ids[self.offsets[index] : self.offsets[index + 1]].tolist()
        return ids

    def joined(self, rows: Counts) -> Counts:
        """The ids of some sentences, one behind the other."""
        lengths = self.lengths[rows]
        moved = self.offsets[rows] - lengths.cumsum() + lengths  # from the place of a sentence here to that in the file
        ids: Counts = self.ids[np.arange(lengths.sum()) + np.repeat(moved, lengths)].astype(np.int64)
        return ids

    def gather(self, rows: Counts, width: int, padding: int) -> NDArray[np.int64]:
        """The ids of some sentences, padded: [len(rows), width]."""
        starts, ends = self.offsets[rows], self.offsets[rows + 1]
        position_BT = starts[:, None] + np.arange(width)
        real_BT = position_BT < ends[:, None]
        taken = self.ids[np.where(real_BT, position_BT, starts[:, None])]
        return np.where(real_BT, taken, np.int64(padding))


class Store:
    """The pairs of one split. Raises TmtError if files are missing or damaged."""

    def __init__(self, folder: Path) -> None:
        self.source, self.target = (Side(folder, side) for side in SIDES)
        if len(self.source) != len(self.target):
            raise _damaged("source and target have different numbers of sentences", folder)

    def __len__(self) -> int:
        return len(self.source)


def _mapped(file: Path, kind: str) -> NDArray[Any]:
    """A file as an array that stays on disk. Raises TmtError if it is missing or incomplete."""
    try:
        if file.stat().st_size == 0:
            return np.zeros(0, dtype=kind)
        return np.memmap(file, dtype=kind, mode="r").view(np.ndarray)
    except OSError as error:
        raise TmtError("a file of the prepared data is missing", place=error.filename or file, remedy=_REMEDY) from None
    except ValueError:
        raise _damaged("a file is incomplete", file) from None


def _damaged(what: str, place: Path) -> TmtError:
    return TmtError(f"prepared data is damaged: {what}", place=place, remedy=_REMEDY)
