"""Sentences as ids on disk: a flat array of ids and an array of offsets for each side, read through memory maps.

source.ids, target.ids          ids of all sentences, with end tokens, as little-endian int32
source.offsets, target.offsets  start of each sentence, then the end of the last one, as little-endian int64

Opening a store takes no memory, whatever its size.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_mt.errors import TmtError, from_os_error
from transformer_mt.files.held import HeldFile

SIDES = SOURCE, TARGET = ("source", "target")
IDS, OFFSETS = "ids", "offsets"  # the files of a side
CHECKED_IDS = 1 << 20  # number of ids that are compared at once
CHECKED_AT_ONCE = 1 << 27  # most ids of a side that are all checked before training starts
READ_OFFSETS = 1 << 18  # number of offsets that are read at once
Ids = NDArray[np.int32]
Counts = NDArray[np.int64]
REDO = "Prepare it again:  tmt prepare --config CONFIG --force"


class StoreWriter:
    """Writes a new store. files: closes its files"""

    def __init__(self, folder: Path, files: ExitStack) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._sides = [_SideWriter(folder, side, files) for side in SIDES]

    def extend(self, source: tuple[Ids, Ids], target: tuple[Ids, Ids]) -> None:
        """Add many pairs. source, target: lengths with end tokens, and the ids of all sentences"""
        for side, (lengths, ids) in zip(self._sides, (source, target), strict=True):
            side.write(ids, side.end + np.cumsum(lengths, dtype=np.int64))


class _SideWriter:
    """The files of one side. end: number of ids in them"""

    def __init__(self, folder: Path, side: str, files: ExitStack) -> None:
        self._files = [files.enter_context((folder / f"{side}.{part}").open("wb")) for part in (IDS, OFFSETS)]
        self.end = 0
        self.write(np.empty(0), np.zeros(1))

    def write(self, ids: NDArray[Any], offsets: NDArray[Any]) -> None:
        self.end += len(ids)
        for file, values, kind in zip(self._files, (ids, offsets), ("<i4", "<i8"), strict=True):
            file.write(np.ascontiguousarray(values, kind).data)


class Side:
    """One side of a store: sentence i is ids[offsets[i] : offsets[i + 1]]."""

    _below: int | None = None  # ids are checked against this when they are used

    def __init__(self, folder: Path, side: str) -> None:
        self._folder = folder
        self._files = tuple(_held(folder / f"{side}.{part}") for part in (OFFSETS, IDS))
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

    def excerpt(self, starts: Counts, sizes: Counts) -> Side:
        """Runs of sentences as a side in memory. starts, sizes: the first sentence of each run, and how many it has

        They are read from the files. A map would keep the pages around them too: in the end the whole file.
        """
        return _Excerpt(self._folder, self._files, starts, sizes, self._below)

    def longest(self) -> int:
        """Number of tokens of the longest sentence. Reads all offsets."""
        blocks = [slice(start, start + READ_OFFSETS + 1) for start in range(0, len(self), READ_OFFSETS)]
        return max(int(np.diff(self.offsets[block]).max()) for block in blocks)

    def _real(self, lengths: Counts) -> Counts:
        if len(lengths) and lengths.min() < 1:
            raise _damaged("a sentence has no tokens", self._folder)
        return lengths

    def require_below(self, size: int) -> None:
        """Raises TmtError if an id is not one of a vocabulary of this size.

        The ids of a large store are checked when they are used: reading all of them would take minutes.
        """
        if len(self.ids) > CHECKED_AT_ONCE:
            self._below = size
            return
        for start in range(0, len(self.ids), CHECKED_IDS):
            self._require_below(self.ids[start : start + CHECKED_IDS], size)

    def _require_below(self, ids: Ids, size: int | None) -> Ids:
        if size is not None and len(ids) and (ids.min() < 0 or ids.max() >= size):
            raise _damaged("an id is not in the vocabulary", self._folder)
        return ids

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> list[int]:
        sentence: Ids = self.ids[self.offsets[index] : self.offsets[index + 1]]
        return self._require_below(sentence, self._below).tolist()  # type: ignore[no-any-return]

    def joined(self, rows: Counts) -> Counts:
        """The ids of some sentences, concatenated."""
        lengths = self.lengths_of(rows)
        moved = self.offsets[rows] - lengths.cumsum() + lengths  # from the place of a sentence here to that in the file
        ids = self.ids[np.arange(lengths.sum()) + np.repeat(moved, lengths)]
        return self._require_below(ids, self._below).astype(np.int64)

    def gather(self, rows: Counts, width: int, padding: int) -> NDArray[np.int64]:
        """The ids of some sentences, padded: [len(rows), width]."""
        starts, ends = self.offsets[rows], self.offsets[rows + 1]
        position_BT = starts[:, None] + np.arange(width)
        real_BT = position_BT < ends[:, None]
        taken = self.ids[np.where(real_BT, position_BT, starts[:, None])]
        return np.where(real_BT, self._require_below(taken, self._below), np.int64(padding))


class MemorySide(Side):
    """A side in memory."""

    def __init__(self, offsets: Counts, ids: Ids) -> None:
        self.offsets, self.ids, self._folder = offsets, ids, Path()

    def excerpt(self, starts: Counts, sizes: Counts) -> Side:
        rows = members(starts, sizes)
        return MemorySide(_starts(self.lengths_of(rows)), self.joined(rows).astype(np.int32))


class _Excerpt(MemorySide):
    """Runs of sentences of a side. Their ids are read at the first use."""

    def __init__(
        self, folder: Path, files: tuple[HeldFile, ...], starts: Counts, sizes: Counts, below: int | None
    ) -> None:
        """files: of the offsets and of the ids"""
        self._below, self._folder = below, folder
        of_offsets, self._file = files
        offsets = np.empty(int((sizes + 1).sum()), "<i8")
        _read_runs(of_offsets, starts, sizes + 1, offsets)
        ends = (sizes + 1).cumsum() - 1
        self.offsets = _starts(self._real(np.delete(np.diff(offsets), ends[:-1])))
        self._runs = offsets[ends - sizes], offsets[ends] - offsets[ends - sizes]

    @cached_property
    def ids(self) -> Ids:  # type: ignore[override]
        ids = np.empty(int(self.offsets[-1]), "<i4")
        _read_runs(self._file, *self._runs, ids)
        return ids


def _starts(lengths: Counts) -> Counts:
    """The start of each sentence, and the end of the last one."""
    return np.append(0, lengths.cumsum())


def _held(file: Path) -> HeldFile:
    """Raises TmtError if the file is missing."""
    try:
        return HeldFile(file)
    except OSError as error:
        raise _missing(error, file) from None


def _read_runs(file: HeldFile, starts: Counts, sizes: Counts, values: NDArray[Any]) -> None:
    """Read runs of values of a file, concatenated. Raises TmtError if the file is too short."""
    room, width, place = values.view(np.uint8).data, values.itemsize, 0
    for start, size in zip((starts * width).tolist(), (sizes * width).tolist(), strict=True):
        try:
            part = file.read(start, size)
        except OSError as error:
            raise from_os_error(error, "reading prepared data") from None
        if len(part) != size:
            raise _damaged("a file is incomplete", file.path)
        room[place : place + size] = part
        place += size


class Store:
    """The pairs of one split. Raises TmtError if files are missing or damaged."""

    def __init__(self, folder: Path) -> None:
        self.source, self.target = (Side(folder, side) for side in SIDES)
        if len(self.source) != len(self.target):
            raise _damaged("source and target have different numbers of sentences", folder)

    @classmethod
    def of(cls, source: Side, target: Side) -> Store:
        """A store of two sides of the same length."""
        store = cls.__new__(cls)
        store.source, store.target = source, target
        return store

    def excerpt(self, starts: Counts, sizes: Counts) -> Store:
        """Runs of pairs as a store in memory; see `Side.excerpt`."""
        return Store.of(self.source.excerpt(starts, sizes), self.target.excerpt(starts, sizes))

    def read_ahead(self) -> None:
        """Read the ids of an excerpt now instead of at their first use."""
        _ = self.source.ids, self.target.ids

    def forget(self) -> None:
        """Free the memory of the ids of an excerpt. If they are used again, they are read again."""
        for side in (self.source, self.target):
            if isinstance(side, _Excerpt):
                vars(side).pop("ids", None)

    def __len__(self) -> int:
        return len(self.source)


def members(starts: Counts, sizes: Counts) -> Counts:
    """All numbers of some runs, one run behind the other."""
    return np.repeat(starts - sizes.cumsum() + sizes, sizes) + np.arange(sizes.sum())


def _mapped(file: Path, kind: str) -> NDArray[Any]:
    """A file as an array that stays on disk. Raises TmtError if it is missing or incomplete."""
    try:
        if file.stat().st_size == 0:
            return np.zeros(0, dtype=kind)
        return np.memmap(file, dtype=kind, mode="r").view(np.ndarray)
    except OSError as error:
        raise _missing(error, file) from None
    except ValueError:
        raise _damaged("a file is incomplete", file) from None


def _missing(error: OSError, file: Path) -> TmtError:
    return TmtError("a file of the prepared data is missing", place=error.filename or file, remedy=REDO)


def _damaged(what: str, place: Path) -> TmtError:
    return TmtError(f"prepared data is damaged: {what}", place=place, remedy=REDO)
