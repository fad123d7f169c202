"""Our own interface gives what `Translator` gives, for one client and for many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.serving.conftest import LIMITS, Client
from transformer_mt.config.runs import WEIGHTS
from transformer_mt.decoding.computing import Computing
from transformer_mt.decoding.model_directory import load_model_directory
from transformer_mt.errors import TmtError
from transformer_mt.exporting.ctranslate2 import write_export
from transformer_mt.runtime.weights import facts_of_weights
from transformer_mt.serving.batching import Settings
from transformer_mt.serving.limits import RequestError
from transformer_mt.serving.models import Models, Searches, load_models

PATH = "/v1/translate"
TEXT = "a cat. a dog.\r\n\r\n\t a bird sings \n\n"


def translated(client: Client, text: str | list[str], **settings: Any) -> list[dict[str, Any]]:
    answer = client.post(PATH, json={"text": text, **settings})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["translations"]
    return found


def test_a_sentence_has_the_translations_scores_and_alignments_of_the_translator(
    client: Client, models: Models
) -> None:
    own = models.served[0].translator.translate("a small cat", align=True)
    (found,) = translated(client, "a small cat", align=True)
    (line,) = found["lines"]
    (best,) = line["hypotheses"]
    assert found["text"] == line["text"] == best["text"] == own.text
    assert best["tokens"] == list(own.tokens)
    assert best["score"] == pytest.approx(own.score, abs=1e-4)
    assert best["token_scores"] == pytest.approx(own.n_best[0].token_scores, abs=1e-4)
    assert best["words"] == [list(link) for link in own.n_best[0].word_alignment or ()]
    assert line["source"] == "a small cat"
    assert line["source_tokens"] == list(own.source_tokens)


def test_the_n_best_are_different_and_sorted_and_may_need_a_wider_beam(client: Client) -> None:
    (found,) = translated(client, "a small cat", n_best=5)
    hypotheses = found["lines"][0]["hypotheses"]
    scores = [one["score"] for one in hypotheses]
    assert len({one["text"] for one in hypotheses}) == len(hypotheses) > 1
    assert scores == sorted(scores, reverse=True)
    assert hypotheses[0]["token_scores"] is None
    assert hypotheses[0]["words"] is None


def test_line_breaks_blank_lines_and_white_space_stay(client: Client) -> None:
    (found,) = translated(client, TEXT)
    assert [line["source"] for line in found["lines"]] == ["a cat. a dog.", "", "a bird sings", ""]
    first, _, third, _ = (line["text"] for line in found["lines"])
    assert found["text"] == f"{first}\r\n\r\n\t {third} \n\n"


def test_a_line_of_two_sentences_is_translated_sentence_by_sentence_unless_told_otherwise(client: Client) -> None:
    whole, first, second = translated(client, ["a cat. a dog.", "a cat.", "a dog."])
    assert whole["text"] == f"{first['text']} {second['text']}"
    (unsplit,) = translated(client, "a cat. a dog.", split=False)
    assert unsplit["text"] != whole["text"]


@pytest.mark.parametrize("text", ["", " \n ", []])
def test_nothing_has_an_empty_translation(client: Client, text: str | list[str]) -> None:
    found = translated(client, text)
    assert [one["text"] for one in found] == ([text] if isinstance(text, str) else [])


def test_many_clients_at_once_get_what_each_would_get_alone(client: Client, models: Models) -> None:
    sizes: list[int] = []
    models.served[0].batcher.observe = sizes.append
    texts = [f"{'a' * (n % 7 + 1)} cat {'of' * (n % 5)} dogs" for n in range(40)]

    async def ask_all() -> list[Any]:
        return await asyncio.gather(*(client.http.post(PATH, json={"text": text}) for text in texts))

    answers = [answer.json()["translations"][0]["text"] for answer in client.run(ask_all())]
    assert answers == [translated(client, text)[0]["text"] for text in texts]
    assert max(sizes) > 10


def test_the_direction_may_be_named_and_another_is_refused_with_those_there_are(client: Client) -> None:
    for named in ({"source": "en"}, {"source": "en", "target": "de"}, {"model": "tiny0"}, {"source": "de"}):
        name = client.get("/v1/models").json()["models"][0]["name"]
        given = {key: name if value == "tiny0" else value for key, value in named.items()}
        answer = client.post(PATH, json={"text": "a", **given})
        if named == {"source": "de"}:
            assert answer.status_code == 400
            assert "en to de" in answer.json()["error"]
        else:
            assert answer.status_code == 200


def test_the_models_are_listed_without_their_paths(client: Client, models: Models) -> None:
    answer = client.get("/v1/models")
    (one,) = answer.json()["models"]
    assert one["name"] == models.served[0].name
    assert (one["source"], one["target"], one["target_name"]) == ("en", "de", "German")
    assert one["default"] is True
    assert one["limits"] == {"characters": 2_000, "sentences": 50}
    assert str(models.served[0].folder.parent.parent) not in answer.text


def test_the_weights_that_answer_can_be_told(client: Client, models: Models, tmp_path: Path) -> None:
    name, folder = models.served[0].name, models.served[0].folder
    (one,) = client.get("/v1/models").json()["models"]
    saved = facts_of_weights(folder / WEIGHTS)["sha256"]
    assert f"{one['fingerprint']}  tensors" in saved.splitlines()
    assert (one["engine"], one["quantization"]) == ("tmt", None)
    line = f'tmt_model_info{{fingerprint="{one["fingerprint"]}",model="{name}"}} 1.0'
    assert line in client.get("/metrics").text.splitlines()

    pytest.importorskip("ctranslate2")
    write_export(load_model_directory(folder), tmp_path / "out", "int8")
    (exported,) = load_models([tmp_path / "out"], LIMITS, Computing("cpu", 1)).served
    told = exported.described()
    assert (told["fingerprint"], told["engine"]) == (one["fingerprint"], "ctranslate2")
    assert told["quantization"] == "int8"


def test_a_wider_beam_than_allowed_is_refused(client_of: Callable[..., Client]) -> None:
    client = client_of()
    assert client.post(PATH, json={"text": "a", "beam": 17}).status_code == 400
    answer = client.post(PATH, json={"text": "a", "beam": 2, "n_best": 3})
    assert answer.status_code == 422
    assert "beam" in answer.json()["error"]


def test_a_beam_that_the_engine_does_not_support_is_refused(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise TmtError("this engine does not support decoding.coverage_penalty")

    searches = Searches(models.served[0].translator)
    monkeypatch.setattr(type(searches.translator), "with_search", refuse)
    with pytest.raises(RequestError, match="coverage_penalty") as refused:
        searches.with_settings(Settings(beam=3))
    assert refused.value.status == 422
