"""How far training has come: the one small object that is saved, loaded, and knows it all."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass
class TrainState:
    """Progress of a run. Weights, optimizer and random generators are saved beside it, in tensors.

    step:     updates done; epoch and update: the next update is number `update` (from 0) of `epoch` (from 1)
    tokens:   target tokens seen
    seconds:  time spent training, over all resumptions
    best, stale:    best monitored value so far, and validations since then
    plateau, plateau_best, plateau_stale:   the plateau schedule's reduction and what it waits for
    ranking:  (badness, step) of the best checkpoints, best first; badness is the loss or the negative BLEU
    epoch_*:  sums over the current epoch, for its line in the table
    stopped:  why training ended; empty while it goes on
    """

    step: int = 0
    epoch: int = 1
    update: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best: float = math.inf
    stale: int = 0
    plateau: float = 1.0
    plateau_best: float = math.inf
    plateau_stale: int = 0
    ranking: list[tuple[float, int]] = field(default_factory=list)
    epoch_nll: float = 0.0
    epoch_smoothed: float = 0.0
    epoch_tokens: int = 0
    epoch_seconds: float = 0.0
    validated: int = 0  # the step of the last validation
    stopped: str = ""

    def to_json(self) -> dict[str, Any]:
        values = asdict(self)
        return {key: None if value == math.inf else value for key, value in values.items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> TrainState:
        """Raises ValueError where keys are missing."""
        names = {item.name for item in fields(cls)}
        if not names <= set(values):
            raise ValueError(f"keys are missing: {', '.join(sorted(names - set(values)))}")
        known: dict[str, Any] = {name: math.inf if values[name] is None else values[name] for name in names}
        return cls(**{**known, "ranking": [(badness, step) for badness, step in known["ranking"]]})

    def next_epoch(self) -> None:
        self.epoch, self.update = self.epoch + 1, 0

    def forget_epoch(self) -> None:
        """The sums for the table begin anew."""
        self.epoch_nll = self.epoch_smoothed = self.epoch_seconds = 0.0
        self.epoch_tokens = 0
