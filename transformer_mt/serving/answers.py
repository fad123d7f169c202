"""Answers as JSON, errors among them."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from transformer_mt.serving.limits import RequestError

JSON_UTF8 = "application/json; charset=utf-8"


def json_response(value: Any, status: int = 200) -> Response:
    """A value as JSON. Infinite scores, which JSON does not have, are not expected."""
    body = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
    return Response(body, status, media_type=JSON_UTF8)


def error_response(error: RequestError) -> Response:
    """`{"error": "a plain sentence"}`."""
    response = json_response({"error": error.message}, error.status)
    response.headers.update(error.headers)
    return response
