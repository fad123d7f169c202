"""The whole config of a run, and the rules between its sections.

Each key is defined once: as a field with type, range, default and one sentence. The configuration reference
(docs/configuration.md) is generated from these fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import Discriminator, Field, SerializerFunctionWrapHandler, Tag, model_serializer, model_validator

from transformer_mt.config.choices import section_of
from transformer_mt.config.data import DataConfig
from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.direction import SEVERAL, Direction
from transformer_mt.config.languages import two_letters
from transformer_mt.config.model import ModelConfig
from transformer_mt.config.section import NAME, Section, Seed
from transformer_mt.config.synthesis import SynthesisConfig
from transformer_mt.config.tokenizer import TokenizerConfig
from transformer_mt.config.training import RuntimeConfig, TrainingConfig

OneTokenizer: TypeAlias = TokenizerConfig
if not TYPE_CHECKING:
    OneTokenizer = section_of("tokenizer")


class SidesConfig(Section):
    """One tokenizer for each side."""

    source: OneTokenizer = Field(description="tokenizer of the source language, of any kind")
    target: OneTokenizer = Field(description="tokenizer of the target language, of any kind")


def _form(value: Any) -> str:
    has_sides = isinstance(value, SidesConfig) or (isinstance(value, dict) and {"source", "target"} & set(value))
    return "sides" if has_sides else "both"


AnyTokenizer = Annotated[
    Annotated[OneTokenizer, Tag("both")] | Annotated[SidesConfig, Tag("sides")], Discriminator(_form)
]


class Config(Section):
    name: Annotated[str, Field(pattern=NAME, max_length=100)] = Field(
        description="name of the run, which is saved in runs/NAME: letters, digits, `.`, `_` and `-`"
    )
    seed: Seed = Field(1, description="seed of the initial weights, of dropout and of the order of batches")
    data: DataConfig = Field(description="languages, corpora and cleaning")
    tokenizer: AnyTokenizer = Field(
        description="how text becomes tokens: one kind for both languages, or `source` and `target` separately"
    )
    model: ModelConfig = Field(ModelConfig(), description="sizes and variants of the Transformer")
    training: TrainingConfig = Field(description="optimizer, learning rate, batches, end and checkpoints")
    decoding: DecodingConfig = Field(DecodingConfig(), description="how translations are searched")
    synthesis: SynthesisConfig = Field(
        SynthesisConfig(), description="for `tmt synthesize`: teachers, the text they translate, and what is kept of it"
    )
    runtime: RuntimeConfig = Field(RuntimeConfig(), description="device, number format, threads")

    @model_serializer(mode="wrap")
    def _written(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without `synthesis` if nothing is set there, so that configs of an older version are written as before."""
        values: dict[str, Any] = serialize(self)
        if self.synthesis == SynthesisConfig():
            values.pop("synthesis", None)
        return values

    @model_validator(mode="after")
    def _fits_together(self) -> Config:
        problems = []
        if self.model.tie_embeddings == "all" and not self.has_shared_vocabulary:
            needs = "needs one vocabulary for both sides; with two, write tie_embeddings: decoder"
            problems.append(f"model.tie_embeddings: all {needs}")
        elif self.model.tie_embeddings == "all" and self.data.tags and not self.has_shared_tokenizer:
            alone = "are in the vocabulary of the source alone, because each language has its own tokenizer"
            problems.append(f"model.tie_embeddings: all needs one vocabulary, but tags {alone}; use sentencepiece")
        if isinstance(self.tokenizer, SidesConfig) and (self.tokenizer.source.shared or self.tokenizer.target.shared):
            problems.append("tokenizer.shared cannot be true if source and target have separate tokenizers")
        if self.model.max_positions is not None and self.model.max_positions < self.data.max_length:
            problems.append(
                f"data.max_length {self.data.max_length} is more than model.max_positions {self.model.max_positions}"
            )
        if self.runtime.weights == "bfloat16":
            if not self.model.has_fused_norms:
                problems.append(
                    "runtime.weights: bfloat16 needs model.norm_kernel: fused and model.epsilon_on: variance"
                )
            if self.runtime.precision == "float16":
                problems.append("runtime.weights: bfloat16 needs a runtime.precision of auto, bfloat16 or float32")
        if self.training.packing and not self.model.fits_streams:
            excluded = "needs model.attention: fused and model.attention_dropout: 0; its attention has no dropout"
            problems.append(f"training.packing {excluded}")
        for side, tokenizer, language in (
            ("source", self.source_tokenizer, self.data.source_language),
            ("target", self.target_tokenizer, self.data.target_language),
        ):
            if language == SEVERAL and tokenizer.tokenizer.one_language:
                several = f"is for one language, but the {side} side of data.directions has several"
                problems.append(f"tokenizer kind '{tokenizer.kind}' {several}; use sentencepiece")
            if language == SEVERAL and getattr(tokenizer, "morphemes", "none") != "none":  # of sentencepiece
                korean = f"is for Korean alone, but the {side} side of data.directions has several languages"
                problems.append(f"tokenizer option 'morphemes' {korean}; remove it")
        sides = self.source_tokenizer, self.target_tokenizer
        if not self._has_korean and any(getattr(one, "morphemes", "none") != "none" for one in sides):
            problems.append("tokenizer option 'morphemes' is for Korean, which is no language of data; remove it")
        if self.has_shared_vocabulary and getattr(self.source_tokenizer, "morphemes", "none") != "none":
            problems.append("tokenizer.morphemes applies to Korean only, so tokenizer.shared cannot be true with it")
        if self.extends_vocabulary and self.training.start_from is None:
            problems.append("tokenizer.extend needs training.start_from; otherwise raise the size of the vocabulary")
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def _has_korean(self) -> bool:
        return any(two_letters(code) == "ko" for direction in self.data.all_directions for code in direction)

    def towards(self, direction: Direction) -> Config:
        """This config for requests of one direction; see `DataConfig.towards`."""
        data = self.data.towards(direction)
        return self if data is self.data else self.model_copy(update={"data": data})

    @property
    def extends_vocabulary(self) -> bool:
        return bool(self.source_tokenizer.extend or self.target_tokenizer.extend)

    @property
    def source_tokenizer(self) -> OneTokenizer:
        return self.tokenizer.source if isinstance(self.tokenizer, SidesConfig) else self.tokenizer

    @property
    def target_tokenizer(self) -> OneTokenizer:
        return self.tokenizer.target if isinstance(self.tokenizer, SidesConfig) else self.tokenizer

    @property
    def has_shared_vocabulary(self) -> bool:
        return not isinstance(self.tokenizer, SidesConfig) and self.tokenizer.shared

    @property
    def has_shared_tokenizer(self) -> bool:
        """Whether one tokenizer splits both languages."""
        return self.has_shared_vocabulary and not self.source_tokenizer.tokenizer.one_language

    @property
    def max_positions(self) -> int:
        """Rows of a table of learned positions: enough for max_length tokens."""
        return self.model.max_positions or self.data.max_length
