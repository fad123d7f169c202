"""The `data` section: which languages, which corpora, how they are cleaned, and where prepared data goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import Field, field_validator, model_validator

from transformer_mt.config.choices import section_of
from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.corpus import CorpusConfig
from transformer_mt.config.section import Language, Many, NonNegative, Section

OneCorpus: TypeAlias = CorpusConfig
if not TYPE_CHECKING:
    OneCorpus = section_of("corpus")


class DataConfig(Section):
    source: Language = Field(description="language to translate from (ISO code)")
    target: Language = Field(description="language to translate into (ISO code)")
    corpus: Many[OneCorpus] = Field(min_length=1, description="one corpus, or a list of corpora to concatenate")
    cleaning: CleaningConfig = Field(CleaningConfig(), description="cleaning rules")
    max_length: Annotated[int, Field(ge=2, le=4096)] = Field(
        128,
        description="longest sentence in tokens, end mark included; longer training pairs are dropped, "
        "longer input is cut",
    )
    prepared: str = Field(
        "data/prepared", description="folder that receives prepared corpora, each under the run's name"
    )
    workers: NonNegative = Field(0, description="processes that prepare; 0: one for each core")

    @property
    def direction(self) -> str:
        """Both languages, as `de-en`."""
        return f"{self.source}-{self.target}"

    @field_validator("corpus", mode="before", json_schema_input_type=OneCorpus | tuple[OneCorpus, ...])
    @classmethod
    def _several(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _languages(self) -> DataConfig:
        if self.source == self.target:
            raise ValueError(f"source and target are both '{self.source}'; a translator needs two languages")
        for corpus in self.corpus:
            known = corpus.corpus.languages
            if known and not {self.source, self.target} <= set(known):
                raise ValueError(f"corpus '{corpus.kind}' has {', '.join(known)}, not {self.direction}")
        return self
