"""The description of the interface is right, and its page works without the internet under the strict policy."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urljoin

import pytest
from jsonschema import Draft202012Validator

from tests.serving.conftest import Client
from transformer_mt import __version__

CALLS: list[tuple[str, str, dict[str, Any] | None]] = [
    ("post", "/v1/translate", {"text": ["a cat\n\na dog", "b"], "n_best": 2, "align": True}),
    ("get", "/v1/models", None),
    ("post", "/translate", {"q": ["a", "b"], "source": "auto", "target": "de", "alternatives": 2}),
    ("post", "/translate", {"q": "a", "source": "en", "target": "de"}),
    ("post", "/detect", {"q": "a"}),
    ("get", "/languages", None),
    ("get", "/frontend/settings", None),
    ("get", "/health", None),
]


def resolved(description: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "components": description["components"]}


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
def test_an_answer_is_as_described(client: Client, method: str, path: str, body: dict[str, Any] | None) -> None:
    description = client.get("/openapi.json").json()
    operation = description["paths"][path][method]
    answer = client.request(method.upper(), path, **({"json": body} if body else {}))
    assert answer.status_code == 200
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    Draft202012Validator(resolved(description, schema)).validate(answer.json())
    if body is not None:
        asked = operation["requestBody"]["content"]["application/json"]["schema"]
        Draft202012Validator(resolved(description, asked)).validate(body)


def test_every_route_is_described_but_the_pages(client: Client) -> None:
    described = set(client.get("/openapi.json").json()["paths"])
    routes = {getattr(route, "path", "") for route in client.app.routes}
    assert described <= routes
    assert routes - described <= {"/", "/docs", "/openapi.json", "/static", "/metrics"}


def test_the_description_does_not_name_a_version(client: Client) -> None:
    assert __version__ not in client.get("/openapi.json").text


def test_the_page_names_every_address_and_needs_nothing_from_elsewhere(client: Client) -> None:
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    for path in client.get("/openapi.json").json()["paths"]:
        assert f"{path}</code>" in page.text
    assert "<script" not in page.text
    assert page.text.count("<th") == page.text.count('<th scope="col"') + page.text.count("<thead>")
    assert page.text.count("<pre") == page.text.count('<pre tabindex="0"'), "what scrolls can be scrolled with keys"
    assert not re.search(r"\sstyle=|<style|https?://(?!HOST)", page.text)
    for address in re.findall(r'(?:href|src)="([^"]+)"', page.text):
        assert not address.startswith("/"), "a proxy may serve the page under a path of its own"
        assert client.get(urljoin("/docs", address)).status_code == 200, address
