"""What is malformed, too large or forbidden gets a plain sentence, a number from 400 to 499, and nothing more."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any

import httpx
import pytest

from tests.serving.conftest import Client
from transformer_mt import __version__
from transformer_mt.serving.batching import Batcher
from transformer_mt.serving.keys import Keys
from transformer_mt.serving.limits import Limits
from transformer_mt.serving.models import Models
from transformer_mt.serving.start import Address

JSON = {"Content-Type": "application/json"}
BODIES = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": b"[1]",
    "a number": b"1e999999",
    "not a number": b'{"text": NaN}',
    "a large number": b'{"text": "a", "n_best": ' + b"9" * 9_000 + b"}",
    "a small number": b'{"text": "a", "n_best": -1e400}',
    "half a number": b'{"text": "a", "n_best": 1.5}',
    "a number as text": b'{"text": 5}',
    "wrong UTF-8": b'{"text": "\xff\xfe"}',
    "half a pair": b'{"text": "\\ud800"}',
    "deep lists": b'{"text": ' + b"[" * 9_000 + b"]" * 9_000 + b"}",
    "deep objects": b'{"a":' * 3_000 + b"1" + b"}" * 3_000,
    "an unknown key": b'{"text": "a", "cheat": true}',
    "a list in a list": b'{"text": [["a"]]}',
    "null": b'{"text": null}',
    "zeros": b"\0" * 100,
}


def refused(answer: httpx.Response, *statuses: int) -> str:
    """The sentence of an answer that says no, which gives nothing away."""
    assert answer.status_code in (statuses or (400,)), answer.text
    assert answer.headers["content-type"].startswith("application/json")
    assert set(answer.json()) == {"error"}
    sentence = str(answer.json()["error"])
    assert not re.search(r"Traceback|\.py|/site-packages|0x[0-9a-f]{6}|pydantic|starlette", sentence), sentence
    assert __version__ not in sentence
    assert 5 < len(sentence) < 500
    return sentence


@pytest.mark.parametrize("path", ["/v1/translate", "/translate", "/detect"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_malformed_body_is_refused(client: Client, path: str, body: bytes) -> None:
    refused(client.post(path, content=body, headers=JSON))


@pytest.mark.parametrize("path", ["/translate", "/detect"])
@pytest.mark.parametrize("body", [b"q=%ff", b"\xff", b"&".join(b"a%d=1" % n for n in range(200)), b"q=a&q=b"])
def test_a_malformed_form_is_refused(client: Client, path: str, body: bytes) -> None:
    refused(client.post(path, content=body, headers={"Content-Type": "application/x-www-form-urlencoded"}))


@pytest.mark.parametrize("kind", ["", "text/plain", "multipart/form-data; boundary=x", "application/xml", "\xff"])
def test_another_content_type_is_refused(client: Client, kind: str) -> None:
    headers = [(b"Content-Type", kind.encode("latin-1"))]
    sentence = refused(client.post("/v1/translate", content=b'{"text": "a"}', headers=headers), 415)
    assert "Content-Type: application/json" in sentence
    sentence = refused(client.post("/translate", content=b'{"q": "a"}', headers=headers), 415)
    assert sentence.endswith("Content-Type: application/json, or a form of application/x-www-form-urlencoded")


@pytest.mark.parametrize("path", ["/v1/translate", "/translate", "/detect"])
def test_a_compressed_body_is_refused_by_name(client: Client, path: str) -> None:
    packed = gzip.compress(b'{"text": "a"}')
    assert "Content-Encoding" in refused(
        client.post(path, content=packed, headers={**JSON, "Content-Encoding": "gzip"}), 415
    )
    plain = {**JSON, "Content-Encoding": "identity"}
    assert client.post("/v1/translate", content=b'{"text": "a"}', headers=plain).status_code == 200


def test_the_last_of_equal_keys_counts(client: Client) -> None:
    answer = client.post("/v1/translate", content=b'{"text": "a", "text": "b"}', headers=JSON)
    assert answer.json()["translations"][0]["lines"][0]["source"] == "b"


def test_a_large_body_is_refused_with_and_without_its_length(client: Client) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(30):
            yield b" " * 1_000

    assert "20,000 bytes" in refused(client.post("/v1/translate", content=b" " * 20_001, headers=JSON), 413)
    assert "20,000 bytes" in refused(client.post("/v1/translate", content=pieces(), headers=JSON), 413)
    headers = {**JSON, "Content-Length": "9" * 30}
    refused(client.post("/v1/translate", content=b"{}", headers=headers), 413)


@pytest.mark.parametrize(
    ("path", "key"), [("/v1/translate", "text"), ("/translate", "q")], ids=["v1", "LibreTranslate"]
)
def test_too_many_characters_texts_or_sentences_are_refused(client: Client, path: str, key: str) -> None:
    direction = {"source": "en", "target": "de"}
    for text in ("a" * 2_001, ["a" * 1_001] * 2):
        assert "2,000 characters" in refused(client.post(path, json={key: text, **direction}), 422)
    assert "50 sentences" in refused(client.post(path, json={key: "A cat sat. " * 60, **direction}), 422)
    assert "50 texts" in refused(client.post(path, json={key: ["a"] * 51, **direction}), 422)
    assert client.post(path, json={key: "\n" * 1_999, **direction}).status_code == 200


def test_html_has_the_same_limits(client: Client) -> None:
    page = {"q": "<p>A cat sat. " * 60, "source": "en", "target": "de", "format": "html"}
    assert "50 sentences" in refused(client.post("/translate", json=page), 422)


def test_a_full_queue_is_429_and_a_slow_model_503(client_of: Callable[..., Client], models: Models) -> None:
    client = client_of(limits=Limits(queue=1_000, seconds=0.2))
    batcher = models.served[0].batcher
    batcher.queue = 2
    answer = client.post("/v1/translate", json={"text": ["a"] * 3})
    refused(answer, 429)
    assert int(answer.headers["retry-after"]) >= 1
    hold = asyncio.Event()

    async def never(items: Any, settings: Any) -> Any:
        await hold.wait()

    batcher.translate = never  # type: ignore[method-assign]
    answer = client.post("/v1/translate", json={"text": "a"})
    assert "0.2 seconds" in refused(answer, 503)
    assert "retry-after" in answer.headers


def test_a_mistake_of_the_program_is_one_sentence_for_the_client_and_a_traceback_for_the_operator(
    client: Client, models: Models, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("a secret")

    models.served[0].batcher.work = broken
    before = datetime.now().astimezone().replace(microsecond=0)
    assert "secret" not in refused(client.post("/v1/translate", json={"text": "a"}), 500)
    assert "a secret" in caplog.text
    (entry,) = (one.getMessage() for one in caplog.records)
    when, what = entry.split(" ", 1)
    assert before <= datetime.fromisoformat(when) <= datetime.now().astimezone()
    assert what == "POST /v1/translate: a request failed"


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/static/..%5capp.py",
        "/%00",
        "/v1/",
    ],
)
def test_what_is_not_there_is_404(client: Client, path: str) -> None:
    refused(client.get(path), 404)


def test_another_method_is_405(client: Client) -> None:
    for method, path in (("GET", "/translate"), ("POST", "/languages"), ("DELETE", "/"), ("OPTIONS", "/translate")):
        refused(client.request(method, path), 405)
    assert client.request("HEAD", "/health").status_code == 200
    assert client.request("HEAD", "/").status_code == 200


def test_a_missing_or_wrong_key_is_403(client_of: Callable[..., Client]) -> None:
    client = client_of(keys=Keys(["right"]))
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "right"}, {"Authorization": "Bearer"}):
        for path in ("/v1/models", "/metrics"):
            refused(client.get(path, headers=headers), 403)
        refused(client.post("/v1/translate", content=b"[", headers=headers), 403)
    assert client.get("/v1/models", headers={"Authorization": "bearer right"}).status_code == 200
    assert client.get("/").status_code == 200


def test_on_loopback_only_known_host_names_are_answered(client_of: Callable[..., Client]) -> None:
    client = client_of(hosts={"127.0.0.1", "::1", "localhost"})
    for host in ("127.0.0.1:5000", "localhost", "[::1]:5000", "LOCALHOST:5000"):
        assert client.get("/languages", headers={"Host": host}).status_code == 200
    for host in ("evil.example:5000", "", "127.0.0.1.evil.example", "[::2]"):
        refused(client.get("/languages", headers={"Host": host}), 403)


def test_a_name_with_capital_letters_is_allowed_as_it_is_meant(client_of: Callable[..., Client]) -> None:
    client = client_of(hosts=Address(hosts=("MyHost.example",)).known_hosts())
    for host in ("MyHost.example", "myhost.example:5000"):
        assert client.get("/languages", headers={"Host": host}).status_code == 200


def test_other_sites_are_refused_unless_they_are_allowed(client_of: Callable[..., Client]) -> None:
    headers = {"Origin": "https://a.example"}
    assert "access-control-allow-origin" not in client_of().get("/health", headers=headers).headers
    client = client_of(origins=["https://a.example"], keys=Keys(["key"]))
    assert client.get("/health", headers=headers).headers["access-control-allow-origin"] == "https://a.example"
    other = client.get("/health", headers={"Origin": "https://b.example"})
    assert "access-control-allow-origin" not in other.headers
    asked = {**headers, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    assert client.request("OPTIONS", "/v1/translate", headers=asked).status_code == 200


def test_pages_of_other_sites_cannot_make_it_work(client_of: Callable[..., Client]) -> None:
    """A form needs no permission: the browser sends it, and only hides the answer from the page."""
    form = {"q": "a cat"}
    foreign = {"Origin": "https://a.example", "Sec-Fetch-Site": "cross-site"}
    own = {"Origin": "http://localhost:5000", "Sec-Fetch-Site": "same-origin"}
    for client, headers, status in (
        (client_of(), foreign, 403),
        (client_of(), {"Sec-Fetch-Site": "cross-site"}, 403),
        (client_of(), own, 200),
        (client_of(), {}, 200),
        (client_of(origins=["https://a.example"]), foreign, 200),
        (client_of(origins=["https://b.example"]), foreign, 403),
        (client_of(origins=["*"]), foreign, 200),
    ):
        assert client.post("/detect", data=form, headers=headers).status_code == status
    assert client_of().get("/health", headers=foreign).status_code == 200


def test_where_it_is_open_to_others_only_names_that_are_allowed_are_answered(client_of: Callable[..., Client]) -> None:
    assert Address("0.0.0.0").known_hosts() is None
    client = client_of(hosts=Address("0.0.0.0", hosts=("good.example",)).known_hosts())
    for host in ("good.example:5000", "localhost", "127.0.0.1:5000"):
        assert client.get("/languages", headers={"Host": host}).status_code == 200
    refused(client.get("/languages", headers={"Host": "evil.example"}), 403)


def test_health_is_answered_under_every_name_and_nothing_else_is(client_of: Callable[..., Client]) -> None:
    """Kubernetes and other probes name the address of the container."""
    client, foreign = client_of(hosts={"good.example"}), {"Host": "10.1.2.3:5000"}
    answer = client.get("/health", headers=foreign)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    for path in ("/health/", "/metrics", "/", "/v1/models", "//health"):
        refused(client.get(path, headers=foreign), 403)


def test_a_server_whose_model_is_stuck_is_not_healthy(
    client_of: Callable[..., Client], models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(limits=Limits(seconds=120))
    for seconds, status in ((0.0, 200), (3599.0, 200), (3601.0, 503)):
        monkeypatch.setattr(Batcher, "running", seconds)
        assert client.get("/health").status_code == status
    assert "one batch for 3601 seconds" in refused(client.get("/health"), 503)
    name = models.served[0].name
    assert f'tmt_running_batch_seconds{{model="{name}"}} 3601.0' in client.get("/metrics").text
    assert Limits(seconds=0.1).stuck == 1_800, "a batch may well take many short times"


def test_a_server_whose_gpu_has_failed_is_not_healthy(
    client_of: Callable[..., Client], models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of()

    def fail(*_: Any) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be ...")

    with monkeypatch.context() as broken:
        broken.setattr(models.served[0].batcher, "work", fail)
        assert client.post("/v1/translate", json={"text": "A cat sat."}).status_code == 500
    assert "the GPU has failed" in refused(client.get("/health"), 503)
    assert client.post("/v1/translate", json={"text": "A cat sat."}).status_code == 200
    assert client.get("/health").status_code == 200, "not all errors of a GPU last"


def test_numbers_count_the_requests_without_names_that_clients_make_up(client: Client) -> None:
    client.post("/v1/translate", json={"text": "A cat sat. A dog ran."})
    client.get("/nothing-of-this-name")
    client.request("BREW", "/coffee")
    text = client.get("/metrics").text
    assert 'tmt_requests_total{method="POST",path="/v1/translate",status="200"} 1.0' in text
    assert 'tmt_requests_total{method="other",path="other",status="404"} 1.0' in text
    assert re.search(r'tmt_sentences_total\{model="[^"]+"\} 2.0', text)
    assert "nothing" not in text
    assert "coffee" not in text


def test_answers_have_the_headers_for_safety(client: Client) -> None:
    for path in ("/", "/docs", "/health", "/nothing", "/static/reference.css"):
        headers = client.get(path).headers
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'self'"
        assert policy["frame-ancestors"] == "'none'"
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


@pytest.mark.parametrize("part", ["bytes=abc", "bytes=5-1", "bytes=9999999-", "bytes=0-1,3-4"])
def test_a_range_is_ignored(client: Client, part: str) -> None:
    answer = client.get("/static/app.js", headers={"Range": part})
    assert answer.status_code == 200
    assert answer.text == client.get("/static/app.js").text
