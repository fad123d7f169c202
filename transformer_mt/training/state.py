"""How far training has come, in one small object that is saved and loaded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from transformer_mt.config.training import TrainingConfig
from transformer_mt.data.planning import Cursor
from transformer_mt.training.running_loss import Totals
from transformer_mt.training.schedules.plateau import plateau_after


@dataclass
class TrainState:
    """Progress of a run. A checkpoint holds it beside the tensors: weights, optimizer and random generators.

    step:     updates done
    epoch, update:  the next update is number `update` (from 0) of `epoch` (from 1)
    world:    number of processes: an update takes batches from each, so `update` depends on it
    tokens:   target tokens seen
    seconds:  time spent in training, in all parts of the run
    best, stale:    lowest monitored value so far, and the number of validations since then; see `ranking`
    plateau, plateau_best, plateau_stale:  see `plateau_after`
    ranking:  (monitored value, step) of the best checkpoints, best first: the validation loss, or the negative BLEU
    recent_*: sums since the last validation, for its line in the table
    window_*: sums since the last record of the loss in metrics.jsonl
    validated:      the step of the last validation
    put_off:        the step of a validation that a signal has broken off, which follows when the run continues; or 0
    interrupted:    steps with a checkpoint only because of an interruption or of its time, or 0 for the parent; they do
              not count for `keep_last`
    recent:   steps of the newest other checkpoints; the settings say how many
    plan_window, plan_batch:  the place of the next update in the plan of the epoch, for any number of processes
    plan_windows, plan_batches:  windows of the epoch, and batches of the window (0: not known), when this was saved; an
              older version, which did not write them, counts as 0 windows
    plan_update:    batches of an update, of all processes, when this was saved; 0: not known
    stopped:  why training ended; empty while it continues
    """

    step: int = 0
    epoch: int = 1
    update: int = 0
    world: int = 1
    tokens: int = 0
    seconds: float = 0.0
    best: float = math.inf
    stale: int = 0
    plateau: float = 1.0
    plateau_best: float = math.inf
    plateau_stale: int = 0
    ranking: list[tuple[float, int]] = field(default_factory=list)
    recent_nll: float = 0.0
    recent_tokens: int = 0
    recent_seconds: float = 0.0
    window_updates: int = 0
    window_nll: float = 0.0
    window_smoothed: float = 0.0
    window_tokens: int = 0
    window_seconds: float = 0.0
    validated: int = 0
    put_off: int = 0
    plan_window: int = 0
    plan_batch: int = 0
    plan_windows: int = 1
    plan_batches: int = 0
    plan_update: int = 0
    interrupted: list[int] = field(default_factory=list)
    recent: list[int] = field(default_factory=list)
    stopped: str = ""

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values; infinity becomes None."""
        values = asdict(self)
        return {key: None if value == math.inf else value for key, value in values.items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> TrainState:
        """The inverse of `to_json`. Raises ValueError if keys are missing."""
        names = {item.name for item in fields(cls)}
        added = {name: 0 for name in names if name.startswith(("window_", "plan_"))}
        values = {"interrupted": [], "recent": [], "put_off": 0, **added, **values}  # older versions did not write them
        if not names <= set(values):
            raise ValueError(f"keys are missing: {', '.join(sorted(names - set(values)))}")
        known: dict[str, Any] = {name: math.inf if values[name] is None else values[name] for name in names}
        return cls(**{**known, "ranking": [(monitored, step) for monitored, step in known["ranking"]]})

    @property
    def latest_epoch(self) -> int:
        """The epoch of the last update."""
        return self.epoch if self.update else max(1, self.epoch - 1)

    def start_from_parent(self) -> None:
        """The checkpoint of step 0 is kept as the parent, and does not count for `keep_last` or a mean."""
        self.interrupted.append(0)

    @property
    def has_parent(self) -> bool:
        return 0 in self.interrupted

    def regular(self, steps: Sequence[int]) -> list[int]:
        """The steps whose checkpoints an uninterrupted run also has; all steps if there are none."""
        own = [step for step in steps if step or not self.has_parent] or list(steps)
        return [step for step in own if step not in self.interrupted] or own

    def latest(self, steps: Sequence[int]) -> list[int]:
        """The newest steps, without older ones whose checkpoints are kept because they are among the best."""
        regular = self.regular(steps)
        return [step for step in regular if step in self.recent] or list(regular)

    def record_checkpoint(self, config: TrainingConfig) -> None:
        """Record that this state gets a checkpoint."""
        if self.step not in (*self.interrupted, *self.recent):
            self.recent = [*self.recent, self.step][-config.kept_last :]

    @property
    def cursor(self) -> Cursor:
        """The place of the next update in the plan."""
        return Cursor(self.epoch, self.plan_window, self.plan_batch)

    def advance(self, following: Cursor, seconds: float) -> None:
        """Count one more update. following: the place of the next one"""
        self.step, self.update = self.step + 1, self.update + 1
        self.seconds, self.recent_seconds = self.seconds + seconds, self.recent_seconds + seconds
        if following.epoch != self.epoch:
            self.update = 0
        self.epoch, self.plan_window, self.plan_batch = following

    def add(self, updates: int, totals: Totals) -> None:
        """Add the tokens and losses of some updates."""
        nll, smoothed, tokens, seconds = totals
        self.tokens, self.recent_tokens = self.tokens + tokens, self.recent_tokens + tokens
        self.recent_nll += nll
        self.window_updates, self.window_tokens = self.window_updates + updates, self.window_tokens + tokens
        self.window_nll, self.window_smoothed = self.window_nll + nll, self.window_smoothed + smoothed
        self.window_seconds += seconds

    def clear_window(self) -> None:
        """Begin the next window."""
        self.window_updates = self.window_tokens = 0
        self.window_nll = self.window_smoothed = self.window_seconds = 0.0

    @property
    def recent_loss(self) -> float | None:
        """The mean of -log p since the last validation; None without an update since then."""
        return self.recent_nll / self.recent_tokens if self.recent_tokens else None

    def record_validation(self, loss: float, bleu: float | None, config: TrainingConfig) -> bool:
        """Record a validation; returns whether it is the best so far."""
        monitored = loss if config.monitor == "loss" or bleu is None else -bleu
        is_best = monitored < self.best
        self.best, self.stale = (monitored, 0) if is_best else (self.best, self.stale + 1)
        self.plateau, self.plateau_stale, self.plateau_best = plateau_after(
            self.plateau, self.plateau_stale, self.plateau_best, loss, config
        )
        kept = max(config.keep_best, config.average_checkpoints if config.average == "best" else 0)
        if self.step:  # the checkpoint of step 0 is kept anyway
            self.ranking = sorted([*self.ranking, (monitored, self.step)])[:kept]
        self.validated = self.step
        self.recent_nll, self.recent_tokens, self.recent_seconds = 0.0, 0, 0.0
        return is_best

    def rescale_world(self, world: int, before: int = 0, now: int = 0) -> None:
        """Continue with another number of processes, at the same batch. `update` is rounded down.

        before, now: batches of an update; 0: as many as processes
        """
        self.update = self.update * (before or self.world) // (now or world)
        self.world = world
