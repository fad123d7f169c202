"""The tiny random model behind the application, and a client for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from starlette.applications import Starlette

from transformer_mt.decoding.computing import Computing
from transformer_mt.serving.app import make_app
from transformer_mt.serving.limits import Limits
from transformer_mt.serving.models import Models, load_models
from transformer_mt.serving.run import make_server, open_socket

LIMITS = Limits(body=20_000, characters=2_000, sentences=50, queue=200, seconds=30)
Result = TypeVar("Result")


class Client:
    """Sends requests to an application in this process, one at a time or with `run`."""

    def __init__(self, app: Starlette) -> None:
        self.app = app
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://test")
        self._loop = asyncio.new_event_loop()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._loop.run_until_complete(asyncio.wait_for(work, 120))

    def request(self, method: str, path: str, **given: Any) -> httpx.Response:
        return self.run(self.http.request(method, path, **given))

    def get(self, path: str, **given: Any) -> httpx.Response:
        return self.request("GET", path, **given)

    def post(self, path: str, **given: Any) -> httpx.Response:
        return self.request("POST", path, **given)

    def close(self) -> None:
        self.run(self.http.aclose())
        self._loop.close()


@pytest.fixture
def models(tiny_model: Path) -> Models:
    """The tiny model, English to German, with a queue of its own."""
    return load_models([tiny_model], LIMITS, Computing("cpu", 1))


@pytest.fixture
def client_of(models: Models) -> Iterator[Callable[..., Client]]:
    """A client of an application with these settings of `make_app`."""
    opened: list[Client] = []

    def make(**settings: Any) -> Client:
        settings.setdefault("limits", LIMITS)
        opened.append(Client(make_app(models, **settings)))
        return opened[-1]

    yield make
    for client in opened:
        client.run(models.close())
        client.close()


@pytest.fixture
def client(client_of: Callable[..., Client]) -> Client:
    return client_of()


@pytest.fixture
def port(models: Models) -> Iterator[int]:
    """The port of a server in a thread."""
    with open_socket("127.0.0.1", 0) as listening:
        server = make_server(make_app(models, LIMITS), LIMITS)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join(60)
    assert not thread.is_alive()
