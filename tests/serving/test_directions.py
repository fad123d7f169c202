"""A model of several directions behind the application: each of them is offered and answers, with one queue."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serving.conftest import LIMITS, Client
from transformer_mt.decoding.computing import Computing
from transformer_mt.serving.app import make_app
from transformer_mt.serving.models import Models, load_models
from transformer_mt.workflows.engines import load_model

DIRECTIONS = [("ko", "en"), ("en", "ko"), ("en", "de"), ("de", "en")]


@pytest.fixture
def many(many_model: Path) -> Models:
    return load_models([many_model], LIMITS, Computing("cpu", 1))


@pytest.fixture
def client(many: Models) -> Iterator[Client]:
    client = Client(make_app(many, limits=LIMITS))
    yield client
    client.run(many.close())
    client.close()


def test_every_direction_is_offered(client: Client, many: Models) -> None:
    offered = [(one["source"], one["target"]) for one in client.get("/v1/models").json()["models"]]
    assert offered == DIRECTIONS
    targets = {one["code"]: one["targets"] for one in client.get("/languages").json()}
    assert targets == {"ko": ["en"], "en": ["ko", "de"], "de": ["en"]}
    assert len({id(one.batcher) for one in many.served}) == 1, "attention is read in the only thread of the weights"


def test_both_interfaces_translate_in_the_direction_that_is_asked_for(client: Client, many_model: Path) -> None:
    model, text = load_model([many_model]), "abc def. hello"
    for source, target in DIRECTIONS:
        own = model.translate(text, source=source, to=target).text
        asked: dict[str, Any] = {"source": source, "target": target}
        answer = client.post("/v1/translate", json={"text": text, "split": True, **asked}).json()
        assert (answer["source"], answer["target"]) == (source, target)
        assert answer["translations"][0]["text"] == own
        assert client.post("/translate", json={"q": text, **asked}).json()["translatedText"] == own
        page = client.post("/translate", json={"q": f"<p>{text}</p>", "format": "html", **asked}).json()
        assert page["translatedText"].startswith("<p>")
    refused = client.post("/translate", json={"q": text, "source": "ko", "target": "de"})
    assert refused.status_code == 400
    assert "ko to en" in refused.json()["error"]


def test_a_text_in_the_target_language_or_in_two_languages_is_not_translated_as_another(client: Client) -> None:
    korean, german = "개는 작고 고양이는 큽니다. 오늘은 날씨가 좋아요.", "Die Katze schläft heute nicht auf dem Sofa."
    english = "The cat does not sleep on the sofa today."
    for text, problem in (
        (english, "the text looks like en, and en is translated from ko, de"),
        ([korean, german], "one text looks like ko and another like de"),
        ([german, german, english], "one text looks like de and another like en"),
    ):
        refused = client.post("/v1/translate", json={"text": text, "target": "en"})
        assert refused.status_code == 400, text
        assert problem in refused.json()["error"]
    found = client.post("/v1/translate", json={"text": [german, "OK", "Hotel"], "target": "en"}).json()
    assert found["source"] == "de", "names are alike in many languages"


@pytest.mark.parametrize("path", ["/v1/translate", "/v1/inside"])
def test_a_direction_is_not_guessed(client: Client, path: str) -> None:
    korean, german = "개는 작아요.", "Die Katze schläft heute nicht."

    def answer(**asked: str) -> Any:
        return client.post(path, json=asked)

    for asked, fitting in (
        ({"text": korean}, "ko to en, en to ko, en to de, de to en"),
        ({"text": "a dog", "source": "en"}, "en to ko, en to de"),
    ):
        refused = answer(**asked)
        assert refused.status_code == 400
        assert f"several directions fit: {fitting}; say the target" in refused.json()["error"]
    for text, source in ((korean, "ko"), (german, "de"), ("...", "ko")):
        found = answer(text=text, target="en").json()
        assert (found["source"], found["target"]) == (source, "en")
    refused = answer(text=korean, target="de")
    assert refused.status_code == 400
    assert "looks like ko" in refused.json()["error"]
    assert "de is translated from en;" in refused.json()["error"]
    assert answer(text=korean, source="en", target="de").json()["source"] == "en"
    assert answer(text="a dog", target="de").json()["source"] == "en"
    assert answer(text=korean, source="ko").json()["target"] == "en", "only one fits"


@pytest.mark.parametrize("path", ["/v1/translate", "/v1/inside"])
def test_a_direction_is_not_guessed_among_several_models_either(tiny_model: Path, tmp_path: Path, path: str) -> None:
    reverse = Path(shutil.copytree(tiny_model, tmp_path / "reverse" / "model"))
    text = (reverse / "config.yaml").read_text(encoding="utf-8")
    text = text.replace("source: en", "source: SOURCE", 1).replace("target: de", "target: en", 1)
    (reverse / "config.yaml").write_text(text.replace("SOURCE", "de", 1), encoding="utf-8")
    models = load_models([tiny_model, reverse], LIMITS, Computing("cpu", 1))
    client = Client(make_app(models, limits=LIMITS))
    refused = client.post(path, json={"text": "Die Katze schläft heute nicht."})
    assert refused.status_code == 400
    assert "several directions fit: en to de, de to en; say the target" in refused.json()["error"]
    assert client.post(path, json={"text": "hello", "target": "en"}).json()["source"] == "de", "only one fits"
    assert client.post(path, json={"text": "hello", "model": models.served[1].name}).json()["target"] == "en"
    client.run(models.close())
    client.close()


def test_the_inside_shows_the_tag_as_a_token(client: Client, many_model: Path) -> None:
    for target in ("ko", "de"):
        seen = client.post("/v1/inside", json={"text": "abc", "source": "en", "target": target}).json()
        assert [one["token"] for one in seen["source_pieces"]] == [f"<2{target}>", "a", "b", "c", "</s>"]
        maps = [one for one in seen["attention"] if one["kind"] == "cross"]
        assert all(one["columns"] == [f"<2{target}>", "a", "b", "c", "</s>"] for one in maps)
        assert all(len(row) == 5 for one in maps for head in one["heads"] for row in head)
        assert not any(one["token"].startswith("<2") for one in seen["tree"]["nodes"])
