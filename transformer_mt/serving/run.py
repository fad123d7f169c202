"""Runs the application with uvicorn: the socket, slow clients, and an end without loss."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import re
import signal
import socket
import sys
from types import FrameType
from typing import Any, ClassVar

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from transformer_mt.errors import ENDING_SIGNALS, TmtError
from transformer_mt.reporting.notes import note
from transformer_mt.serving.answers import json_response
from transformer_mt.serving.limits import Limits

HEAD_BYTES, HEAD_SECONDS = 65_536, 10.0  # of a request line with its headers
BODY_SECONDS = 60.0
IDLE_SECONDS, WRITE_SECONDS = 15, 30.0  # of a connection between two requests; of a client that does not read
CONNECTIONS = 900  # at once; more are answered with 503. Many systems allow 1,024 open files
_OTHER_FILES = 64  # open files of the program itself
_BACKLOG = 1_024
_AIRPLAY = 5_000  # port of AirPlay Receiver
_HEAD_END = re.compile(rb"[^\r\n]\r?\n\r?\n")


def _refusal(status: str, message: str) -> bytes:
    """A whole answer, for what never becomes a request."""
    body = json_response({"error": message}).body
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close"
    return head.encode() + b"\r\n\r\n" + bytes(body)


_LONG_HEAD = _refusal("431 Request Header Fields Too Large", "the headers are too long")
_MANY = _refusal("503 Service Unavailable", "too many connections; try again later")
_NOT_HTTP = _refusal("400 Bad Request", "this is not a request of HTTP")


def open_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; clients wait until the application runs. port 0: any free one.

    Raises TmtError if the host is unknown, or if the port is in use or not allowed.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError) as error:
        reason = getattr(error, "strerror", error)
        raise TmtError(
            f"the host '{host}' is unknown: {reason}",
            place="--host",
            remedy="Give an address of this machine: 127.0.0.1 for this machine only, 0.0.0.0 for all networks.",
        ) from None
    listening = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # on Windows it would allow two servers on one port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise _refused_socket(error, host, port) from None
    listening.setblocking(False)
    return listening


def _refused_socket(error: OSError, host: str, port: int) -> TmtError:
    if error.errno == errno.EADDRINUSE:
        remedy = f"Stop that program, or use another port:  --port {port + 1 if port < 65_535 else 5001}"
        if sys.platform == "darwin" and port == _AIRPLAY:
            remedy += "\n  On macOS it may be AirPlay Receiver, which System Settings can turn off."
        problem = f"port {port} is in use by another program, perhaps another `tmt serve`"
        return TmtError(problem, place="--port", remedy=remedy)
    if error.errno in (errno.EACCES, errno.EPERM):
        return TmtError(
            f"no permission to use port {port}; ports below 1024 need the rights of an administrator",
            place="--port",
            remedy="Use a port from 1024 on, such as --port 5000, behind a proxy such as nginx.",
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return TmtError(
            f"this machine does not have the address '{host}'",
            place="--host",
            remedy="Use 127.0.0.1 for this machine only, 0.0.0.0 for all networks, or an address that `ip addr` lists.",
        )
    return TmtError(f"cannot listen on {host}, port {port}: {error.strerror or error}", place="--host")


class PatientProtocol(HttpToolsProtocol):
    """HTTP with limits that uvicorn does not have: a head that is long, one or a body that is slow, slow reading."""

    most_connections: ClassVar[int] = CONNECTIONS
    _timer: asyncio.TimerHandle | None = None
    _head = 0  # bytes that have come since the last request had come with all its headers
    _last = b""  # of them the last ones
    _is_head = True

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._close_in(HEAD_SECONDS)
        if len(self.connections) > self.most_connections:
            self._refuse(_MANY)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_head:
            end = _HEAD_END.search(self._last + data)
            self._head, self._last = self._head + (len(data) if end is None else end.start()), (self._last + data)[-4:]
            if self._head > HEAD_BYTES:
                self._refuse(_LONG_HEAD)
                return
        super().data_received(data)
        if self._timer is None and self.cycle is not None and self.cycle.more_body and not self.transport.is_closing():
            self._close_in(BODY_SECONDS)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_head = True
        if self._timer is None:
            self._close_in(HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        self._stop_timer()
        self._is_head, self._head, self._last = False, 0, b""
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._stop_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        # Answered without reading the whole body. With a pipeline, the newest request is not the answered one.
        if self.cycle.more_body and not self.pipeline:
            self.transport.close()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._close_in(WRITE_SECONDS)

    def resume_writing(self) -> None:
        self._stop_timer()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        self._refuse(_NOT_HTTP)

    def _refuse(self, answer: bytes) -> None:
        self.transport.write(answer)
        self.transport.close()

    def _close_in(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Server(uvicorn.Server):
    """Tells the application when it begins to shut down, so that answers without an end can end."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self.force_exit:  # a second Ctrl-C ends requests under way; a traceback for each of them would say no more
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.app.state.stopping.set()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def make_server(app: Starlette, limits: Limits) -> Server:
    """The server, not yet running."""
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # malformed requests are not worth a line each
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        lifespan="on",
        loop="asyncio",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        # so many connections are accepted before one of them can be refused: they must not take all files
        backlog=_BACKLOG if PatientProtocol.most_connections == CONNECTIONS else _OTHER_FILES // 2,
        timeout_graceful_shutdown=int(limits.seconds) + 1,
    )
    return Server(config)


def run(app: Starlette, listening: socket.socket, limits: Limits) -> None:
    """Serve until SIGTERM, Ctrl-C or one of ENDING_SIGNALS; requests under way are answered first."""
    gc.collect()
    gc.freeze()  # the models and PyTorch stay: looking for garbage among them costs almost as much as the HTTP
    PatientProtocol.most_connections = allowed_connections()
    server = make_server(app, limits)
    for kind in ENDING_SIGNALS:
        if signal.getsignal(kind) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(kind, server.handle_exit)
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn repeats the signal when it has ended
        server.run(sockets=[listening])


def allowed_connections() -> int:
    """How many connections may be open at once, after the limit of open files was raised as far as that is allowed."""
    files = _open_files(CONNECTIONS + _OTHER_FILES)
    most = max(1, files - _OTHER_FILES)
    if most < CONNECTIONS:
        note(f"this system allows {files:,} open files, so at most {most:,} connections at once; see `ulimit -n`")
    return most


def _open_files(wanted: int) -> int:
    """How many files this process may open, at most the wanted number; the limit of the system is raised for it."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft < 0 else min(soft, wanted)
