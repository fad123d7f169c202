"""The ASGI application: all routes, the page, and what every answer has in common."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transformer_mt.config.runs import RUNS
from transformer_mt.serving import inside, libretranslate, reference, runs, translate_v1
from transformer_mt.serving.answers import error_response
from transformer_mt.serving.keys import Keys
from transformer_mt.serving.limits import Limits, RequestError
from transformer_mt.serving.metrics import TYPE, Metrics
from transformer_mt.serving.models import Models

PAGE = Path(__file__).parent / "page"
ALWAYS = "/health"  # answered under every name: probes come with an address, and it says nothing of use to a page
NEEDS_KEY = ("/v1/", "/metrics")  # paths that are refused without a key; LibreTranslate's may have it in their body
_POLICY = (
    "default-src 'self'; connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'"
)
SECURITY = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_MISTAKE = RequestError(500, "the server made a mistake; its operator finds it in the log")
_log = logging.getLogger(__name__)
SAME_ORIGIN = (b"cross-origin-resource-policy", b"same-origin")


def make_app(
    models: Models,
    limits: Limits | None = None,
    keys: Keys | None = None,
    hosts: Collection[str] | None = None,
    origins: Collection[str] = (),
    runs_folder: Path = RUNS,
) -> Starlette:
    """The ASGI application that serves these models. The server must support ASGI's lifespan, which stops the threads.

    hosts:       names in the header Host that are answered; None: all
    origins:     of other pages whose scripts may read the answers (CORS); "*" for all
    runs_folder: whose runs the page shows
    `app.state.stopping` is an asyncio.Event that is set when the server begins to shut down: an answer without an end
    must end then.
    """
    limits, keys, metrics = limits or Limits(), keys or Keys(), Metrics()
    for one in {one.name: one for one in models.served}.values():  # directions of a model share a queue
        one.batcher.observe = metrics.batch_observer(one.name)
        metrics.watch_batch(one.name, lambda batcher=one.batcher: batcher.running)  # type: ignore[misc]
        metrics.name_model(one.name, one.translator.fingerprint)
        metrics.watch_queue(one.name, lambda batcher=one.batcher: batcher.waiting)  # type: ignore[misc]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            app.state.stopping.set()
            await models.close()

    async def numbers(request: Request) -> Response:
        return Response(metrics.text(), headers={"Content-Type": TYPE})

    routes: list[BaseRoute] = [
        *translate_v1.routes(models, limits),
        *inside.routes(models, limits),
        *runs.routes(runs_folder),
        *libretranslate.routes(models, limits, keys),
        *reference.routes(),
        Route("/metrics", numbers, methods=["GET"]),
        Route("/", _index, methods=["GET"]),
        Mount("/static", StaticFiles(directory=PAGE)),
    ]
    paths = {id(route.endpoint): route.path for route in routes if isinstance(route, Route)}
    middleware = [Middleware(Frame, keys=keys, metrics=metrics, paths=paths, hosts=hosts, origins=origins)]
    if origins:
        headers = ["Authorization", "Content-Type"]
        cors = Middleware(CORSMiddleware, allow_origins=list(origins), allow_methods=["*"], allow_headers=headers)
        middleware.insert(0, cors)
    app = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={HTTPException: _refused_by_starlette, ClientDisconnect: _nobody_there},
        lifespan=lifespan,
    )
    app.state.stopping = asyncio.Event()
    return app


async def _index(request: Request) -> Response:
    return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})


class Frame:
    """What all requests have in common: the header Host, the key, the headers for safety, and that they are counted."""

    def __init__(
        self,
        app: ASGIApp,
        keys: Keys,
        metrics: Metrics,
        paths: dict[int, str],
        hosts: Collection[str] | None,
        origins: Collection[str],
    ) -> None:
        self.app, self.keys, self.metrics, self.paths, self.hosts = app, keys, metrics, paths, hosts
        self.origins = origins
        self.added = SECURITY if origins else (*SECURITY, SAME_ORIGIN)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status, started = time.perf_counter(), 500, False

        async def send_framed(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                message["headers"] = [*message["headers"], *self.added]
            await send(message)

        try:
            self._check(HTTPConnection(scope))
            # Nothing here is worth a part of it, and Starlette answers a wrong range in plain text.
            scope["headers"] = [one for one in scope["headers"] if one[0] != b"range"]
            await self.app(scope, receive, send_framed)
        except RequestError as error:
            if started:
                raise
            await error_response(error)(scope, receive, send_framed)
        except Exception:
            now = datetime.now().astimezone().isoformat(timespec="seconds")
            path = quote(scope["path"][:200], errors="replace")
            _log.exception("%s %s %s: a request failed", now, _method(scope), path)
            if started:  # the client must not take half an answer for a whole one
                raise
            await error_response(_MISTAKE)(scope, receive, send_framed)
        finally:
            path = self.paths.get(id(scope.get("endpoint")), "other")
            self.metrics.answered(path, _method(scope), status, time.perf_counter() - start)

    def _check(self, connection: HTTPConnection) -> None:
        """Raises RequestError if the host is not one of ours, for a page of another site, or if a key is missing."""
        if self.hosts is not None and connection.scope["path"] != ALWAYS:
            host = connection.headers.get("host", "")
            name = host if host.endswith("]") else host.rpartition(":")[0] or host
            if name.lower().strip("[]") not in self.hosts:  # a page of another site whose name leads here
                raise RequestError(403, "this server does not answer under this name; its operator can --allow-host it")
        is_foreign = connection.headers.get("sec-fetch-site") == "cross-site" and connection.scope["method"] == "POST"
        if is_foreign and not {"*", connection.headers.get("origin", "null")} & {*self.origins}:
            raise RequestError(403, "pages of other sites may not use this server without --allow-origin")
        if connection.scope["path"].startswith(NEEDS_KEY):
            self.keys.check(connection)


def _method(scope: Scope) -> str:
    """The method, as one of a few."""
    return scope["method"] if scope["method"] in ("GET", "POST", "HEAD", "OPTIONS") else "other"


async def _refused_by_starlette(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentences = {404: "there is nothing at this address", 405: "this address does not accept this method"}
    message = sentences.get(error.status_code, "this request cannot be answered")
    return error_response(RequestError(error.status_code, message, error.headers))


async def _nobody_there(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # nobody reads it
