"""The `data` section: languages, corpora, cleaning, and the folder of the prepared data."""

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
    source: Language = Field(description="language to translate from: an ISO 639 code such as en or ko")
    target: Language = Field(description="language to translate into: an ISO 639 code such as en or ko")
    corpus: Many[OneCorpus] = Field(
        min_length=1, description="the sentence pairs: one corpus, or a list of corpora to use together"
    )
    temperature: Annotated[float, Field(ge=1, le=100)] | None = Field(
        None,
        description="weighs corpora by their pairs n: each is seen in proportion to n^(1/temperature); 1: as it is;"
        " null: by the key weight",
    )
    cleaning: CleaningConfig = Field(CleaningConfig(), description="rules that change or drop sentence pairs")
    max_length: Annotated[int, Field(ge=2, le=4096)] = Field(
        128,
        description="longest sentence in tokens, with its end token; drops longer training pairs, cuts longer input",
    )
    prepared: str = Field(
        "data/prepared", description="folder of the prepared data; each run has a subfolder with its name"
    )
    workers: NonNegative = Field(0, description="processes that prepare the data together; 0: one per CPU core")

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
                raise ValueError(f"corpus '{corpus.kind}' has the languages {', '.join(known)}, not {self.direction}")
        return self

    @model_validator(mode="after")
    def _one_way_of_weighing(self) -> DataConfig:
        weighted = [number for number, corpus in enumerate(self.corpus) if "weight" in corpus.model_fields_set]
        if self.temperature is not None and weighted:
            raise ValueError(
                f"`temperature` gives the weights; remove `weight` of corpus {weighted[0] + 1}, or `temperature`"
            )
        return self
