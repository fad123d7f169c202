"""Sentences as ids on disk: a flat array of ids and an array of offsets for each side, read through memory maps.

source.ids, target.ids          ids of all sentences, with end tokens, as little-endian int32
source.offsets, target.offsets  start of each sentence, then the end of the last one, as little-endian int64

Opening a store takes no memory, whatever its size.
"""

from __future__ import annotations

import os
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
REPLACE_BYTES = 1 << 20  # number of bytes that are replaced at once
READ_OFFSETS = 1 << 18  # number of offsets that are read at once
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
        for file, values, kind in zip(self._files, (self.ids, self.offsets), ("<i4", "<i8"), strict=True):
            file.write(np.asarray(values).astype(kind).tobytes())
        self.ids, self.offsets = array("i"), array("q")


def replace_ids(folder: Path, side: str, new: Ids) -> None:
    """Replace each id i in one side of a store by new[i]."""
    with (folder / f"{side}.{IDS}").open("r+b") as file:
        while block := file.read(REPLACE_BYTES):
            file.seek(-len(block), os.SEEK_CUR)
            file.write(new[np.frombuffer(block, "<i4")].astype("<i4").tobytes())


class Side:
    """One side of a store: sentence i is ids[offsets[i] : offsets[i + 1]]."""

    def __init__(self, folder: Path, side: str) -> None:
        self._folder, self._name = folder, side
        self.offsets: Counts = _mapped(folder / f"{side}.{OFFSETS}", "<i8")
        self.ids: Ids = _mapped(folder / f"{side}.{IDS}", "<i4")
        if len(self.offsets) == 0 or self.offsets[0] != 0 or self.offsets[-1] != len(self.ids):
            raise _damaged("ids and offsets do not match", folder)

    @cached_property
    def lengths(self) -> Counts:
        """Number of tokens of each sentence, with end token. Raises TmtError if a sentence has none."""
        return self._real(np.diff(self.offsets))

    def lengths_of(self, rows: Counts) -> Counts:
        """Number of tokens of these sentences. Raises TmtError if one has none."""
        return self._real(self.offsets[rows + 1] - self.offsets[rows])

    def lengths_in(self, starts: Counts, sizes: Counts) -> Counts:
        """The same of runs of sentences: the first of each, and how many they are.

        They are read from the file. Where a map is read, all pages around become resident: of the whole file, if the
        runs are all over it.
        """
        file = os.open(self._folder / f"{self._name}.{OFFSETS}", os.O_RDONLY)
        try:
            read = b"".join(
                os.pread(file, 8 * size + 8, 8 * start)
                for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
            )
        finally:
            os.close(file)
        if len(read) != 8 * int((sizes + 1).sum()):
            raise _damaged("a file is incomplete", self._folder)
        ends_of_runs = (sizes + 1).cumsum()[:-1] - 1  # the difference to the next run is no length
        return self._real(np.delete(np.diff(np.frombuffer(read, "<i8")), ends_of_runs))

    def longest(self) -> int:
        """Number of tokens of the longest sentence."""
        starts = np.arange(0, len(self), READ_OFFSETS)
        sizes = np.minimum(READ_OFFSETS, len(self) - starts)
        return max(int(self.lengths_in(starts[[one]], sizes[[one]]).max()) for one in range(len(starts)))

    def _real(self, lengths: Counts) -> Counts:
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
        lengths = self.lengths_of(rows)
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
