"""What a model was trained on, as hashes that travel with it: which sentences of another corpus has it seen?

`trained_on.safetensors` has the sorted hashes (8 bytes each) of all different training sources and targets, including
those of the models that it started from. They are the hashes by which leaks are found (`text.batches.keys_of_pairs`):
equal for sentences that differ only in case, spaces and punctuation. Two different sentences have the same hash with a
probability of 2^-64.

The file has at most MOST hashes a side, 16 MB in all: of larger corpora, the smallest ones. A hash that is not larger
than the largest of them can still be decided exactly, and the share of such hashes is the share that is checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from transformer_mt.config.runs import TRAINED_ON
from transformer_mt.data.store import SIDES
from transformer_mt.errors import TmtError, reason

MOST = 1_000_000  # hashes a side
Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class TrainedOn:
    """hashes: by side, sorted, each once. complete: False if a model that it started from has no such file."""

    hashes: Mapping[str, Hashes]
    complete: bool = True

    @classmethod
    def of_blocks(cls, blocks: Iterable[Mapping[str, Hashes] | NDArray[np.void]]) -> TrainedOn:
        """From the hashes of all training sentences, by side, in any order. They come in blocks."""
        smallest = {side: np.zeros(0, np.uint64) for side in SIDES}
        waiting = {side: list[Hashes]() for side in SIDES}
        for block in chain(blocks, [None]):
            for side in SIDES:
                if block is not None:
                    hashes = block[side]
                    waiting[side].append(hashes[hashes <= _limit(smallest[side])])
                if block is None or sum(map(len, waiting[side])) > MOST:
                    smallest[side] = np.unique(np.concatenate([smallest[side], *waiting[side]]))[:MOST]
                    waiting[side] = []
        return cls(smallest)

    def with_parent(self, parent: TrainedOn | None) -> TrainedOn:
        """What a model has seen that started from another one. None: what that one has seen is unknown."""
        if parent is None:
            return TrainedOn(self.hashes, complete=False)
        both = {}
        for side in SIDES:
            one, other = self.hashes[side], parent.hashes[side]
            limit = min(_limit(one), _limit(other))  # up to here, both are complete
            both[side] = np.unique(np.concatenate([one[one <= limit], other[other <= limit]]))[:MOST]
        return TrainedOn(both, self.complete and parent.complete)

    def seen(self, hashes: Hashes) -> tuple[int, float]:
        """How many of these sentences are among the training sentences, and the share that could be checked.

        Sources and targets count alike: a model may have been trained in another direction, or started from such a one.
        """
        limit = self._complete_to
        checked = hashes[hashes <= limit]
        found = self._has(checked)
        whole = all(len(known) < MOST for known in self.hashes.values())
        share = float(limit) / 2.0**64  # may round to 1, which only a whole may be
        return int(found.sum()), 1.0 if whole else min(share, math.nextafter(1.0, 0.0))

    def seen_pairs(self, keys: Mapping[str, Hashes] | NDArray[np.void]) -> tuple[int, int]:
        """How many pairs have both sentences among the training sentences, and how many pairs could be checked.

        keys: the hashes of the two sides
        """
        checked = np.logical_and(*(keys[side] <= self._complete_to for side in SIDES))
        seen = np.logical_and(*(self._has(keys[side][checked]) for side in SIDES))
        return int(seen.sum()), int(checked.sum())

    def _has(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Which of the hashes are those of training sentences, of either side."""
        found = np.zeros(len(hashes), bool)
        for known in filter(len, self.hashes.values()):
            places = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            found |= known[places] == hashes
        return found

    @property
    def _complete_to(self) -> np.uint64:
        """Up to this hash, both sides are complete."""
        return min(_limit(known) for known in self.hashes.values())

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return save({side: self.hashes[side] for side in SIDES}, {"complete": str(self.complete).lower()})

    @classmethod
    def read(cls, folder: Path) -> TrainedOn | None:
        """From the folder of a model or of prepared data; None if an older version wrote it.

        Raises TmtError if the file is damaged.
        """
        file = folder / TRAINED_ON
        try:
            with safe_open(file, framework="np") as opened:
                parts = {side: opened.get_slice(side) for side in SIDES}
                for side, part in parts.items():  # a stranger's file may claim any type and shape
                    if part.get_dtype() != "U64" or len(part.get_shape()) != 1 or part.get_shape()[0] > MOST:
                        raise SafetensorError(f"{side} is not a list of at most {MOST:,} hashes")
                hashes = {side: _sorted(part[:]) for side, part in parts.items()}
                complete = (opened.metadata() or {}).get("complete") == "true"
        except FileNotFoundError:
            return None
        except (SafetensorError, OSError) as error:
            remedy = "Copy it again from its original, or delete it; what this model was trained on is then unknown."
            raise TmtError(f"not a readable safetensors file ({reason(error)})", place=file, remedy=remedy) from None
        return cls(hashes, complete)


def _sorted(hashes: Hashes) -> Hashes:
    """Sorted, each once, as they should be in the file."""
    return hashes if np.all(hashes[1:] > hashes[:-1]) else np.unique(hashes)


def _limit(hashes: Hashes) -> np.uint64:
    """The largest hash that can be decided."""
    largest: np.uint64 = hashes[-1] if len(hashes) >= MOST else np.uint64(2**64 - 1)
    return largest
