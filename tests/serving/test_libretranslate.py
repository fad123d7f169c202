"""The interface of LibreTranslate, as its documentation describes it: https://docs.libretranslate.com/api/."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.serving.conftest import LIMITS, Client
from transformer_mt.serving import libretranslate, translate_v1
from transformer_mt.serving.keys import Keys
from transformer_mt.serving.models import Models
from transformer_mt.workflows.documents import OpenDocument


def ask(client: Client, **given: Any) -> Any:
    answer = client.post("/translate", json={"source": "en", "target": "de", **given})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_text_and_a_list_of_texts(client: Client, models: Models) -> None:
    found = list(models.served[0].translator.translate(["a cat", "a dog"]))
    texts, notes = [one.text for one in found], [list(one.notes) for one in found]
    assert ask(client, q="a cat") == {"translatedText": texts[0], "notes": notes[0]}
    assert ask(client, q=["a cat", "a dog"]) == {"translatedText": texts, "notes": notes}
    assert ask(client, q=[]) == {"translatedText": []}


@pytest.mark.parametrize("form", ["text", "html"])
def test_what_is_lost_of_a_text_is_told(client: Client, form: str) -> None:
    long = "a cat and a dog " * 5  # the model reads 24 tokens
    found = ask(client, q=[long, "a cat"], format=form)
    assert [[note.startswith("cut to 23") for note in notes].count(True) for notes in found["notes"]] == [1, 0]
    assert ask(client, q=long, format=form)["notes"][0].startswith("cut to 23 of ")


def test_one_page_of_html_is_read_at_a_time_even_if_clients_go_away(
    client_of: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, reading, most = client_of(limits=replace(LIMITS, seconds=0.05)), [0], [0]

    def slow(*given: Any) -> OpenDocument:
        reading[0] += 1
        most[0] = max(most[0], reading[0])
        time.sleep(0.2)
        reading[0] -= 1
        return OpenDocument(*given)

    monkeypatch.setattr(libretranslate, "OpenDocument", slow)
    body = {"q": "<p>a cat", "source": "en", "target": "de", "format": "html"}

    async def many() -> list[Any]:
        return await asyncio.gather(*(client.http.post("/translate", json=body) for _ in range(5)))

    assert {answer.status_code for answer in client.run(many())} == {503}
    client.run(asyncio.to_thread(translate_v1._READER.submit(int).result))  # whatever it still reads
    assert most == [1]


def test_json_and_a_form_are_accepted(client: Client) -> None:
    form = {"q": "a cat", "source": "en", "target": "de", "alternatives": "1"}
    assert client.post("/translate", data=form).json() == ask(client, q="a cat", alternatives=1)


@pytest.mark.parametrize(("source", "target"), [("en-US", "de"), ("EN", "de-AT"), ("en", "DE_de")])
def test_languages_may_be_written_with_a_region(client: Client, source: str, target: str) -> None:
    assert ask(client, q="a cat", source=source, target=target) == ask(client, q="a cat")


def test_alternatives_are_different_and_follow_the_best(client: Client) -> None:
    found = ask(client, q="a cat\na dog", alternatives=3)
    assert 1 <= len(found["alternatives"]) <= 3
    assert len({found["translatedText"], *found["alternatives"]}) == len(found["alternatives"]) + 1
    assert all(text.count("\n") == 1 for text in found["alternatives"])
    assert [len(one) > 0 for one in ask(client, q=["a cat", "a dog"], alternatives=2)["alternatives"]] == [True, True]


def test_tags_of_html_stay_byte_for_byte(client: Client) -> None:
    page = '<!-- a note --><p  class="x">a cat</p><br/>\n<script>let a = "b";</script>&nbsp;<img src="a.png">'
    found = ask(client, q=page, format="html")["translatedText"]
    text = ask(client, q="a cat")["translatedText"]
    assert found == page.replace("a cat", text)


def test_a_page_with_a_zero_is_answered(client: Client) -> None:
    assert ask(client, q="<p>a\0cat</p>", format="html")["translatedText"].startswith("<p>")


def test_the_source_can_be_detected(client: Client) -> None:
    english, german = "The weather is beautiful in the garden today.", "Das Wetter ist heute schön im Garten."
    found = ask(client, q=english, source="auto")
    assert found["detectedLanguage"]["language"] == "en"
    assert 50 < found["detectedLanguage"]["confidence"] <= 100
    found = ask(client, q=[english, german], source="auto")
    assert [one["language"] for one in found["detectedLanguage"]] == ["en", "de"]
    assert found["translatedText"][1] == german, "it is in the target language already"
    french = "La maison est petite et très jolie, et le jardin est grand."
    notes = ask(client, q=[german, french, "12"], source="auto")["notes"]
    assert notes[0] == []
    assert notes[1][0] == "no language that is served fits this text; it was taken for English"
    assert not any("served" in note for note in notes[2])


def test_the_languages_are_the_served_ones(client: Client) -> None:
    assert client.get("/languages").json() == [{"code": "en", "name": "English", "targets": ["de"]}]
    found = client.post("/detect", data={"q": "Das Wetter ist heute schön im Garten."}).json()
    assert [one["language"] for one in found] == ["de", "en"]
    assert found[0]["confidence"] > 50
    assert client.post("/detect", json={"q": "12"}).json()[0]["confidence"] == 0


def test_settings_and_health(client: Client) -> None:
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == 2_000
    assert settings["keyRequired"] is False
    assert settings["language"]["source"] == {"code": "en", "name": "English"}
    assert client.get("/health").json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"q": "a"}, "'source' is missing"),
        ({"source": "en", "target": "de"}, "'q' is missing"),
        (
            {"q": 5, "source": "en", "target": "de"},
            "'q' must be text; put numbers and true or false in quotes, or a list",
        ),
        ({"q": "a", "source": "de", "target": "en"}, "en to de"),
        ({"q": "a", "source": "en", "target": "xx"}, "en to de"),
        ({"q": "a", "source": "xx", "target": "xx"}, "en to de"),
        ({"q": "a", "source": "en", "target": "de", "format": "pdf"}, "'format' must be one of"),
        ({"q": "a", "source": "en", "target": "de", "alternatives": 99}, "'alternatives' must be less than"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(client: Client, given: dict[str, Any], word: str) -> None:
    answer = client.post("/translate", json=given)
    assert answer.status_code == 400
    assert word in answer.json()["error"]


def test_the_key_may_be_in_the_body_or_in_the_header(client_of: Callable[..., Client]) -> None:
    client = client_of(keys=Keys(["first", "second"]))
    body = {"q": "a", "source": "en", "target": "de"}
    assert client.post("/translate", json=body).status_code == 403
    assert client.post("/translate", json={**body, "api_key": "wrong"}).status_code == 403
    assert client.post("/translate", json={**body, "api_key": "second"}).status_code == 200
    assert client.post("/translate", data={**body, "api_key": "first"}).status_code == 200
    header = {"Authorization": "Bearer first"}
    assert client.post("/translate", json=body, headers=header).status_code == 200
    assert client.post("/translate", json={**body, "api_key": "wrong"}, headers=header).status_code == 200
    assert client.get("/languages").status_code == 200
    assert client.get("/frontend/settings").json()["keyRequired"] is True
