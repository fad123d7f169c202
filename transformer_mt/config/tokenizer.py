"""The `tokenizer` section: the keys that all kinds of tokenizers share. The class of a kind adds its own keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from transformer_mt.config.choices import choice
from transformer_mt.config.section import NonNegative, Positive, Section

Case = Literal["keep", "lower", "true"]


class TokenizerConfig(Section):
    kind: str
    case: Case = Field(
        "keep",
        description="letter case; lower: all lower case; true: first word of a sentence as it is written elsewhere"
        " (truecasing)",
    )
    shared: bool = Field(
        False, description="one vocabulary for both languages; useful if they have the same letters (en-de, not ko-en)"
    )
    training_sentences: Positive = Field(
        1_000_000,
        description="at most this many training pairs train the tokenizer; fewer need less memory",
    )

    extend: NonNegative = Field(
        0,
        description="training.start_from: at most this many tokens of the new corpus are added to the vocabulary of"
        " that model",
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
        """Tokens of the vocabulary, if the options determine their number."""
        return None

    @property
    def files(self) -> list[Path]:
        """Files that `train` reads besides the sentences."""
        return []

    @property
    def is_random(self) -> bool:
        """Whether training draws random segmentations."""
        return getattr(self, "sampling", 0.0) > 0


class WordsConfig(TokenizerConfig):
    """For tokenizers with a vocabulary of the most frequent words."""

    min_frequency: Positive = Field(2, description="words that occur less often become <unk>")
    max_size: Positive | None = Field(
        None, description="largest vocabulary in words, without the four special tokens; null: no limit"
    )
