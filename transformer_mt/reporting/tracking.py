"""Sends what a run records to a tracker, in a thread: a tracker that is slow or fails costs the training nothing."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from transformer_mt.config.choices import chosen
from transformer_mt.config.load import flat_values
from transformer_mt.config.schema import Config
from transformer_mt.errors import LONGEST_REASON, first_line
from transformer_mt.files.replace import replace_text
from transformer_mt.reporting.trackers.base import Tracker

FILE = "tracker.json"  # in the folder of a run: its identity in each tracker
_MOST = 2_000  # records that wait; more are left out
CLOSE_SECONDS = 20.0  # at the end of a run, for what waits
Figures = tuple[dict[str, float], "int | None"]


class Tracking:
    """The connection of a run to its tracker. `problem` says once what went wrong."""

    def __init__(self, tracker: Tracker, folder: Path, config: Config) -> None:
        self._tracker, self._folder, self._config = tracker, folder, config
        self._waiting: queue.Queue[Figures | None] = queue.Queue(_MOST)
        self._failed, self._left_out = "", 0
        self._said = False
        self._thread = threading.Thread(target=self._work, name=f"tracker-{tracker.name}", daemon=True)
        self._thread.start()

    @classmethod
    def of(cls, config: Config, folder: Path) -> Tracking | None:
        """For the tracker that a config names; None without one. Raises TmtError if its package is not installed."""
        if config.training.tracker is None:
            return None
        kind, _ = chosen("tracker", config.training.tracker)
        kind.require()
        return cls(kind(), folder, config)

    def record(self, event: str, values: Mapping[str, Any]) -> None:
        """Pass on the numbers of a record. Never waits."""
        if event == "test":
            figures, step = {f"{values['split']}/{key}": value for key, value in values["figures"].items()}, None
        else:
            figures = {f"{event}/{key}": value for key, value in values.items() if is_figure(key, value)}
            step = values.get("step")
        if not figures or self._failed or (step is None and event != "test"):
            return
        try:
            self._waiting.put_nowait((figures, step))
        except queue.Full:
            self._left_out += 1

    def problem(self) -> str:
        """What the user should know, once; empty if all is well."""
        if self._said or not self._failed:
            return ""
        self._said = True
        return f"the tracker {self._tracker.name} has failed, and gets nothing more from this run: {self._failed}"

    def close(self) -> str:
        """Wait a little for what was not sent yet. Returns what the user should know."""
        until = time.monotonic() + CLOSE_SECONDS
        with suppress(queue.Full):
            self._waiting.put(None, timeout=CLOSE_SECONDS if self._thread.is_alive() else 0)
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            return f"the tracker {self._tracker.name} did not take everything within {CLOSE_SECONDS:g} s"
        if self._left_out and not self._failed:
            return (
                f"the tracker {self._tracker.name} was too slow; {self._left_out:,} records are only in metrics.jsonl"
            )
        return self.problem()

    def _work(self) -> None:
        try:
            file, name = self._folder / FILE, self._tracker.name
            known = _identities(file)
            place, title = self._folder, self._config.name
            if place.name != title:  # a trial of a search, or another --run-dir
                title = f"{title}-{place.name}"
            identity = self._tracker.start(place, title, known.get(name, ""), flat_values(self._config))
            if known.get(name) != identity:
                replace_text(file, json.dumps({**known, name: identity}))
            while (figures := self._waiting.get()) is not None:
                self._tracker.log(*figures)
            self._tracker.finish()
        except BaseException as error:  # some trackers end the program
            self._failed = first_line(error)[:LONGEST_REASON]


def _identities(file: Path) -> dict[str, str]:
    with suppress(OSError, ValueError):
        found = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return {str(key): str(value) for key, value in found.items()}
    return {}


def is_figure(key: str, value: Any) -> bool:
    """Whether a value of a record is a number to draw, other than its place."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and key not in ("step", "epoch")
