"""What an interrupted run has finished: results of workers with the checksums of their files, one JSON line each.

The next run with the same settings and files goes on from there. A result counts only if its line and all of its
files have the same bytes as when they were written, so that neither a killed process nor a lost write can change
prepared data.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from pydantic import TypeAdapter

from transformer_mt.data.parallel import Workers
from transformer_mt.files.checksum import sha256_of

FILE = "journal.jsonl"


class WrittenFile(NamedTuple):
    """A file that a worker has written. size: in bytes."""

    name: str
    size: int
    sha256: str

    def is_unchanged(self, folder: Path) -> bool:
        with suppress(OSError):
            file = folder / self.name
            return file.stat().st_size == self.size and sha256_of(file) == self.sha256
        return False


def write(folder: Path, name: str, content: bytes) -> WrittenFile:
    with (folder / name).open("wb") as file:
        file.write(content)
    return WrittenFile(name, len(content), hashlib.sha256(content).hexdigest())


class Result(Protocol):
    """What a worker returns: a dataclass that can be written as JSON."""

    files: list[WrittenFile]


R = TypeVar("R", bound=Result)


class Task(NamedTuple):
    """Work for one call of a worker. known: the result of an interrupted run as JSON, or None"""

    item: Any
    known: str | None


@dataclass(frozen=True)
class Resuming(Generic[R]):
    """Does the tasks in a worker process, unless their results are known and their files unchanged."""

    work: Callable[[Any], R]
    kind: type[R]
    folder: Path

    @cached_property
    def _json(self) -> TypeAdapter[R]:
        return TypeAdapter(self.kind)

    def __call__(self, task: Task) -> tuple[R, str | None]:
        """The result, and as JSON if it is new."""
        if task.known is not None:
            result = self._json.validate_json(task.known)
            if all(file.is_unchanged(self.folder) for file in result.files):
                return result, None
        result = self.work(task.item)
        return result, self._json.dump_json(result).decode()


@dataclass
class Journal:
    """The journal in a folder. of: what all results depend on; one that was written for something else is emptied."""

    folder: Path
    of: str
    _known: dict[str, tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        file = self.folder / FILE
        content = file.read_bytes() if file.exists() else b""
        header, *lines = content.split(b"\n")
        if header != _header(self.of):
            lines = []
        end = len(_header(self.of)) + 1
        for line in lines[:-1]:
            checksum, _, entry = line.partition(b" ")
            if checksum != _checksum(entry):  # the process was killed while it wrote this line, or the disk lost a part
                break
            name, identity, result = json.loads(entry)
            self._known[name] = identity, result
            end += len(line) + 1
        if header == _header(self.of) and len(content) >= end:
            with file.open("r+b") as opened:
                opened.truncate(end)
        else:
            file.write_bytes(_header(self.of) + b"\n")

    def map(
        self, workers: Workers, work: Callable[[Any], R], kind: type[R], items: Iterable[tuple[str, Any]], identity: str
    ) -> Iterator[R]:
        """work(item) for each named item, in order, or its result from an interrupted run.

        kind: the dataclass of the results; identity: what they depend on besides `of`
        """

        def tasks() -> Iterator[Task]:
            for name, item in items:
                known, result = self._known.get(name, ("", None))
                names.append(name)
                yield Task(item, result if known == identity else None)

        names: list[str] = []
        for number, (result, new) in enumerate(workers.map(Resuming(work, kind, self.folder), tasks())):
            if new is not None:
                entry = json.dumps([names[number], identity, new]).encode()
                with (self.folder / FILE).open("ab") as file:
                    file.write(_checksum(entry) + b" " + entry + b"\n")
            yield result


def is_journal_of(folder: Path, of: str) -> bool:
    """Whether a folder has a journal with results that this run can use."""
    return _beginning(folder) == (_header(of) + b"\n", True)


def has_results(folder: Path) -> bool:
    """Whether a folder has a journal with results, of whatever run."""
    return _beginning(folder)[1]


def _beginning(folder: Path) -> tuple[bytes, bool]:
    """The first line of a journal, and whether others follow."""
    try:
        with (folder / FILE).open("rb") as file:
            return file.readline(), bool(file.readline())
    except OSError:
        return b"", False


def _checksum(entry: bytes) -> bytes:
    return hashlib.sha256(entry).hexdigest().encode()


def _header(of: str) -> bytes:
    return json.dumps([of, platform.python_version(), _program()]).encode()


@cache
def _program() -> str:
    """A hash of the source code that results depend on: another version must not go on from them."""
    digest, package = hashlib.sha256(), Path(__file__).parents[1]
    for file in sorted(
        file for room in ("corpora", "data", "files", "text") for file in (package / room).rglob("*.py")
    ):
        digest.update(file.read_bytes())
    return digest.hexdigest()
