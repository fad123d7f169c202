"""The runs that the page's tab "Runs" shows: a list, and the records of one, live while it trains.

Records are sent as server-sent events: `all` replaces what the client knows, `more` adds to it, `state` says how the
run is, and `end` comes last when the run is finished. A client that goes away, or a server that stops, ends the stream.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from typing_extensions import TypedDict

from transformer_mt.config.load import CONFIG, load_config
from transformer_mt.config.runs import METRICS
from transformer_mt.errors import TmtError
from transformer_mt.reporting.history import Follower, Record, points
from transformer_mt.serving.answers import json_response
from transformer_mt.serving.limits import RequestError

EVENTS = "text/event-stream"
STREAMS = 100  # most at the same time
LOOK = 1.0  # seconds between two looks at a file
HEARTBEAT = 15.0  # seconds without news, after which a comment shows that the stream is alive
QUIET = 60.0  # seconds without a record, after which a run may have been stopped
POINTS = 1500  # most of a training curve that are sent at once
SHOWN = {  # what the page draws of each event
    "step": ("loss", "learning_rate", "tokens_per_second"),
    "validation": ("loss", "train_loss", "perplexity", "bleu", "seconds", "best", "samples"),
    "finished": ("reason", "seconds"),
    "resumed": (),
}


class RunAnswer(TypedDict):
    """A run. state: training, finished or quiet; updated: time of its newest record, in seconds since 1970."""

    name: str
    state: str
    updated: float | None
    step: int
    epoch: int | None
    best_loss: float | None
    best_bleu: float | None
    source: str | None
    target: str | None
    max_epochs: int | None


class RunsAnswer(TypedDict):
    """All runs."""

    runs: list[RunAnswer]


class WholeRunAnswer(RunAnswer):
    """A run with its records: losses, validations with sample translations, and its end."""

    records: list[dict[str, Any]]


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
        self._followers = {name: one for name, one in self._followers.copy().items() if name in names}
        found = [self.summary(name, self.records(name)) for name in names]
        return sorted(found, key=lambda run: run["updated"] or 0, reverse=True)

    def whole(self, name: str) -> dict[str, Any]:
        """What is known of a run, and its records. Raises RequestError if there is no such run."""
        self.check(name)
        records = self.records(name)
        return {**self.summary(name, records), "records": shown(thinned(records))}

    def records(self, name: str) -> list[Record]:
        """The records of a run; the same list as before if there are no new ones."""
        return self._followers.setdefault(name, Follower(self.folder / name / METRICS)).records()

    def check(self, name: str) -> None:
        """Raises RequestError if there is no such run. A name is only compared with those of the folders."""
        if name not in self._names():
            raise RequestError(404, "no run has this name; GET /v1/runs lists them")

    def _names(self) -> list[str]:
        with suppress(OSError):
            return [one.name for one in self.folder.iterdir() if (one / METRICS).is_file()]
        return []

    def summary(self, name: str, records: Sequence[Record]) -> dict[str, Any]:
        last = records[-1] if records else {}
        validations = [one for one in records if one.get("event") == "validation"]
        losses, bleus = points(validations, "validation", "loss")[1], points(validations, "validation", "bleu")[1]
        return {
            "name": name,
            "state": self.state(name, records),
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
                sides = {"source": config.data.source_language, "target": config.data.target_language}
                self._described[name] = changed, {**sides, "max_epochs": config.training.max_epochs}
            return self._described[name][1]
        except (OSError, TmtError):
            return {"source": None, "target": None, "max_epochs": None}

    async def events(self, name: str, stopping: asyncio.Event) -> AsyncIterator[str]:
        """What happens in a run, from its beginning until it is finished or the server stops."""
        self.streams += 1
        try:
            sent: list[Record] | None = None
            state, beat = "", time.monotonic()
            while not stopping.is_set():
                sent, state, news = await asyncio.to_thread(self._news, name, sent, state)
                for text in news:
                    yield text
                if state == "finished":
                    yield event("end", {})
                    return
                if time.monotonic() - beat > HEARTBEAT:
                    beat = time.monotonic()
                    yield ": still here\n\n"
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(stopping.wait(), self.look)
        finally:
            self.streams -= 1

    def _news(self, name: str, sent: list[Record] | None, state: str) -> tuple[list[Record], str, list[str]]:
        """The records and the state of a run, and the events for a client who knows those that were sent."""
        records, news = self.records(name), list[str]()
        now = self.state(name, records)
        if records is sent and now == state:
            return records, state, news
        if sent is None or records[: len(sent)] != sent:
            news.append(event("all", shown(thinned(records))))
        elif len(records) > len(sent):
            news.append(event("more", shown(records[len(sent) :])))
        return records, now, [*news, event("state", self.summary(name, records))]

    def state(self, name: str, records: Sequence[Record]) -> str:
        """See `state_of`."""
        written = 0.0
        with suppress(OSError):
            written = (self.folder / name / METRICS).stat().st_mtime
        return state_of(records, time.time(), written)

    def check_streams(self) -> None:
        """Raises RequestError if there are too many streams."""
        if self.streams >= STREAMS:
            raise RequestError(503, "too many pages follow runs at the moment", {"Retry-After": "10"})


def routes(folder: Path, look: float = LOOK) -> list[Route]:
    """The runs in a folder. look: seconds between two looks at a file."""
    runs = Runs(folder, look)

    async def list_runs(request: Request) -> Response:
        return json_response({"runs": await asyncio.to_thread(runs.listed)})

    async def show_run(request: Request) -> Response:
        return json_response(await asyncio.to_thread(runs.whole, request.path_params["name"]))

    async def follow_run(request: Request) -> Response:
        name = request.path_params["name"]
        await asyncio.to_thread(runs.check, name)
        runs.check_streams()
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        stream = runs.events(name, request.app.state.stopping)
        return StreamingResponse(stream, media_type=EVENTS, headers=headers)

    return [
        Route("/v1/runs", list_runs, methods=["GET"]),
        Route("/v1/runs/{name}", show_run, methods=["GET"]),
        Route("/v1/runs/{name}/events", follow_run, methods=["GET"]),
    ]


def state_of(records: Sequence[Record], now: float, written: float = 0.0) -> str:
    """finished, training, or quiet: no record for a minute, and for three times the longest pause so far.

    A run that was killed and one that computes something long look the same from here.

    written: when something was written last, for a run without records
    """
    if records and records[-1].get("event") == "finished":
        return "finished"
    times = [one["time"] for one in records[-200:] if isinstance(one.get("time"), (int, float))]
    pauses = [after - before for before, after in pairwise(times)]
    longest = min(max(pauses, default=0.0), 3600.0)
    return "training" if now - (times[-1] if times else written) < max(QUIET, 3 * longest) else "quiet"


def shown(records: Sequence[Record]) -> list[Record]:
    """The records that the page draws, without the rest of their values."""
    return [
        {"event": name, "step": record["step"], "epoch": record.get("epoch"), "time": record.get("time")}
        | {key: record[key] for key in SHOWN[name] if key in record}
        for record in records
        if (name := record.get("event")) in SHOWN
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


def event(name: str, data: Mapping[str, Any] | Sequence[Any]) -> str:
    """A server-sent event. JSON has no line breaks, so the data is one line. NaN and infinity become null."""
    return f"event: {name}\ndata: {to_json(data, inf_nan_mode='null').decode()}\n\n"
