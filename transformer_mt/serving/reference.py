"""The description of the interface: `/openapi.json` for programs, `/docs` for people. Both come from one list.

The page is written here as plain HTML, because Swagger UI would bring megabytes of scripts of others, and needs inline
styles, which the content security policy forbids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any

from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from transformer_mt.serving import inside, runs
from transformer_mt.serving import libretranslate as libre
from transformer_mt.serving import translate_v1 as v1
from transformer_mt.serving.answers import json_response
from transformer_mt.serving.requests import FORM, JSON

_REFS = "#/components/schemas/{model}"


class ErrorAnswer(TypedDict):
    """A request that was not answered."""

    error: str


ERRORS = {
    400: "The request is malformed, or no model translates this",
    403: "The API key is missing or not valid, or the host name is not known",
    404: "There is no such thing",
    413: "The body is too large",
    415: "The body has another content type, or is compressed",
    422: "The request asks for more than the limits allow",
    429: "The queue is full; the header Retry-After says when to try again",
    503: "The translation took too long, or (/health) a model may be stuck, or its GPU has failed",
}
_BODY_ERRORS = (400, 403, 413, 415, 422, 429, 503)


@dataclass(frozen=True)
class Endpoint:
    """One address with its method.

    body, answer: their types; form: whether a form is accepted, too; stream: whether the answer is a stream of events
    """

    method: str
    path: str
    summary: str
    answer: Any
    body: Any = None
    form: bool = False
    errors: tuple[int, ...] = ()
    example: Mapping[str, object] | None = None
    stream: bool = False


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "post",
        "/v1/translate",
        "Translate texts, with n-best lists, scores, tokens and word alignments",
        v1.TranslateAnswer,
        v1.TranslateRequest,
        errors=_BODY_ERRORS,
        example={"text": "...", "n_best": 2},
    ),
    Endpoint("get", "/v1/models", "The served models and the limits of a request", v1.ModelsAnswer, errors=(403,)),
    Endpoint(
        "post",
        "/v1/inside",
        "What one sentence looks like inside a model: pieces, attention of all heads, the tree of the search, shapes",
        inside.InsideAnswer,
        inside.InsideRequest,
        errors=_BODY_ERRORS,
        example={"text": "...", "beam": 4},
    ),
    Endpoint(
        "get",
        "/v1/models/{name}/positions",
        "The positional encodings of a model",
        inside.PositionsAnswer,
        errors=(400, 403, 404, 429),
    ),
    Endpoint("get", "/v1/runs", "The runs, the one with the newest record first", runs.RunsAnswer, errors=(403,)),
    Endpoint("get", "/v1/runs/{name}", "The records of a run", runs.WholeRunAnswer, errors=(403, 404)),
    Endpoint(
        "get",
        "/v1/runs/{name}/events",
        "The records of a run as server-sent events, while it trains: all, more, state, end",
        str,
        errors=(403, 404, 503),
        stream=True,
    ),
    Endpoint(
        "post",
        "/translate",
        "Translate texts or HTML (LibreTranslate)",
        libre.LibreTranslateAnswer,
        libre.LibreTranslateRequest,
        True,
        _BODY_ERRORS,
        {"q": "...", "source": "auto", "target": "..."},
    ),
    Endpoint(
        "post",
        "/detect",
        "The language of a text, among the served ones (LibreTranslate)",
        list[libre.Detected],
        libre.DetectRequest,
        True,
        _BODY_ERRORS,
        {"q": "..."},
    ),
    Endpoint(
        "get",
        "/languages",
        "The languages that are translated from, with those they are translated to (LibreTranslate)",
        list[libre.LanguageAnswer],
        errors=(403,),
    ),
    Endpoint(
        "get", "/frontend/settings", "What a page needs to know (LibreTranslate)", libre.SettingsAnswer, errors=(403,)
    ),
    Endpoint("get", "/health", "Whether the server runs (LibreTranslate)", libre.HealthAnswer, errors=(503,)),
)


@cache
def description() -> dict[str, Any]:
    """The OpenAPI 3.1 description. It does not name the version of the program."""
    types = {one: TypeAdapter(one) for end in ENDPOINTS for one in (end.body, end.answer) if one is not None}
    types[ErrorAnswer] = TypeAdapter(ErrorAnswer)
    names = {one: str(number) for number, one in enumerate(types)}
    bodies = [end.body for end in ENDPOINTS]
    inputs = [(names[one], "validation" if one in bodies else "serialization", types[one]) for one in types]
    schemas, components = TypeAdapter.json_schemas(inputs, ref_template=_REFS)  # type: ignore[arg-type]
    by_type = {one: schemas[names[one], mode] for (_, mode, _), one in zip(inputs, types, strict=True)}  # type: ignore[index]
    paths: dict[str, dict[str, Any]] = {}
    for end in ENDPOINTS:
        paths.setdefault(end.path, {})[end.method] = _operation(end, by_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": "transformer_mt", "version": "1", "description": "Translation by `tmt serve`."},
        "paths": paths,
        "components": {
            "schemas": components.get("$defs", {}),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def _operation(end: Endpoint, by_type: Mapping[Any, Any]) -> dict[str, Any]:
    content = {runs.EVENTS if end.stream else JSON: {"schema": by_type[end.answer]}}
    responses: dict[str, Any] = {"200": {"description": "The answer", "content": content}}
    for status in end.errors:
        error = {JSON: {"schema": by_type[ErrorAnswer]}}
        responses[str(status)] = {"description": ERRORS[status], "content": error}
    operation: dict[str, Any] = {"summary": end.summary, "responses": responses}
    if names := re.findall(r"{(\w+)}", end.path):
        text = {"type": "string"}
        operation["parameters"] = [{"name": name, "in": "path", "required": True, "schema": text} for name in names]
    if end.body is not None:
        kinds = (JSON, FORM) if end.form else (JSON,)
        operation["requestBody"] = {
            "required": True,
            "content": {kind: {"schema": by_type[end.body]} for kind in kinds},
        }
    return operation


def routes() -> list[Route]:
    """The routes of both forms."""

    async def openapi(request: Request) -> Response:
        return json_response(description())

    async def page(request: Request) -> Response:
        return HTMLResponse(_page())

    return [Route("/openapi.json", openapi, methods=["GET"]), Route("/docs", page, methods=["GET"])]


@cache
def _page() -> str:
    sections = "\n".join(map(_section, ENDPOINTS))
    errors = "".join(f"<tr><td>{status}</td><td>{escape(text)}</td></tr>" for status, text in ERRORS.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>transformer_mt: the interface</title>
<link rel="stylesheet" href="static/reference.css">
</head>
<body>
<main>
<h1>The interface</h1>
<p><a href="./">The page</a> uses it, and <a href="openapi.json">openapi.json</a> describes it for programs.
If the server has keys, send one in the header <code>Authorization: Bearer KEY</code>.</p>
{sections}
<section>
<h2>Errors</h2>
<p>An answer with one of these numbers is <code>{{"error": "what is wrong"}}</code>.</p>
<div class="scroll" tabindex="0" role="group" aria-label="Errors">
<table><thead><tr><th scope="col">status</th><th scope="col">meaning</th></tr></thead>
<tbody>{errors}</tbody></table></div>
</section>
</main>
</body>
</html>
"""


def _section(end: Endpoint) -> str:
    parts = [f"<h2><code>{end.method.upper()} {escape(end.path)}</code></h2>", f"<p>{escape(end.summary)}.</p>"]
    if end.body is not None:
        parts.append(_table(end.body.model_json_schema()))
    if end.example is not None:
        data = escape(json.dumps(end.example))
        call = f"curl -H 'Content-Type: {JSON}' -d '{data}' http://HOST:PORT{escape(end.path)}"
        parts.append(f'<pre tabindex="0"><code>{call}</code></pre>')
    answer = json.dumps(TypeAdapter(end.answer).json_schema(mode="serialization"), indent=1, ensure_ascii=False)
    schema = f'<pre tabindex="0"><code>{escape(answer)}</code></pre>'
    parts.append(f"<details><summary>Answer (JSON schema)</summary>{schema}</details>")
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _table(schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    rows = []
    for name, field in schema["properties"].items():
        default = "required" if name in required else json.dumps(field.get("default"))
        cells = (
            f"<code>{escape(name)}</code>",
            escape(_type(field)),
            escape(default),
            escape(field.get("description", "")),
        )
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    head = "".join(f'<th scope="col">{text}</th>' for text in ("key", "type", "default", "meaning"))
    table = f"<table><caption>Request</caption><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<div class="scroll" tabindex="0" role="group" aria-label="Request">{table}</div>'


def _type(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return " or ".join(map(str, field["enum"]))
    several: Sequence[Mapping[str, Any]] = field.get("anyOf", ())
    if several:
        return " or ".join(map(_type, several))
    limits = [f"from {field['minimum']}"] if "minimum" in field else []
    top = field.get("maximum", field.get("exclusiveMaximum", 0) - 1 if "exclusiveMaximum" in field else None)
    limits += [f"to {top}"] if top is not None else []
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    return " ".join([str(field.get("type", "")), *limits])
