"""`POST /v1/inside` and the positional encodings: what is shown is what the model computes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from tests.serving.living import check, living, random_translator
from transformer_mt.decoding.translator import Translator
from transformer_mt.model.positions import sinusoidal_positions
from transformer_mt.serving import inside
from transformer_mt.serving.inside import describe_positions

SENTENCE = "그 고양이는 작아요."


@pytest.fixture(scope="module")
def translator() -> Translator:
    return random_translator()


@pytest.fixture(scope="module")
def client(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    models = [translator, random_translator("en", "ko", positions="rotary", norm="post")]
    with living(models, tmp_path_factory.mktemp("runs")) as server, httpx.Client(base_url=server.address) as client:
        yield client


@pytest.fixture(scope="module")
def seen(client: httpx.Client) -> dict[str, Any]:
    return looked(client, text=SENTENCE, beam=3)


def looked(client: httpx.Client, **body: object) -> dict[str, Any]:
    answer = client.post("/v1/inside", json={"source": "ko", **body})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_the_translation_is_that_of_the_model_with_this_beam(seen: dict[str, Any], translator: Translator) -> None:
    (found,) = translator.translate([SENTENCE])
    assert seen["text"] == seen["tree"]["done"][0]["text"] == found.text
    assert seen["tree"]["done"][0]["score"] == pytest.approx(found.score, abs=1e-4)
    assert [one["token"] for one in seen["source_pieces"]] == [*found.source_tokens, "</s>"]
    assert [one["token"] for one in seen["target_pieces"]] == [*found.tokens, "</s>"]
    vocabulary = translator.source.vocabulary.tokens
    assert all(vocabulary[one["id"]] == one["token"] for one in seen["source_pieces"])


def test_a_score_is_the_log_probability_divided_by_the_penalty(seen: dict[str, Any]) -> None:
    nodes = seen["tree"]["nodes"]
    for one in [*seen["tree"]["done"], seen["greedy"]]:
        length = len(one["tokens"])
        assert one["penalty"] == pytest.approx(((5 + length) / 6) ** 0.6, abs=1e-4)
        assert one["score"] == pytest.approx(one["log_probability"] / one["penalty"], abs=1e-3)
    for one in seen["tree"]["done"]:
        assert sum(nodes[place]["log_p"] for place in one["path"]) == pytest.approx(one["log_probability"], abs=1e-3)
        assert [nodes[place]["token"] for place in one["path"]] == one["tokens"]


def test_greedy_search_is_shown_beside_the_beam(client: httpx.Client, seen: dict[str, Any]) -> None:
    alone = looked(client, text=SENTENCE, beam=1)
    assert alone["tree"]["beam"] == 1
    assert alone["text"] == seen["greedy"]["text"] == alone["greedy"]["text"]


def test_every_head_of_every_layer_has_a_map_whose_rows_add_up_to_1(seen: dict[str, Any]) -> None:
    kinds = [(one["kind"], one["layer"]) for one in seen["attention"]]
    assert sorted(kinds) == sorted((kind, layer) for kind in ("encoder", "decoder", "cross") for layer in (1, 2))
    source, target = len(seen["source_pieces"]), len(seen["target_pieces"])
    for one in seen["attention"]:
        maps = np.array(one["heads"])
        rows = source if one["kind"] == "encoder" else target
        columns = target if one["kind"] == "decoder" else source
        assert maps.shape == (2, rows, columns) == (2, len(one["rows"]), len(one["columns"]))
        assert np.abs(maps.sum(axis=2) - 1).max() < 0.01
        if one["kind"] == "decoder":
            assert not np.triu(maps, k=1).any(), "a position saw a later one"


def test_the_shapes_are_those_of_this_sentence(seen: dict[str, Any]) -> None:
    source, target = len(seen["source_pieces"]), len(seen["target_pieces"])
    shapes = {(one["path"], one["name"]): one["shape"] for one in seen["shapes"]}
    assert shapes["encoder", "memory"] == [1, source, 16]
    assert shapes["generator", "logits"] == [1, target, seen["vocabulary"]["target"]]
    assert shapes["decoder.layers.1.cross_attention", "weights"] == [1, 2, target, source]
    assert all(one["meaning"] for one in seen["shapes"])


def test_looking_inside_leaves_the_model_as_it_was(client: httpx.Client, translator: Translator) -> None:
    before = [one.text for one in translator.translate([SENTENCE, "다라마"])]
    looked(client, text=SENTENCE)
    assert [one.text for one in translator.translate([SENTENCE, "다라마"])] == before


def test_the_answers_are_as_described(client: httpx.Client, seen: dict[str, Any]) -> None:
    positions = client.get("/v1/models/ko-en/positions").json()
    for path, method, answer in (("/v1/inside", "post", seen), ("/v1/models/{name}/positions", "get", positions)):
        check(path, method, answer)


def test_of_several_sentences_the_first_is_shown_and_all_are_named(client: httpx.Client) -> None:
    found = looked(client, text="그 고양이는 작아요.\n그는 시장에서 나가요.  ")
    assert found["sentences"] == ["그 고양이는 작아요.", "그는 시장에서 나가요."]
    assert found["sentence"] == found["sentences"][0]


def test_what_the_model_does_not_know_is_noted(client: httpx.Client) -> None:
    assert "unknown" in " ".join(looked(client, text="고양이 ☃")["notes"])


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"text": "  ", "source": "ko"}, 400, "words"),
        ({"text": "가", "beam": 9}, 400, "beam"),
        ({"text": "가", "source": "fr"}, 400, "ko"),
        ({"text": "가" * 2001}, 400, "text"),
        ({"text": "가", "path": "x"}, 400, "path"),
        ({}, 400, "text"),
    ],
)
def test_a_wrong_request_gets_a_plain_sentence(
    client: httpx.Client, body: dict[str, Any], status: int, word: str
) -> None:
    answer = client.post("/v1/inside", json=body)
    assert (answer.status_code, list(answer.json())) == (status, ["error"]), answer.text
    assert word in answer.json()["error"]


def test_an_engine_without_an_inside_says_so(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inside, "Translator", int)  # the served ones are of another class
    for answer in (
        client.post("/v1/inside", json={"text": "가", "source": "ko"}),
        client.get("/v1/models/ko-en/positions"),
    ):
        assert answer.status_code == 400
        assert "CTranslate2" in answer.json()["error"]


def test_a_sentence_that_is_too_long_to_be_shown(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inside, "TOKENS", 5)
    answer = client.post("/v1/inside", json={"text": SENTENCE, "source": "ko"})
    assert answer.status_code == 413
    assert "tokens" in answer.json()["error"]


def test_the_positions_are_the_table_of_the_model(client: httpx.Client) -> None:
    found = client.get("/v1/models/ko-en/positions").json()
    assert (found["kind"], found["width"]) == ("sinusoidal", 16)
    values = np.array(found["values"])
    assert np.abs(values - sinusoidal_positions(len(values), 16).numpy()).max() < 1e-3
    assert values[0].tolist() == [0.0, 1.0] * 8  # sin 0, cos 0
    assert values[3][0] == pytest.approx(math.sin(3), abs=1e-3)


def test_a_model_without_a_table_says_so(client: httpx.Client) -> None:
    found = client.get("/v1/models/en-ko/positions").json()
    assert (found["kind"], found["values"]) == ("rotary", None)
    assert client.get("/v1/models/../positions").status_code == 404
    assert client.get("/v1/models/fr-de/positions").status_code == 404


def test_learned_positions_are_no_more_than_the_model_has() -> None:
    learned = random_translator(positions="learned", max_positions=60)
    values = np.array(describe_positions(learned)["values"])
    table = learned.models[0].source_embedding.positions.table.weight.detach().numpy()  # type: ignore[union-attr]
    assert values.shape == table.shape == (60, 16)
    assert np.abs(values - table).max() < 1e-3
