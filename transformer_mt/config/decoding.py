"""The `decoding` section: how the best translation is searched for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import Field, model_validator

from transformer_mt.config.choices import chosen, name_of
from transformer_mt.config.section import NonNegative, Positive, Section

SearchName: TypeAlias = str | Section
if not TYPE_CHECKING:
    SearchName = name_of("search")


class DecodingConfig(Section):
    method: SearchName = Field(
        "beam", description="beam search (beam 1 is greedy), sampling, or minimum Bayes risk over candidates"
    )
    beam: Positive = Field(5, le=256, description="width of the beam; 1: greedy")
    length_penalty: float = Field(
        0.6, ge=0, le=10, description="alpha of the GNMT length penalty ((5 + length) / 6)^alpha; 0: none"
    )
    coverage_penalty: float = Field(
        0.0, ge=0, le=10, description="beta of the GNMT coverage penalty, by the attention of the first model; 0: none"
    )
    n_best: Positive = Field(1, le=256, description="translations to return for a sentence")
    max_length_ratio: float = Field(
        2.0, ge=0, le=50, description="longest translation: this many times the source's tokens ..."
    )
    max_length_offset: NonNegative = Field(30, description="... plus this")
    min_length_ratio: float = Field(
        0.0, ge=0, le=5, description="shortest translation, relative to the source's tokens"
    )
    no_repeat_ngram: NonNegative = Field(0, description="never repeat a run of this many tokens; 0: allow")
    temperature: float = Field(1.0, ge=0.001, le=10, description="sampling: divides the logits")
    top_k: NonNegative = Field(0, description="sampling: only the k likeliest tokens; 0: all")
    top_p: float = Field(
        1.0, ge=0.001, le=1, description="sampling: only the likeliest tokens that sum to this probability"
    )
    candidates: Literal["samples", "beam"] = Field(
        "samples",
        description="mbr: where candidates come from: independent samples, of equal weight, or a beam search, each"
        " weighted by exp(score)",
    )
    samples: Positive = Field(32, le=1024, description="mbr: number of samples")
    utility: Literal["chrf", "bleu"] = Field(
        "chrf", description="mbr: how alike two candidates are: sentence-level chrF or BLEU"
    )
    replace_unknown: bool = Field(False, description="replace <unk> by the source word with the highest attention")
    batch_tokens: Positive = Field(12288, description="budget of a decoding batch in source tokens times beam")

    @model_validator(mode="after")
    def _fits_together(self) -> DecodingConfig:
        search, _ = chosen("search", self.method)
        problems = search.problems(self)
        if self.max_length_ratio == 0 and self.max_length_offset == 0:
            problems.append("max_length_ratio and max_length_offset are both 0: no translation would fit")
        if problems:
            raise ValueError("\n".join(problems))
        return self
