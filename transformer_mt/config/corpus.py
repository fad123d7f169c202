"""The `data.corpus` section: the keys that all kinds of corpora share. The class of a kind adds its own keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer, model_validator

from transformer_mt.config.choices import choice
from transformer_mt.config.direction import Direction, DirectionName, Tag
from transformer_mt.config.section import Language, NonNegative, Section

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


class Reading(NamedTuple):
    """How a corpus is read for a direction. own: the languages of its source and target column"""

    direction: Direction
    own: Direction

    @property
    def swapped(self) -> bool:
        """Whether its source column is the target of the direction."""
        return self.own != self.direction


class CorpusConfig(Section):
    NEWER: ClassVar[tuple[tuple[str, object], ...]] = (("languages", None), ("direction", None), ("tag", None))
    """Keys with their defaults that older versions did not have."""

    kind: str
    weight: float = Field(
        1.0,
        gt=0,
        le=100,
        description="times that each pair of this corpus is seen in an epoch; 0.5: a random half of the pairs",
    )

    languages: tuple[Language, Language] | None = Field(
        None,
        strict=False,
        description="with `data.directions`: the languages of the source and the target column of its files, such as"
        " [ko, en]; it then gives pairs in both directions",
    )
    direction: DirectionName | None = Field(
        None, description="with `data.directions`: the only direction that this corpus gives pairs for, such as ko-en"
    )
    tag: Tag | None = Field(
        None,
        description="token that is put before each source sentence of this corpus in training, such as <synthetic>"
        " (Caswell et al. 2019)",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> CorpusConfig:
        if self.languages is not None and self.direction is not None:
            raise ValueError("direction already names the languages; remove `languages`, or `direction`")
        return self

    @model_serializer(mode="wrap")
    def _written(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without newer keys with their default, so that data of an older version still belongs to its config."""
        values: dict[str, Any] = serialize(self)
        return {key: value for key, value in values.items() if (key, value) not in self.NEWER}

    @property
    def title(self) -> str:
        """What a report calls it: its kind, or the first of the files that it names."""
        return self.kind

    @property
    def validates(self) -> bool:
        """Whether it gives pairs for validation."""
        return True

    @property
    def corpus(self) -> Any:
        """The class of this kind."""
        return choice("corpus", self.kind)

    @property
    def named_languages(self) -> Direction | None:
        """The languages of the two sides of its files, if names of columns say them."""
        return None

    def readings(self, directions: Sequence[Direction]) -> list[Reading]:
        """The directions of a config that this corpus gives pairs for."""
        if self.direction is not None:
            own = Direction.of(self.direction)
            return [Reading(own, own)] if own in directions else []
        own_languages = self.named_languages if self.languages is None else Direction(*self.languages)
        if own_languages is not None:
            return [Reading(one, own_languages) for one in directions if {*one} == {*own_languages}]
        known, always = self.corpus.languages, self.corpus.always
        if known is None and always is None:
            return []
        fitting = [one for one in directions if (always in one if known is None else {*one} <= {*known})]
        return [Reading(one, one) for one in fitting]  # its columns are found by their languages

    @property
    def says_languages(self) -> bool:
        """Whether its languages are known without the keys `languages` and `direction`."""
        return not (self.named_languages is None and self.corpus.languages is None and self.corpus.always is None)
