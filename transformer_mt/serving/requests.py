"""The body of a request as a checked object, and the work for it, which ends when its client goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import anyio
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request

from transformer_mt.config.problems import add_problem, wanted_value
from transformer_mt.serving.limits import Limits, RequestError

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
_SHOWN = 3  # problems of a body
_FIELDS = 100  # most of a form
_DISCARDED = 8  # times the longest body: so much is read, and discarded
Result = TypeVar("Result")


class Body(BaseModel):
    """The body of a request. An unknown key is an error, and values are not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


Wanted = TypeVar("Wanted", bound=BaseModel)


async def read_body(request: Request, limits: Limits) -> bytes:
    """Raises RequestError if the body is too large. The server limits the time: see `run.PatientProtocol`."""
    too_large = RequestError(
        413, f"the body of a request may have at most {limits.body:,} bytes", {"Connection": "close"}
    )
    length = request.headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit() or len(length) > 15 or int(length) > _DISCARDED * limits.body:
        raise too_large

    body, seen = bytearray(), 0
    async for piece in request.stream():
        seen += len(piece)
        if seen > _DISCARDED * limits.body:
            raise too_large
        if seen <= limits.body:  # the rest is read and discarded, so that the client gets to read the answer
            body += piece
    if seen > limits.body:
        raise too_large
    return bytes(body)


async def read_json(request: Request, wanted: type[Wanted], limits: Limits, or_form: bool = False) -> Wanted:
    """The JSON body of a request. Raises RequestError if it is too large, compressed, not JSON, or has wrong values.

    or_form: it may also be a form, whose numbers are text
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON and not (or_form and kind == FORM):
        form = f", or a form of {FORM}" if or_form else ""
        raise RequestError(415, f"send JSON with the header Content-Type: {JSON}{form}")
    if request.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise RequestError(415, "send the body as it is, without Content-Encoding: it is not unpacked here")
    body = await read_body(request, limits)
    if kind == JSON:
        return validated(from_json_bytes(body), wanted)
    try:
        pairs = parse_qsl(body.decode("utf-8"), True, errors="strict", max_num_fields=_FIELDS)
    except ValueError:
        raise RequestError(400, "the form is not UTF-8, or has too many fields") from None
    pairs = [(name, value) for name, value in pairs if name in wanted.model_fields]
    if len(dict(pairs)) < len(pairs):
        raise RequestError(400, "a field is twice in the form; send a list as JSON")
    return validated(dict(pairs), wanted, are_strings=True)


def from_json_bytes(body: bytes) -> Any:
    """Raises RequestError if this is not JSON."""
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise RequestError(400, f"the body is not JSON: {str(error)[:200]}") from None


def validated(values: Any, wanted: type[Wanted], are_strings: bool = False) -> Wanted:
    """are_strings: whether numbers are given as text. Raises RequestError, which lists the problems."""
    if not isinstance(values, dict):
        raise RequestError(400, "the body must be a JSON object, such as {...}")
    try:
        return wanted.model_validate_strings(values, strict=False) if are_strings else wanted.model_validate(values)
    except ValidationError as error:
        raise RequestError(400, "; ".join(_sentences(error)[:_SHOWN])) from None


def _sentences(error: ValidationError) -> list[str]:
    found: dict[str, int] = {}
    for line, item in enumerate(error.errors(include_url=False)):
        name = str(item["loc"][0])[:40] if item["loc"] else "the body"
        if item["type"] == "missing":
            problem = f"'{name}' is missing"
        elif item["type"] == "extra_forbidden":
            problem = f"unknown key '{name}'"
        else:
            problem = f"'{name}' {wanted_value(item)}"
        add_problem(found, problem, line, " must be ")
    return sorted(found, key=found.__getitem__)


async def answered(request: Request, work: Coroutine[Any, Any, Result], limits: Limits) -> Result:
    """The result of the work, which is cancelled if the client goes away (ClientDisconnect) or if it takes too long.

    The body of the request must have been read. Raises RequestError if it takes too long.
    """
    with anyio.move_on_after(limits.seconds) as scope:
        gone = asyncio.ensure_future(_disconnected(request))
        gone.add_done_callback(lambda _: scope.cancel())
        try:
            return await work
        finally:
            gone.cancel()
    if gone.done() and not gone.cancelled():
        raise ClientDisconnect
    raise RequestError(503, f"this takes longer than {limits.seconds:g} seconds", {"Retry-After": "10"})


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
