"""What happened in a run: the records of metrics.jsonl, as if it had never been interrupted."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer_mt.config.runs import METRICS
from transformer_mt.errors import TmtError, number_of
from transformer_mt.reporting.notes import note

Record = dict[str, Any]
_LATEST = 1e11  # seconds since 1970
_HUGE = 1e300  # not a loss; also the limit of whole numbers, which float() refuses from about 1.8e308
_MARK = 64  # last bytes that were read of a file, to notice that it is another one now


def read_history(file: Path) -> list[Record]:
    """The records of a run in order, without those that a resumed run made again.

    A line that is not a record is skipped: the last line of a killed run may be incomplete.
    Raises TmtError if there is no such file.
    """
    return _history(file).records()


def records_of(run: Path) -> list[Record]:
    """As `read_history`, of a run, with a note if lines are damaged. Raises TmtError if it has no such file."""
    if not run.is_dir():
        raise TmtError("no such run folder", place=run, remedy="Check the path; `ls runs` lists your runs.")
    history = _history(run / METRICS)
    if lines := history.damaged:  # one for each time that the run was killed while it wrote
        note(f"{run / METRICS}: {number_of(lines, 'damaged line')} left out")
    return history.records()


def run_names(runs: Sequence[Path]) -> list[str]:
    """The names of different folders, with parent folders in front if two names are equal."""
    paths = [run.resolve() for run in runs]
    for parts in range(1, max(len(path.parts) for path in paths)):
        names = ["/".join(path.parts[-parts:]) for path in paths]
        if len({*names}) == len(names):
            return names
    return [str(path) for path in paths]


def _history(file: Path) -> History:
    if not file.is_file():
        raise TmtError("no metrics here", place=file, remedy="Give the folder of a run, such as runs/NAME.")
    history = History()
    history.add(file.read_bytes())
    return history


class History:
    """The records of a run, from the lines of its file as they come."""

    def __init__(self) -> None:
        self._kept: list[Record] = []
        self.damaged = 0  # lines that are not JSON, besides the last, which may still be written

    def add(self, lines: bytes) -> None:
        """Add whole lines; those that are not records are skipped."""
        whole = lines.decode("utf-8", errors="replace").split("\n")
        for place, line in enumerate(whole, start=1):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                self.damaged += place < len(whole) and bool(line.strip())
                continue
            if not _is_record(record):
                continue
            while self._kept and self._kept[-1]["step"] > record["step"]:
                self._kept.pop()  # the run went back, and made the later records again
            self._kept.append(record)

    def records(self) -> list[Record]:
        """One record of each event and step, the last one; in the order in which they were written."""
        latest: dict[Any, Record] = {}
        for record in self._kept:
            key = record.get("event"), record["step"]
            latest.pop(key, None)
            latest[key] = record
        return list(latest.values())


def _is_record(value: Any) -> bool:
    """Whether a damaged line has at least the kinds of values that all readers rely on."""
    if not isinstance(value, dict) or not isinstance(value.get("step"), int):
        return False
    time, event = value.get("time", 0.0), value.get("event", "")
    return isinstance(event, str) and isinstance(time, (int, float)) and abs(time) < _LATEST


class Follower:
    """The records of a run that may still be going on. Several threads may ask for them.

    Reads only what was appended since the last call. A file that was replaced or cut is read from its beginning.
    """

    def __init__(self, file: Path) -> None:
        self._file, self._lock = file, threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._history, self._records = History(), list[Record]()
        self._identity: tuple[int, int] | None = None
        self._offset, self._mark = 0, b""

    def records(self) -> list[Record]:
        """The records so far: the same list as before if there are no new ones; empty if there is no file.

        A line counts once it has its line break.
        """
        with self._lock:
            try:
                with self._file.open("rb") as file:
                    lines = self._new_lines(file)
            except OSError:
                if self._identity is not None:
                    self._forget()
                return self._records
            if lines:
                self._history.add(lines)
                self._records = self._history.records()
            return self._records

    def _new_lines(self, file: Any) -> bytes:
        status = os.fstat(file.fileno())
        identity = (status.st_dev, status.st_ino)
        file.seek(self._offset - len(self._mark))
        if identity != self._identity or file.read(len(self._mark)) != self._mark:
            self._forget()
            self._identity = identity
            file.seek(0)
        lines: bytes = file.read()
        lines = lines[: lines.rfind(b"\n") + 1]
        self._offset += len(lines)
        self._mark = (self._mark + lines)[-_MARK:]
        return lines


def points(records: Sequence[Record], event: str, key: str) -> tuple[list[int], list[float]]:
    """Steps and values of one kind of record, only those with a finite number as value."""
    found = [(record["step"], record.get(key)) for record in records if record.get("event") == event]
    kept = [(step, float(value)) for step, value in found if isinstance(value, (int, float)) and abs(value) < _HUGE]
    return [step for step, _ in kept], [value for _, value in kept]
