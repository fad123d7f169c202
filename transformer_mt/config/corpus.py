"""The `data.corpus` section: what all kinds of corpora share. What a kind adds is said in its own file (`choices`)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from transformer_mt.config.choices import choice
from transformer_mt.config.section import NonNegative, Section

Share = Annotated[int | float, Field(ge=0, json_schema_extra={"minimum": 0})]


class SplitConfig(Section):
    """How a corpus without splits of its own is divided, after cleaning and removal of duplicates."""

    validation: Share = Field(0.1, description="share (below 1) or number of pairs for validation")
    test: Share = Field(0.1, description="share (below 1) or number of pairs for testing")
    seed: NonNegative = Field(1, description="seed of the shuffle; apart from the run's seed, so that splits stay put")

    @field_validator("validation", "test")
    @classmethod
    def _share_or_number(cls, value: int | float) -> int | float:
        if isinstance(value, float) and value >= 1:
            raise ValueError(f"{value:g} is neither a share below 1 nor a whole number of pairs")
        return value

    @model_validator(mode="after")
    def _leaves_some_training(self) -> SplitConfig:
        shares = [share for share in (self.validation, self.test) if share < 1]
        if sum(shares) >= 1:
            raise ValueError("validation and test leave nothing for training; their shares must sum to below 1")
        return self


class CorpusConfig(Section):
    kind: str
    weight: float = Field(1.0, gt=0, le=100, description="times a pair of this corpus is seen in an epoch")

    @property
    def corpus(self) -> Any:
        """The class of this kind."""
        return choice("corpus", self.kind)
