"""Loss and speed over the latest updates.

Loss sums stay on the device until they are read, so that the program does not wait for a GPU after each update.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_mt.kernels.loss import LossSums


class Position(NamedTuple):
    """The step of an update and its position in the data; all count from 1."""

    step: int
    epoch: int
    update: int


class Totals(NamedTuple):
    """nll, smoothed: loss sums over `tokens` target tokens; seconds: time from the first of these updates to now."""

    nll: float
    smoothed: float
    tokens: int
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / max(1e-9, self.seconds)


class LossTable(NamedTuple):
    """The loss sums of each update, oldest first."""

    nll: list[float]
    smoothed: list[float]


class RunningLoss:
    """Loss sums of each update of this process, and the number of tokens in all processes."""

    def __init__(self) -> None:
        self._positions: list[Position] = []
        self._sums: list[Tensor] = []
        self._tokens, self._since = 0, time.monotonic()
        self._previous = Totals(0.0, 0.0, 0, 0.0)

    def __len__(self) -> int:
        return len(self._positions)

    def add(self, position: Position, sums: LossSums, tokens: int) -> None:
        """Add an update. sums: of this process, on its device; tokens: of all processes."""
        self._positions.append(position)
        self._sums.append(torch.stack([sums.nll, sums.smoothed]))
        self._tokens += tokens

    def table(self, over_processes: Callable[[list[float]], list[float]] = list) -> LossTable:
        """The loss sums of each update since the last `reset`. Waits for the GPU.

        over_processes: turns the sums of this process into sums over all processes.
        """
        if not self._sums:
            return LossTable([], [])
        sums = over_processes(torch.stack(self._sums, dim=1).flatten().tolist())
        return LossTable(sums[: len(self._sums)], sums[len(self._sums) :])

    def totals(self, table: LossTable) -> Totals:
        """Sums over the updates of a `table`, and the time since the clock was started."""
        return Totals(sum(table.nll), sum(table.smoothed), self._tokens, time.monotonic() - self._since)

    def recent_totals(self, table: LossTable) -> Totals:
        """`totals`, plus those before the last `reset`: the mean of only a few updates would jump."""
        now, previous = self.totals(table), self._previous
        tokens, seconds = now.tokens + previous.tokens, now.seconds + previous.seconds
        return Totals(now.nll + previous.nll, now.smoothed + previous.smoothed, tokens, seconds)

    def first_non_finite(self, table: LossTable) -> Position | None:
        """The first update with a loss that is infinite or not a number; None if all are finite."""
        for position, nll, smoothed in zip(self._positions, *table, strict=True):
            if not math.isfinite(nll + smoothed):
                return position
        return None

    def reset(self, totals: Totals) -> None:
        """Remove all updates and restart the clock. totals: of the updates so far, for `recent_totals`."""
        self._positions, self._sums, self._tokens, self._previous = [], [], 0, totals
        self.restart_clock()

    def restart_clock(self) -> None:
        """Exclude the time until now, which was spent on validation or saving."""
        self._since = time.monotonic()
