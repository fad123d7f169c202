"""The loss and the speed of the latest updates.

Sums stay on the device until they are read, so that the program does not wait for a GPU in each step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_mt.kernels.loss import LossSums


class Place(NamedTuple):
    """An update: its step, and its place in the data; step, epoch and batch count from 1."""

    step: int
    epoch: int
    batch: int


class Figures(NamedTuple):
    """nll, smoothed: sums over `tokens` target tokens; seconds: from the first of these updates to now."""

    nll: float
    smoothed: float
    tokens: int
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / max(1e-9, self.seconds)


class LossTable(NamedTuple):
    """The sums of each update, one update after the other."""

    nll: list[float]
    smoothed: list[float]


class RunningLoss:
    """Loss sums of each update of this process, and the tokens of the whole group."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._sums: list[Tensor] = []
        self._tokens, self._since = 0, time.monotonic()
        self._before = Figures(0.0, 0.0, 0, 0.0)

    def __len__(self) -> int:
        return len(self._places)

    def add(self, place: Place, sums: LossSums, tokens: int) -> None:
        """Add an update. sums: of this process, on its device; tokens: of the group."""
        self._places.append(place)
        self._sums.append(torch.stack([sums.nll, sums.smoothed]))
        self._tokens += tokens

    def table(self, of_all: Callable[[list[float]], list[float]] = list) -> LossTable:
        """The sums of each update since the last `forget`. Waits for the GPU.

        of_all: makes sums over all processes of this one's.
        """
        if not self._sums:
            return LossTable([], [])
        sums = of_all(torch.stack(self._sums, dim=1).flatten().tolist())
        return LossTable(sums[: len(self._sums)], sums[len(self._sums) :])

    def figures(self, table: LossTable) -> Figures:
        """Sums over the updates of a `table`, in time since the clock was started."""
        return Figures(sum(table.nll), sum(table.smoothed), self._tokens, time.monotonic() - self._since)

    def steadied(self, table: LossTable) -> Figures:
        """`figures`, with the updates before the last `forget`: the numbers of a few updates alone would jump."""
        now, before = self.figures(table), self._before
        tokens, seconds = now.tokens + before.tokens, now.seconds + before.seconds
        return Figures(now.nll + before.nll, now.smoothed + before.smoothed, tokens, seconds)

    def first_non_finite(self, table: LossTable) -> Place | None:
        """The first update with a loss that is infinite or not a number; None if there is no such update."""
        for place, nll, smoothed in zip(self._places, *table, strict=True):
            if not math.isfinite(nll + smoothed):
                return place
        return None

    def forget(self, figures: Figures) -> None:
        """Start again, the clock too. figures: those of the updates so far."""
        self._places, self._sums, self._tokens, self._before = [], [], 0, figures
        self.restart_clock()

    def restart_clock(self) -> None:
        """Exclude the time that was not training: validation, saving."""
        self._since = time.monotonic()
