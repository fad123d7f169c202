"""The `data.corpus` section: the keys that all kinds of corpora share. The class of a kind adds its own keys."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from transformer_mt.config.choices import choice
from transformer_mt.config.section import NonNegative, Section

Share = Annotated[int | float, Field(ge=0, json_schema_extra={"minimum": 0})]


class SplitConfig(Section):
    """How a corpus without splits is divided, after cleaning and removal of duplicates."""

    validation: Share = Field(0.1, description="validation data: a share of the pairs (below 1), or their number")
    test: Share = Field(0.1, description="test data: a share of the pairs (below 1), or their number")
    seed: NonNegative = Field(
        1, description="seed of the shuffle before the split; the seed of the run does not change the split"
    )

    @field_validator("validation", "test")
    @classmethod
    def _share_or_number(cls, value: int | float) -> int | float:
        if isinstance(value, float) and value >= 1:
            raise ValueError(f"{value:g} is not a share below 1 and not a whole number of pairs")
        return value

    @model_validator(mode="after")
    def _leaves_some_training(self) -> SplitConfig:
        shares = [share for share in (self.validation, self.test) if share < 1]
        if sum(shares) >= 1:
            raise ValueError("validation and test leave nothing for training; their shares must add up to less than 1")
        return self


class CorpusConfig(Section):
    kind: str
    weight: float = Field(
        1.0,
        gt=0,
        le=100,
        description="times that each pair of this corpus is seen in an epoch; 0.5: a random half of the pairs",
    )

    @property
    def corpus(self) -> Any:
        """The class of this kind."""
        return choice("corpus", self.kind)
