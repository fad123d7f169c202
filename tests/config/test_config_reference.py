"""The schema as documentation: every key has one sentence and a row in the reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, get_args

import pytest
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from transformer_mt.config.reference import keys_at, reference_table
from transformer_mt.config.schema import Config


def _sections(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from _sections(field.annotation)
    for part in get_args(annotation):
        yield from _sections(part)


FIELDS: list[tuple[type[BaseModel], str, FieldInfo]] = [
    (model, name, field)
    for model in dict.fromkeys(_sections(Config))
    for name, field in model.model_fields.items()
    if name != "kind"
]


IDS = [f"{model.__name__}.{name}" for model, name, _ in FIELDS]


@pytest.mark.parametrize(("model", "name", "field"), FIELDS, ids=IDS)
def test_every_key_is_documented(model: type[BaseModel], name: str, field: FieldInfo) -> None:
    assert field.description, f"{model.__name__}.{name} has no description"
    sentence = field.description.replace("<", "&lt;")
    rows = [line for line in reference_table().splitlines() if line.startswith(f"| `{name}` |")]
    assert any(row.endswith(f"| {sentence} |") for row in rows)


@pytest.mark.parametrize(("model", "name", "field"), FIELDS, ids=IDS)
def test_every_default_is_a_valid_value(model: type[BaseModel], name: str, field: FieldInfo) -> None:
    if not field.is_required():
        checked = TypeAdapter(Annotated[field.annotation, field]).validate_python(field.default)
        assert checked == field.default


def test_each_section_has_one_table_with_rows_of_equal_length() -> None:
    table = reference_table()
    headings = re.findall(r"^#### (.*)$", table, re.MULTILINE)
    assert headings[0] == "Top level"
    assert {"`data`", "`data.corpus`", "`data.cleaning`", "`tokenizer`", "`model`", "`training`"} <= set(headings)
    assert len(headings) == len(set(headings))
    assert not any("tokenizer.source" in heading for heading in headings)
    for block in table.split("#### ")[1:]:
        rows = [re.split(r"(?<!\\)\|", line) for line in block.splitlines() if line.startswith("|")]
        assert len({len(row) for row in rows}) == 1, block.splitlines()[0]
        keys = [tuple(row[1:-2]) for row in rows]
        assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    "row",
    [
        "| `d_model` | int | `512` | >= 1, <= 1048576 | size of the vector of a token in every layer (D) |",
        "| `name` | text | required |  | name of the run",
        "| `max_ratio` | float \\| null | `9.0` | > 1 |",
        "| `betas` | list of float | `[0.9, 0.98]` | >= 0.0, < 1.0 |",
        "| `norm` | `pre` \\| `post` | `pre` |",
        "| `train` | phrasebook | int | `20000` | >= 1 |",
        "| `weight` | all | float | `1.0` | > 0, <= 100 |",
        "| `delimiter` | csv | text | `,` | length >= 1 |",
    ],
)
def test_a_row_has_type_default_and_range(row: str) -> None:
    assert row in reference_table()


def test_keys_at_a_path() -> None:
    assert "d_model" in keys_at(("model",))
    assert "algorithm" in keys_at(("tokenizer", "source"))
    assert "vocab_size" not in keys_at(("tokenizer",), {"tokenizer": {"kind": "spacy"}})
    assert keys_at(("data", "corpus", 0), {"data": {"corpus": [{"kind": "phrasebook"}]}})[-1] == "seed"
    assert keys_at(("nowhere",)) == []
