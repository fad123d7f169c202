"""What all sections share: an unknown key is an error, values are not converted, and a section cannot be changed."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError


class Section(BaseModel):
    """A group of keys. The `description` of a field is its documentation in the reference and in editors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def _countable(number: int) -> int:
    if number >= 2**63:  # no computer counts so far, and some functions refuse such numbers
        raise ValueError("the number is too large")
    return number


def _not_empty(name: str) -> str:
    """An empty name would mean the current folder. Unlike this, Field(min_length=1) refuses names that are no UTF-8."""
    if not name:
        raise PydanticCustomError("string_too_short", "must not be empty")
    return name


def _several(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Probability = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[int, Field(ge=1), AfterValidator(_countable)]
Width = Annotated[int, Field(ge=1, le=1_048_576)]  # of a layer; a larger number is a typing error
Depth = Annotated[int, Field(ge=1, le=1_000)]  # layers
SEEDS = 2**63  # a seed is less
Seed = Annotated[int, Field(ge=0, lt=SEEDS)]
NonNegative = Annotated[int, Field(ge=0), AfterValidator(_countable)]
Item = TypeVar("Item")
Many = Annotated[tuple[Item, ...], Field(strict=False)]  # a list in YAML; its items are strict
OneOrMany = Annotated[Many[Item], BeforeValidator(_several, json_schema_input_type=str | tuple[str, ...])]  # of text
LANGUAGE = r"^[a-z]{2,3}$"
FileName = Annotated[str, AfterValidator(_not_empty)]  # or of a folder, or a pattern
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"  # a safe name of a folder
Language = Annotated[str, Field(pattern=LANGUAGE)]
