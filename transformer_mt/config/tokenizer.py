"""The `tokenizer` section: what all kinds of tokenizers share. What a kind adds is said in its own file (`choices`)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from transformer_mt.config.choices import choice
from transformer_mt.config.section import Positive, Section

Case = Literal["keep", "lower", "true"]


class TokenizerConfig(Section):
    kind: str
    case: Case = Field("keep", description="keep the case, lower it, or truecase (sentence starts as elsewhere)")
    shared: bool = Field(False, description="one vocabulary for both languages")
    training_sentences: Positive = Field(
        1_000_000,
        description="at most this many training pairs are read to train the tokenizer (bounds its memory)",
    )

    @field_validator("case", mode="before", json_schema_input_type=Case | Literal[True])
    @classmethod
    def _true_case(cls, value: Any) -> Any:
        return "true" if value is True else value  # YAML reads `case: true` as a boolean

    @property
    def tokenizer(self) -> Any:
        """The class of this kind."""
        return choice("tokenizer", self.kind)

    @property
    def size(self) -> int | None:
        """Tokens of the vocabulary, if these options fix their number."""
        return None

    @property
    def is_random(self) -> bool:
        """Whether segmentations are drawn at random while training."""
        return False


class WordsConfig(TokenizerConfig):
    """For tokenizers that have a list of words by frequency as their vocabulary."""

    min_frequency: Positive = Field(2, description="words seen less often become <unk>")
    max_size: Positive | None = Field(None, description="most words to keep, the four marks apart; null: all")
