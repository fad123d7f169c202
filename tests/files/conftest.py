"""A web server on the loopback that closes connections, ignores ranges, is silent, refuses, or works."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass
class Host:
    """Files and behaviour of a server. Each request uses up one element of `answers` and of `breaks`."""

    files: dict[str, bytes] = field(default_factory=dict)
    supports_ranges: bool = True
    forbids: bool = False
    answers: list[tuple[int, str, bytes]] = field(default_factory=list)  # status, content type, body
    breaks: list[int] = field(default_factory=list)  # bytes after which an answer stops
    stalls: bool = False  # a stopped answer keeps the connection open
    requests: list[tuple[str, str]] = field(default_factory=list)  # path and Range of each request
    address: str = ""
    done: threading.Event = field(default_factory=threading.Event)


def _tag(content: bytes) -> str:
    return f'"{hashlib.md5(content).hexdigest()}"'


class _Handler(BaseHTTPRequestHandler):
    host: Host

    def do_HEAD(self) -> None:
        """As a store answers: size, version, and whether it sends parts of a file. Uses up no answer."""
        content = self.host.files.get(self.path.partition("?")[0].lstrip("/"))
        status = 403 if self.host.forbids else 404 if content is None else 200
        self.send_response(status)
        self.send_header("Content-Length", str(len(content or b"")))
        if content is not None:
            self.send_header("ETag", _tag(content))
        self.send_header("Accept-Ranges", "bytes" if self.host.supports_ranges else "none")
        self.end_headers()

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        self.host.requests.append((self.path, wanted))
        if self.host.answers:
            status, kind, body = self.host.answers.pop(0)
            return self._answer(status, kind, body)
        if self.host.forbids:
            return self._answer(403, "text/plain", b"no")
        content = self.host.files.get(self.path.partition("?")[0].lstrip("/"))
        if content is None:
            return self._answer(404, "text/html", b"<html>not found</html>")
        if not (wanted and self.host.supports_ranges):
            kind = "text/html" if self.path.endswith("/") else "application/gzip"
            return self._answer(200, kind, content, tag=_tag(content))
        begin, _, last = wanted.removeprefix("bytes=").partition("-")
        start, end = int(begin), min(len(content), int(last) + 1 if last else len(content))
        if start >= len(content):
            return self._answer(416, "text/plain", b"", f"bytes */{len(content)}")
        place = f"bytes {start}-{end - 1}/{len(content)}"
        return self._answer(206, "application/gzip", content[start:end], place, _tag(content))

    def _answer(self, status: int, kind: str, body: bytes, place: str = "", tag: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if place:
            self.send_header("Content-Range", place)
        if tag:  # fsspec asks with GET if the answer to HEAD is late
            self.send_header("ETag", tag)
        self.end_headers()
        breaks = self.host.breaks.pop(0) if self.host.breaks and status in (200, 206) else None
        self.wfile.write(body[:breaks])
        if breaks is not None and self.host.stalls:
            self.host.done.wait(10)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def host() -> Iterator[Host]:
    host = Host()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"host": host}))
    host.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield host
    host.done.set()
    server.shutdown()
    thread.join()
    server.server_close()
