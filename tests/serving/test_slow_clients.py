"""Clients that are slow, rude or gone, at a real socket."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing

import pytest

from transformer_mt.decoding.translation import Translation
from transformer_mt.serving import run as running
from transformer_mt.serving.batching import Item, Settings
from transformer_mt.serving.models import Models

BODY = b'{"text": "a cat"}'
HEAD = b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
ASK = HEAD % len(BODY) + BODY
SHORT = {"HEAD_SECONDS": 0.3, "BODY_SECONDS": 0.3, "HEAD_BYTES": 2_000}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short times and few connections."""
    for name, value in SHORT.items():
        monkeypatch.setattr(running, name, value)
    monkeypatch.setattr(running.PatientProtocol, "most_connections", 8)


def connected(port: int, data: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(data)
    return connection


def everything(connection: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    found = b""
    try:
        while piece := connection.recv(65_536):
            found += piece
    except ConnectionResetError:
        pass
    return found


def answer(port: int, data: bytes = ASK) -> bytes:
    with closing(connected(port, data.replace(b"Host: x", b"Host: x\r\nConnection: close"))) as connection:
        return everything(connection)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_request_is_answered_in_one_piece_or_many(port: int) -> None:
    assert answer(port).startswith(b"HTTP/1.1 200")
    with closing(connected(port)) as connection:
        for place in range(len(ASK)):
            connection.sendall(ASK[place : place + 1])
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "data",
    [b"", b"POST /v1/tr", b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n", HEAD % 100 + b"{"],
    ids=["nothing", "half a line", "half a head", "half a body"],
)
def test_a_client_that_does_not_go_on_is_closed(port: int, data: bytes) -> None:
    with closing(connected(port, data)) as connection:
        everything(connection)
    assert answer(port).startswith(b"HTTP/1.1 200")


def test_a_head_without_an_end_is_refused(port: int) -> None:
    with closing(connected(port, b"GET / HTTP/1.1\r\n")) as connection:
        try:
            for number in range(100):
                connection.sendall(b"Header-%d: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" % number)
                time.sleep(0.001)
        except OSError:
            pass
        assert b"431" in everything(connection)[:20]


def test_a_long_head_is_refused_even_if_it_comes_at_once_and_a_long_body_is_not(port: int) -> None:
    long = b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 2_000 + b"\r\nConnection: close\r\n\r\n"
    assert b"431" in answer(port, long)[:20]
    body = b'{"text": "a"}' + b" " * 15_000
    head = b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
    head += b"X: " + b"a" * 1_800 + b"\r\nContent-Length: %d\r\n\r\n" % len(body)
    assert b"200" in answer(port, head + body)[:20]


def test_what_is_not_http_is_refused(port: int) -> None:
    for data in (b"\x16\x03\x01\x00\xa5 TLS", b"HELLO\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
        assert b"400" in answer(port, data)[:20]
    upgrade = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    with closing(connected(port, upgrade)) as connection:
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")


def test_more_connections_than_allowed_are_refused_and_accepted_later(port: int) -> None:
    idle = [connected(port) for _ in range(20)]
    assert any(b"503" in everything(one)[:20] for one in idle)
    for one in idle:
        one.close()
    assert answer(port).startswith(b"HTTP/1.1 200")


def test_a_client_that_goes_away_gives_its_place_free(port: int, models: Models) -> None:
    batcher, started, go = models.served[0].batcher, threading.Event(), threading.Event()
    work, done = batcher.work, list[str]()

    def held(items: Sequence[Item], settings: Settings) -> Sequence[Translation]:
        started.set()
        assert go.wait(30)
        done.extend(item.text for item in items)
        return work(items, settings)

    batcher.work = held
    first = connected(port, ASK)
    assert started.wait(30)
    gone = connected(port, ASK.replace(b"a cat", b"gone!"))
    until(lambda: batcher.waiting == 2)
    gone.close()
    until(lambda: batcher.waiting == 1)
    go.set()
    assert first.recv(65_536).startswith(b"HTTP/1.1 200")
    first.close()
    assert "gone!" not in done


def test_a_pipelined_request_whose_body_comes_later_is_answered(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEAD_SECONDS", "BODY_SECONDS"):  # a busy machine may take longer than the short ones
        monkeypatch.setattr(running, name, 30)
    with closing(connected(port, ASK + HEAD % len(BODY))) as connection:
        found = b""
        while b"translations" not in found:
            piece = connection.recv(65_536)
            assert piece, found
            found += piece
        connection.sendall(BODY)
        connection.settimeout(30)
        while found.count(b'"translations"') < 2:
            piece = connection.recv(65_536)
            assert piece, "closed without the second answer"
            found += piece
