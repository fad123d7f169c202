"""The runs that the page's tab "Runs" shows: a list, and the records of one, live while it trains.

Records are sent as server-sent events: `all` replaces what the client knows, `more` adds to it, `state` says how the
run is, and `end` comes last when the run is finished. A client that goes away, or a server that stops, ends the stream.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from transformer_mt.config.load import CONFIG, load_config
from transformer_mt.errors import TmtError
from transformer_mt.reporting.curves import METRICS
from transformer_mt.reporting.history import Follower, Record
from transformer_mt.serving.limits import Refusal

STREAMS = 100  # most at the same time
LOOK = 1.0  # seconds between two looks at a file
QUIET = 60.0  # seconds without a record, after which a run may have been stopped
POINTS = 1500  # most of a training curve that are sent at once
SHOWN = {  # what the page draws of each event
    "step": ("loss", "learning_rate", "tokens_per_second"),
    "validation": ("loss", "train_loss", "perplexity", "bleu", "seconds", "best", "samples"),
    "finished": ("reason", "seconds"),
    "resumed": (),
}


class Runs:
    """The runs in a folder, by their names."""

    def __init__(self, folder: Path, look: float = LOOK) -> None:
        """look: seconds between two looks at a file."""
        self.folder, self.look, self.streams = folder, look, 0
        self._followers: dict[str, Follower] = {}
        self._described: dict[str, tuple[float, dict[str, Any]]] = {}

    def listed(self) -> list[dict[str, Any]]:
        """What is known of each run, the one with the newest record first."""
        names = self._names()
        self._followers = {name: one for name, one in self._followers.items() if name in names}
        found = [self.summary(name, self.records(name)) for name in names]
        return sorted(found, key=lambda run: run["updated"] or 0, reverse=True)

    def records(self, name: str) -> list[Record]:
        """The records of a run; the same list as before if there are no new ones."""
        return self._followers.setdefault(name, Follower(self.folder / name / METRICS)).records()

    def check(self, name: str) -> None:
        """Raises Refusal if there is no such run. A name is only compared with those of the folders."""
        if name not in self._names():
            raise Refusal(404, "no run has this name; GET /v1/runs lists them")

    def _names(self) -> list[str]:
        with suppress(OSError):
            return [one.name for one in self.folder.iterdir() if (one / METRICS).is_file()]
        return []

    def summary(self, name: str, records: Sequence[Record]) -> dict[str, Any]:
        last = records[-1] if records else {}
        validations = [one for one in records if one.get("event") == "validation"]
        losses = [one["loss"] for one in validations if isinstance(one.get("loss"), float)]
        bleus = [one["bleu"] for one in validations if isinstance(one.get("bleu"), float)]
        return {
            "name": name,
            "state": state_of(records, time.time()),
            "updated": last.get("time"),
            "step": last.get("step", 0),
            "epoch": validations[-1].get("epoch") if validations else None,
            "best_loss": min(losses, default=None),
            "best_bleu": max(bleus, default=None),
            **self._description(name),
        }

    def _description(self, name: str) -> dict[str, Any]:
        """Languages and planned epochs, from the config; read again when it changes."""
        file = self.folder / name / CONFIG
        try:
            changed = file.stat().st_mtime
            if self._described.get(name, (0.0, {}))[0] != changed:
                config = load_config(file)
                sides = {"source": config.data.source, "target": config.data.target}
                self._described[name] = changed, {**sides, "max_epochs": config.training.max_epochs}
            return self._described[name][1]
        except (OSError, TmtError):
            return {"source": None, "target": None, "max_epochs": None}

    async def events(self, name: str) -> AsyncIterator[dict[str, str]]:
        """What happens in a run, from its beginning, until it is finished.

        Raises Refusal at once, before the first event, if there are too many streams.
        """
        self.streams += 1
        try:
            sent: list[Record] | None = None
            state = ""
            while True:
                records = await asyncio.to_thread(self.records, name)
                if sent is None or records[: len(sent)] != sent:
                    yield _event("all", shown(thinned(records)))
                elif len(records) > len(sent):
                    yield _event("more", shown(records[len(sent) :]))
                sent = records
                if state != (state := state_of(records, time.time())):
                    yield _event("state", self.summary(name, records))
                if state == "finished":
                    yield _event("end", {})
                    return
                await asyncio.sleep(self.look)
        finally:
            self.streams -= 1

    def check_streams(self) -> None:
        """Raises Refusal if there are too many streams."""
        if self.streams >= STREAMS:
            raise Refusal(503, "too many pages follow runs at the moment", {"Retry-After": "10"})


def state_of(records: Sequence[Record], now: float) -> str:
    """finished, training, or quiet: no record for a minute, and for three times the longest pause so far.

    A run that was killed and one that computes something long look the same from here.
    """
    if not records:
        return "training"
    if records[-1].get("event") == "finished":
        return "finished"
    times = [one["time"] for one in records if isinstance(one.get("time"), (int, float))]
    pauses = [after - before for before, after in zip(times[-200:], times[-199:], strict=False)]
    pause = now - (times[-1] if times else 0.0)
    return "training" if pause < max(QUIET, 3 * min(max(pauses, default=0.0), 3600.0)) else "quiet"


def shown(records: Sequence[Record]) -> list[Record]:
    """The records that the page draws, without the rest of their values."""
    return [
        {"event": event, "step": record["step"], "epoch": record.get("epoch"), "time": record.get("time")}
        | {key: record[key] for key in SHOWN[event] if key in record}
        for record in records
        if (event := record.get("event")) in SHOWN
    ]


def thinned(records: Sequence[Record], most: int = POINTS) -> list[Record]:
    """The records; of a long training curve, means over neighbours, so that at most about `most` points are left."""
    steps = [one for one in records if one.get("event") == "step" and isinstance(one.get("loss"), (int, float))]
    width = -(-len(steps) // most)
    if width <= 1:
        return list(records)
    kept: dict[int, Record] = {}
    for start in range(0, len(steps), width):
        some = steps[start : start + width]
        kept[id(some[-1])] = {**some[-1], "loss": sum(one["loss"] for one in some) / len(some)}
    return [kept.get(id(one), one) for one in records if one.get("event") != "step" or id(one) in kept]


def _event(name: str, data: Mapping[str, Any] | Sequence[Any]) -> dict[str, str]:
    return {"event": name, "data": json.dumps(data, ensure_ascii=False)}
