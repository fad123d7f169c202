"""What all sections of a config share: unknown keys are errors, values are never coerced, nothing changes."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A frozen, strict group of keys. `description` of each field is its documentation everywhere."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


Probability = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[int, Field(ge=1)]
Width = Annotated[int, Field(ge=1, le=1_048_576)]  # of a layer; what is beyond is a slip of the finger
Depth = Annotated[int, Field(ge=1, le=1_000)]  # layers
Seed = Annotated[int, Field(ge=0, lt=2**63)]
NonNegative = Annotated[int, Field(ge=0)]
Item = TypeVar("Item")
Many = Annotated[tuple[Item, ...], Field(strict=False)]  # a list in YAML; its items stay strict
LANGUAGE = r"^[a-z]{2,3}$"
Language = Annotated[str, Field(pattern=LANGUAGE)]
