"""The ASGI application: all routes, the page, and what every answer has in common."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transformer_mt.decoding.finding import RUNS
from transformer_mt.serving import inside, libretranslate, runs, translate_v1
from transformer_mt.serving.answers import error_response
from transformer_mt.serving.keys import Keys
from transformer_mt.serving.limits import Limits, RequestError
from transformer_mt.serving.models import Models

PAGE = Path(__file__).parent / "page"
SECURITY = [
    (b"content-security-policy", b"default-src 'self'; connect-src 'self'; object-src 'none'; base-uri 'none';"
     b" form-action 'self'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]  # fmt: skip


def make_app(
    models: Models, limits: Limits | None = None, keys: Keys | None = None, runs_folder: Path = RUNS
) -> Starlette:
    """The ASGI application that serves these models, and shows the runs in a folder.

    It needs the lifespan protocol to stop its threads. `app.state.stopping` is an asyncio.Event that is set when the
    server begins to shut down: a response that would never end must end then.
    """
    limits, keys = limits or Limits(), keys or Keys()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            app.state.stopping.set()
            await models.close()

    async def index(request: Request) -> Response:
        return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})

    routes: list[BaseRoute] = [
        *translate_v1.routes(models, limits),
        *libretranslate.routes(models, limits),
        *inside.routes(models, limits),
        *runs.routes(runs_folder),
        Route("/", index, methods=["GET"]),
        Mount("/static", StaticFiles(directory=PAGE)),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Frame, keys=keys)],
        exception_handlers={
            RequestError: _refused,
            HTTPException: _refused_by_starlette,
            ClientDisconnect: _nobody_there,
            Exception: _failed,
        },
        lifespan=lifespan,
    )
    app.state.stopping = asyncio.Event()
    return app


class Frame:
    """What all requests and answers have in common: the key, and the headers for safety."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self.app, self.keys = app, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *SECURITY]
            await send(message)

        if scope["path"].startswith("/v1/"):
            try:
                self.keys.check(Request(scope))
            except RequestError as error:
                await error_response(error)(scope, receive, send_with_headers)
                return
        await self.app(scope, receive, send_with_headers)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return error_response(error)


async def _refused_by_starlette(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentences = {404: "there is nothing at this address", 405: "this address does not accept this method"}
    message = sentences.get(error.status_code, "this request cannot be answered")
    return error_response(RequestError(error.status_code, message, error.headers))


async def _nobody_there(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # nobody reads it


async def _failed(request: Request, error: Exception) -> Response:
    return error_response(RequestError(500, "the server made a mistake; its operator finds it in the log"))
