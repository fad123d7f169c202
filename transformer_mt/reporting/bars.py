"""Progress: bars on a terminal and in notebooks, now and then a line elsewhere."""

from __future__ import annotations

import io
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from transformer_mt.files.system import redraws

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # in a notebook without ipywidgets, bars are text, as in a terminal
    from tqdm.auto import tqdm

PLAIN_SECONDS = 30.0  # between progress lines without a terminal


def is_watched() -> bool:
    """Whether stderr is a cell of a notebook or a terminal that can draw a bar again."""
    is_elsewhere = isinstance(sys.stderr, (io.StringIO, io.TextIOWrapper))  # as `contextlib.redirect_stderr` does
    return redraws(sys.stderr) or ("ipykernel" in sys.modules and not is_elsewhere)


def bar(**options: Any) -> tqdm[Any]:
    """A progress bar that disappears when it is done; hidden if stderr is not watched. options: those of tqdm."""
    return tqdm(leave=False, dynamic_ncols=True, disable=not is_watched(), **options)


class PlainProgress:
    """Says now and then how far a long work is: `reading train: 1,200,000 pairs, 24%, 15,000 a second`.

    Nothing is said in the first PLAIN_SECONDS; later, also the beginning of each stage is.
    """

    def __init__(self, unit: str, say: Callable[[str], object]) -> None:
        self.unit, self.say = unit, say
        self._stage, self._counted, self._began = "", 0, (0, 0.0)
        self._started = self._said = time.monotonic()

    def show(self, stage: str, count: int, share: float | None) -> None:
        """count: of units, in this stage; share: the part of the stage that is done, or None"""
        now, is_new = time.monotonic(), stage != self._stage
        if is_new or count < self._counted:  # the same stage of another file
            self._began = count, now
        self._stage, self._counted = stage, count
        if now - (self._started if is_new else self._said) < PLAIN_SECONDS:
            return
        self._said = now
        first, began = self._began
        done = [f"{count:,} {self.unit}"] if count else []
        done += [f"{share:.0%}"] if share else []
        done += [f"{(count - first) / (now - began):,.0f} a second"] if count > first else []
        self.say(f"{stage}: {', '.join(done)}" if done else stage)
