"""Bytes of one file over HTTP, added to what a broken download has left. Knows nothing of checksums."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from transformer_mt.errors import TmtError
from transformer_mt.files.lines import web_page

if TYPE_CHECKING:
    from requests import Response

_PIECE = 1 << 13  # bytes; what has arrived of a piece is lost where the other side falls silent
_NOTHING_LEFT = 416  # HTTP's answer to a request for bytes beyond the end


@dataclass(frozen=True)
class Patience:
    """How long to wait and how often to try. Only tries that brought no byte are counted."""

    tries: int = 4
    pause: float = 1.0  # seconds before the second try, doubled for each further one
    connect: float = 10.0  # seconds
    read: float = 30.0  # seconds between two pieces


USUAL = Patience()


class MissingError(TmtError):
    """The other side answers, and does not have the file."""


class BrokenError(Exception):
    """The connection failed or broke off; trying again may help."""


@dataclass(frozen=True)
class Reception:
    """One file on its way from `address` into `part`. remedy: the next move, for errors."""

    address: str
    part: Path
    remedy: str
    progress: bool = True
    patience: Patience = USUAL

    def have(self) -> int:
        """Bytes that have arrived."""
        return self.part.stat().st_size if self.part.exists() else 0

    def run(self) -> None:
        """Receive all of the file, trying again after every break until `patience` runs out.

        Raises MissingError, and TmtError for all else that stops it; what has arrived then stays.
        """
        failures, most = 0, self.have()
        while True:
            try:
                return self._receive()
            except BrokenError as error:
                failures = 1 if self.have() > most else failures + 1
                most = max(most, self.have())
                if failures >= self.patience.tries:
                    raise TmtError(f"{error}; gave up", place=self.address, remedy=self.remedy) from None
                seconds = self.patience.pause * 2 ** (failures - 1)
                if self.progress:
                    print(f"{self.part.stem}: {error}; trying again in {seconds:g} s", file=sys.stderr)
                time.sleep(seconds)

    def _receive(self) -> None:
        """Ask for what is missing and append it. Raises BrokenError where less arrives than was promised."""
        with self._answer() as response:
            if response.status_code == _NOTHING_LEFT:
                if response.headers.get("Content-Range") != f"bytes */{self.have()}":
                    self.part.unlink(missing_ok=True)
                    raise BrokenError("what had arrived is not a part of this file")
                return
            start = self._start(response)
            length = response.headers.get("Content-Length", "")
            total = start + int(length) if length.isdigit() else None
            self._write(response, start, total)
        if total is not None and self.have() < total:
            raise BrokenError(f"the connection broke off ({self.have():,} bytes of {total:,} have arrived)")

    def _write(self, response: Response, start: int, total: int | None) -> None:
        from tqdm import tqdm

        with (
            self.part.open("ab" if start else "wb") as stream,
            tqdm(
                desc=self.part.stem,
                initial=start,
                total=total,
                unit="B",
                unit_scale=True,
                leave=False,
                disable=None if self.progress else True,  # None: hidden where stderr is no terminal
            ) as bar,
        ):
            for piece in response.raw.stream(_PIECE, decode_content=False):  # a .gz is wanted as it is
                stream.write(piece)
                bar.update(len(piece))

    @contextmanager
    def _answer(self) -> Iterator[Response]:
        """The server's answer to a request for the bytes that are missing. Raises what `run` tells."""
        import requests
        from urllib3.exceptions import HTTPError

        headers = {"Accept-Encoding": "identity"}
        if have := self.have():
            headers["Range"] = f"bytes={have}-"
        timeout = (self.patience.connect, self.patience.read)
        try:
            with requests.get(self.address, headers=headers, stream=True, timeout=timeout) as response:
                self._check_status(response)
                yield response
        except requests.exceptions.SSLError as error:
            raise TmtError(f"no safe connection: {_reason(error)}", place=self.address, remedy=self.remedy) from None
        except (requests.Timeout, requests.ConnectionError, HTTPError) as error:
            arrived = f" ({have:,} bytes have arrived)" if (have := self.have()) else ""
            raise BrokenError(f"cannot fetch from {urlsplit(self.address).netloc}{arrived}: {_reason(error)}") from None
        except requests.RequestException as error:
            raise TmtError(f"this address cannot be used: {error}", place=self.address, remedy=self.remedy) from None

    def _check_status(self, response: Response) -> None:
        status, told = response.status_code, f"HTTP {response.status_code} {response.reason}"
        if status in (404, 410):
            raise MissingError(f"the address does not have this file ({told})", place=self.address, remedy=self.remedy)
        if status in (408, 425, 429) or status >= 500:
            raise BrokenError(f"{urlsplit(self.address).netloc} answers {told}")
        if status not in (200, 206, _NOTHING_LEFT):
            raise TmtError(f"the address refuses ({told})", place=self.address, remedy=self.remedy)
        if response.headers.get("Content-Type", "").startswith("text/html") and status != _NOTHING_LEFT:
            raise web_page(self.address, self.remedy)

    def _start(self, response: Response) -> int:
        """Where in the file the answer begins: a server may send what is missing, or all of it again."""
        if response.status_code == 200:
            return 0
        if response.headers.get("Content-Range", "").startswith(f"bytes {self.have()}-"):
            return self.have()
        self.part.unlink(missing_ok=True)
        raise BrokenError("the server sends another part of the file than was asked for")


def _reason(error: BaseException) -> str:
    """What the operating system said, deep inside; libraries wrap it several times."""
    if "timed out" in str(error).lower():
        return "no answer in time"
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, OSError) and inner.strerror:
            return inner.strerror
        inner = inner.__cause__ or inner.__context__
    return "the connection broke off"
