"""The HTTP interface of LibreTranslate, by its documented behaviour, so that programs written for it work here."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from transformer_mt.config.languages import name_of
from transformer_mt.serving.answers import json_response
from transformer_mt.serving.limits import Limits
from transformer_mt.serving.models import Models


def routes(models: Models, limits: Limits) -> list[Route]:
    """The routes of this interface."""

    async def languages(request: Request) -> Response:
        return json_response(languages_of(models))

    async def health(request: Request) -> Response:
        return json_response({"status": "ok"})

    return [Route("/languages", languages, methods=["GET"]), Route("/health", health, methods=["GET"])]


def languages_of(models: Models) -> list[dict[str, object]]:
    """Each source language, with its targets."""
    targets: dict[str, list[str]] = {}
    for one in models.served:
        targets.setdefault(one.source, []).append(one.target)
    return [{"code": code, "name": name_of(code), "targets": some} for code, some in targets.items()]
