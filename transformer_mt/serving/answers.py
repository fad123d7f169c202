"""Answers as JSON, errors among them."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json
from starlette.responses import Response

from transformer_mt.serving.limits import RequestError

JSON_UTF8 = "application/json; charset=utf-8"


def json_response(value: Any, status: int = 200) -> Response:
    """A value as JSON. Numbers that JSON does not have, such as an infinite score, become null."""
    return Response(to_json(value, inf_nan_mode="null"), status, media_type=JSON_UTF8)


def error_response(error: RequestError) -> Response:
    """`{"error": "a plain sentence"}`."""
    response = json_response({"error": error.message}, error.status)
    response.headers.update(error.headers)
    return response
