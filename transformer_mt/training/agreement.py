"""What all processes decide together between updates: whether to stop, whether the time is up, and when to save."""

from __future__ import annotations

import math
import time

from transformer_mt.config.training import TrainingConfig
from transformer_mt.runtime.distributed import World
from transformer_mt.training.ending import time_is_up
from transformer_mt.training.interruption import StopSignal
from transformer_mt.training.state import TrainState

ASK_EVERY, ASK_SECONDS = 20, 1.0  # updates and seconds between questions
SAVE_SECONDS = 30 * 60.0  # without `checkpoint_every`, between checkpoints: a kill loses no more than this


class Agreement:
    """is_late: whether the time is up; is_save_due: whether the last checkpoint is too old. The same in all processes.

    Clocks differ: that of the main process decides.
    """

    def __init__(self, world: World, settings: TrainingConfig) -> None:
        self.is_late = self.is_save_due = False
        self._world, self._settings = world, settings
        self._last, self._next = (0, -math.inf), 0.0  # questions: step and time of the last one, step of the next one
        self._saved = time.monotonic()

    def record_save(self) -> None:
        self._saved = time.monotonic()

    def ask(self, stop: StopSignal, state: TrainState) -> None:
        """Ask all processes, and count in `stop` those that got a signal.

        A single process does so in each update. Several do it about once a second, and at least every ASK_EVERY
        updates, because each exchange makes all processes wait for the slowest.
        """
        now = time.monotonic()
        self.is_late = self.is_save_due = False
        if self._world.size > 1 and state.step < self._next:
            return
        (step, time_then), self._last = self._last, (state.step, now)
        pace = (now - time_then) / max(1, state.step - step)  # seconds for an update
        updates = min(ASK_EVERY, max(1, int(ASK_SECONDS / max(1e-9, pace))))
        is_old = self._settings.checkpoint_every is None and now - self._saved >= SAVE_SECONDS
        own = [time_is_up(state, self._settings), is_old, state.step + updates] if self._world.is_main else [0, 0, 0]
        stop.votes, late, old, self._next = self._world.sums([stop.requested, *own])
        self.is_late, self.is_save_due = late > 0, old > 0
