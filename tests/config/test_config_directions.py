"""Configs of one model for several directions: `data.directions`, the languages of corpora, and tags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from transformer_mt.config.direction import Direction
from transformer_mt.config.load import dump_config, load_config
from transformer_mt.config.schema import Config
from transformer_mt.config.yaml_source import write_yaml
from transformer_mt.errors import TmtError

BOOK = {"kind": "phrasebook"}
TABLE = {"kind": "tsv", "files": "a.tsv"}


def values(*corpora: dict[str, Any], tokenizer: Any = None, **data: Any) -> dict[str, Any]:
    return {
        "name": "many",
        "data": {"directions": ["ko-en", "en-ko", "de-en"], "corpus": list(corpora or [BOOK]), **data},
        "tokenizer": tokenizer or {"kind": "sentencepiece"},
        "training": {"max_epochs": 1},
    }


def problems(tmp_path: Path, *corpora: dict[str, Any], tokenizer: Any = None, **data: Any) -> str:
    file = tmp_path / "c.yaml"
    file.write_text(write_yaml(values(*corpora, tokenizer=tokenizer, **data)), encoding="utf-8")
    with pytest.raises(TmtError) as caught:
        load_config(file)
    return caught.value.message


def test_directions_give_tags_and_every_direction_can_be_chosen() -> None:
    config = Config.model_validate(values(BOOK, {**TABLE, "direction": "ko-en", "tag": "<synthetic>"}))
    assert config.data.tags == ("<2en>", "<2ko>", "<synthetic>")
    assert (config.data.source_language, config.data.target_language) == ("mul", "mul")
    chosen = config.towards(Direction("en", "ko"))
    assert (*chosen.data.one_direction,) == ("en", "ko")
    assert chosen.data.request_tags == ("<2ko>",)
    assert chosen.data.all_directions == config.data.all_directions
    assert dump_config(chosen) == dump_config(config)
    with pytest.raises(TmtError, match="several directions: ko-en, en-ko, de-en"):
        _ = config.data.one_direction


def test_a_config_of_one_direction_is_written_as_before(tmp_path: Path) -> None:
    one = {"source": "ko", "target": "en", "directions": None}
    config = Config.model_validate(values(BOOK, **one))
    assert {"directions", "tag", "languages"}.isdisjoint(
        {*config.data.model_dump(), *config.data.corpus[0].model_dump()}
    )
    assert (config.data.tags, config.data.request_tags, config.data.direction) == ((), (), "ko-en")
    tagged = Config.model_validate(values({**BOOK, "tag": "<synthetic>"}, **one))
    assert (tagged.data.tags, tagged.data.request_tags) == (("<synthetic>",), ())
    for some in (config, tagged, Config.model_validate(values({**TABLE, "languages": ["ko", "en"]}, BOOK))):
        (tmp_path / "again.yaml").write_text(dump_config(some), encoding="utf-8")
        assert load_config(tmp_path / "again.yaml") == some


def test_what_a_corpus_gives_for_each_direction() -> None:
    corpora = (
        {**TABLE, "languages": ["en", "ko"]},
        {**TABLE, "direction": "de-en"},
        {**TABLE, "source_column": "German", "target_column": "en"},
        {"kind": "aihub", "files": "aihub"},
        {"kind": "multi30k"},
        BOOK,
    )
    config = Config.model_validate(values(*corpora))
    found = [
        [(str(one.direction), one.swapped) for one in corpus.readings(config.data.all_directions)]
        for corpus in config.data.corpus
    ]
    both, whole = [("ko-en", False), ("en-ko", False)], [("ko-en", False), ("en-ko", False), ("de-en", False)]
    german = [("de-en", False)]
    assert found == [[("ko-en", True), ("en-ko", False)], german, german, both, german, whole]


def test_every_mistake_is_named_at_once(tmp_path: Path) -> None:
    text = problems(
        tmp_path,
        {"kind": "multi30k"},
        TABLE,
        {**TABLE, "direction": "fr-en"},
        {"kind": "aihub", "files": "aihub", "direction": "de-en"},
        directions=["ko-en", "ko-en", "de-en", "de-de", "mul-en"],
        source="ko",
    )
    for part in (
        "directions cannot be combined with source and target",
        "'ko-en' is named twice",
        "'de-de' has the same language twice",
        "no corpus has pairs for 'ko-en'",
        "corpus 2 (tsv): its languages are unknown; add `languages: [SOURCE, TARGET]`",
        "corpus 3 (tsv) has none of the directions",
        "corpus 4 (aihub) has 'ko' in all its pairs, which de-en has not",
        "'mul-en' has the code mul, which means several languages",
    ):
        assert part in text
    assert "for 'de-en'" not in text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"directions": ["German-en"]}, "must be two ISO 639 codes, such as ko-en"),
        ({"directions": []}, "must not be empty"),
        ({"corpus": [{**BOOK, "tag": "synthetic"}]}, "must be in <>, without spaces, such as <synthetic>"),
        ({"corpus": [{**TABLE, "languages": ["ko", "en"], "direction": "ko-en"}]}, "direction already names the"),
        (
            {"directions": None, "source": "de", "target": "en", "corpus": [{**BOOK, "languages": ["de", "en"]}]},
            "needs",
        ),
        ({"corpus": [BOOK, {"kind": "multi30k", "direction": "ko-en"}]}, "has the languages de, en, not ko-en"),
        ({"corpus": [{**BOOK, "tag": "<unk>"}]}, "<unk> is a mark of every vocabulary"),
        ({"corpus": [{**BOOK, "tag": "<2fr>"}]}, "<2fr> is the form of tags that name a target language"),
        ({"corpus": [{**TABLE, "languages": ["ko", "en", "de"]}]}, "must have at most 2 values"),
    ],
)
def test_values_that_are_wrong_by_themselves(tmp_path: Path, data: dict[str, Any], message: str) -> None:
    assert message in problems(tmp_path, **data)


MISTAKES: list[tuple[dict[str, Any], str]] = [
    (
        {"directions": ["German-en"]},
        """'data.directions.0' is "German-en", but must be two ISO 639 codes, such as ko-en""",
    ),
    ({"directions": []}, "'data.directions' is [], but must not be empty"),
    ({"directions": "ko-en"}, """'data.directions' is "ko-en", but must be a list"""),
    ({"directions": ["ko-en", "ko-en"]}, "data: directions: 'ko-en' is named twice"),
    (
        {"source": "en"},
        "data: directions cannot be combined with source and target; remove these, or `directions`",
    ),
    (
        {"corpus": [BOOK, {**TABLE, "direction": ["ko-en"]}]},
        """'data.corpus.1.direction' is ["ko-en"], but must be text; put numbers and true or false in quotes""",
    ),
    (
        {"corpus": [{"kind": "multi30k"}, {**TABLE, "languages": ["Korean", "en"]}]},
        "'data.corpus.1.languages.0' is \"Korean\", but must be an ISO 639 code of two or three small letters, such as"
        " en, ko or deu; did you mean 'ko'?",
    ),
]


@pytest.mark.parametrize(("data", "line"), MISTAKES)
def test_one_mistake_is_one_line(tmp_path: Path, data: dict[str, Any], line: str) -> None:
    """The removal of a wrong value while the rest is checked must not cause further, false lines."""
    (only,) = [one for one in problems(tmp_path, **data).splitlines() if one.strip()]
    assert only.partition(": ")[2] == line


def test_morphemes_are_refused_on_a_side_of_several_languages(tmp_path: Path) -> None:
    pieces, morphemes = {"kind": "sentencepiece"}, {"kind": "sentencepiece", "morphemes": "mecab"}
    text = problems(tmp_path, tokenizer={"source": morphemes, "target": pieces})
    assert "tokenizer option 'morphemes' is for Korean alone, but the source side of data.directions has" in text
    assert "target side" not in text
    assert "the target side" in problems(tmp_path, tokenizer=morphemes)
    Config.model_validate(values(tokenizer={"source": pieces, "target": morphemes}, directions=["en-ko", "de-ko"]))


def test_a_tokenizer_for_one_language_is_refused_on_a_side_of_several(tmp_path: Path) -> None:
    text = problems(tmp_path, tokenizer={"source": {"kind": "spacy"}, "target": {"kind": "soynlp"}})
    assert "tokenizer kind 'spacy' is for one language, but the source side of data.directions has several" in text
    assert "tokenizer kind 'soynlp' is for one language, but the target side" in text
    sides = {"source": {"kind": "sentencepiece"}, "target": {"kind": "spacy"}}
    Config.model_validate(values(tokenizer=sides, directions=["ko-en", "de-en"]))


def test_weights_of_corpora_and_a_temperature_of_directions_go_together() -> None:
    Config.model_validate(values({**BOOK, "weight": 2.0}, BOOK, temperature=5))
