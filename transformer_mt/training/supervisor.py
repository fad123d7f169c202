"""Decisions about a training from outside of it, as by `tmt tune`. Without one, only the config ends a training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Supervisor:
    """judge:   called with the figures of each validation, before its checkpoint is written: why training ends, or "".
             Its second argument: why training ends here anyway, by a limit of its config, or ""; it returns this first
    is_over: called in each update: whether to save a checkpoint after it and stop, as after Ctrl-C
    """

    judge: Callable[[Mapping[str, Any], str], str] = lambda values, own: own
    is_over: Callable[[], bool] = lambda: False
