"""Download a file over HTTP, continuing from the bytes of an interrupted download. Checksums are verified elsewhere."""

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
from transformer_mt.files.system import redraws
from transformer_mt.files.web_page import web_page

if TYPE_CHECKING:
    from requests import Response

_BLOCK = 1 << 13  # bytes; an incomplete block is lost if the server stops sending
_NOTHING_LEFT = 416  # HTTP status for a range beyond the end


@dataclass(frozen=True)
class RetryPolicy:
    """How long to wait and how often to try. Only tries without any new byte count."""

    tries: int = 4
    pause: float = 1.0  # seconds before the second try, doubled after each try
    connect: float = 10.0  # seconds
    read: float = 30.0  # seconds without data


DEFAULT_RETRIES = RetryPolicy()


class MissingError(TmtError):
    """The server or folder does not have the file."""


class BrokenError(Exception):
    """The connection failed; trying again may help."""


@dataclass(frozen=True)
class HttpDownload:
    """The download of one file from `address` into `part`. remedy: what to do, for errors."""

    address: str
    part: Path
    remedy: str
    retries: RetryPolicy = DEFAULT_RETRIES

    def have(self) -> int:
        """Number of bytes that have arrived."""
        return self.part.stat().st_size if self.part.exists() else 0

    def run(self) -> None:
        """Download the whole file; after a failed connection try again, as often as `retries` says.

        Raises MissingError if the server does not have the file, and TmtError if anything else fails. The bytes that
        have arrived stay in `part`.
        """
        failures, most = 0, self.have()
        while True:
            try:
                return self._receive()
            except BrokenError as error:
                failures = 1 if self.have() > most else failures + 1
                most = max(most, self.have())
                if failures >= self.retries.tries:
                    raise TmtError(f"{error}; gave up", place=self.address, remedy=self.remedy) from None
                seconds = self.retries.pause * 2 ** (failures - 1)
                print(f"{self.part.stem}: {error}; trying again in {seconds:g} s", file=sys.stderr)
                time.sleep(seconds)

    def _receive(self) -> None:
        """Request the missing bytes and append them. Raises BrokenError if fewer bytes arrive than announced."""
        with self._answer() as response:
            if response.status_code == _NOTHING_LEFT:
                if response.headers.get("Content-Range") != f"bytes */{self.have()}":
                    self.part.unlink(missing_ok=True)
                    raise BrokenError("the bytes of an earlier download are not part of this file")
                return
            start = self._start(response)
            length = response.headers.get("Content-Length", "")
            total = start + int(length) if length.isdigit() else None
            self._write(response, start, total)
        if total is not None and self.have() < total:
            raise BrokenError(f"the connection was lost ({self.have():,} of {total:,} bytes have arrived)")

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
                disable=not redraws(sys.stderr),
            ) as bar,
        ):
            for block in response.raw.stream(_BLOCK, decode_content=False):  # keeps a .gz compressed
                stream.write(block)
                bar.update(len(block))

    @contextmanager
    def _answer(self) -> Iterator[Response]:
        """The response to a request for the missing bytes. Raises BrokenError, and the same errors as `run`."""
        import requests
        from urllib3.exceptions import HTTPError

        headers = {"Accept-Encoding": "identity"}
        if have := self.have():
            headers["Range"] = f"bytes={have}-"
        timeout = (self.retries.connect, self.retries.read)
        try:
            with requests.get(self.address, headers=headers, stream=True, timeout=timeout) as response:
                self._check_status(response)
                yield response
        except requests.exceptions.SSLError as error:
            raise TmtError(f"no secure connection: {_reason(error)}", place=self.address, remedy=self.remedy) from None
        except (requests.Timeout, requests.ConnectionError, HTTPError) as error:
            arrived = f" ({have:,} bytes have arrived)" if (have := self.have()) else ""
            raise BrokenError(
                f"cannot download from {urlsplit(self.address).netloc}{arrived}: {_reason(error)}"
            ) from None
        except requests.RequestException as error:
            raise TmtError(f"the request failed: {error}", place=self.address, remedy=self.remedy) from None

    def _check_status(self, response: Response) -> None:
        status, answer = response.status_code, f"HTTP {response.status_code} {response.reason}"
        if status in (404, 410):
            raise MissingError(
                f"the address does not have this file ({answer})", place=self.address, remedy=self.remedy
            )
        if status in (408, 425, 429) or status >= 500:
            raise BrokenError(f"{urlsplit(self.address).netloc} answers {answer}")
        if status not in (200, 206, _NOTHING_LEFT):
            raise TmtError(f"the server refuses the request ({answer})", place=self.address, remedy=self.remedy)
        if response.headers.get("Content-Type", "").startswith("text/html") and status != _NOTHING_LEFT:
            raise web_page(self.address, self.remedy)

    def _start(self, response: Response) -> int:
        """The position of the response in the file. A server may send the missing bytes, or the whole file again."""
        if response.status_code == 200:
            return 0
        if response.headers.get("Content-Range", "").startswith(f"bytes {self.have()}-"):
            return self.have()
        self.part.unlink(missing_ok=True)
        raise BrokenError("the server sends another part of the file than requested")


def _reason(error: BaseException) -> str:
    """The error of the operating system, which libraries wrap several times."""
    if "timed out" in str(error).lower():
        return "no answer in time"
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, OSError) and inner.strerror:
            return inner.strerror
        inner = inner.__cause__ or inner.__context__
    return "the connection was lost"
