"""The `decoding` section: how translations are searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import Field, model_validator

from transformer_mt.config.choices import chosen, name_of
from transformer_mt.config.section import NonNegative, Positive, Section

DEFAULT_BATCH_TOKENS = 12_288
MOST_HYPOTHESES = 256  # of a beam, and of a sentence in the result

SearchName: TypeAlias = str | Section
if not TYPE_CHECKING:
    SearchName = name_of("search")


class DecodingConfig(Section):
    method: SearchName = Field(
        "beam",
        description="beam: beam search; sample: random sampling; mbr: minimum Bayes risk, the candidate that is most"
        " similar to the others",
    )
    beam: Positive = Field(
        5, le=MOST_HYPOTHESES, description="hypotheses that beam search keeps; 1: greedy search; more is slower"
    )
    length_penalty: float = Field(
        0.6,
        ge=0,
        le=10,
        description="alpha of the length penalty ((5 + length) / 6)^alpha (GNMT); higher: longer translations; 0: none",
    )
    coverage_penalty: float = Field(
        0.0,
        ge=0,
        le=10,
        description="beta of the coverage penalty (GNMT), against source words with too little attention (of the first"
        " model); 0: none",
    )
    n_best: Positive = Field(1, le=MOST_HYPOTHESES, description="translations to return for each sentence")
    max_length_ratio: float = Field(
        2.0,
        ge=0,
        le=50,
        description="longest translation in tokens: this many times the tokens of the source, plus max_length_offset",
    )
    max_length_offset: NonNegative = Field(
        30, le=100_000, description="tokens that a translation may have beyond max_length_ratio times the source"
    )
    min_length_ratio: float = Field(
        0.0,
        ge=0,
        le=5,
        description="shortest translation in tokens: this many times the tokens of the source; 0: no limit",
    )
    no_repeat_ngram: NonNegative = Field(
        0, description="no sequence of this many tokens occurs twice in a translation; 0: no limit"
    )
    temperature: float = Field(
        1.0,
        ge=0.001,
        le=10,
        description="sampling: divides the logits; below 1: more probable tokens; above 1: more variety",
    )
    top_k: NonNegative = Field(0, description="sampling: draw from the k most probable tokens; 0: from all")
    top_p: float = Field(
        1.0,
        ge=0.001,
        le=1,
        description="sampling: draw from the most probable tokens with this total probability; 1: from all",
    )
    candidates: Literal["samples", "beam"] = Field(
        "samples",
        description="mbr: where candidates come from; samples: random samples of equal weight; beam: a beam search,"
        " with weights exp(score)",
    )
    samples: Positive = Field(32, le=1024, description="mbr: number of random samples")
    utility: Literal["chrf", "bleu"] = Field(
        "chrf", description="mbr: similarity of two candidates: sentence-level chrF or BLEU"
    )
    replace_unknown: bool = Field(False, description="replace <unk> by the source word with the highest attention")
    batch_tokens: Positive | None = Field(
        None,
        description="size of a batch: source tokens times beam; null: 12288, on a CUDA GPU up to 524288, as its memory"
        " allows; lower it if memory runs out",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> DecodingConfig:
        search, _ = chosen("search", self.method)
        problems = search.problems(self)
        if self.max_length_ratio == 0 and self.max_length_offset == 0:
            problems.append(
                "max_length_ratio and max_length_offset are both 0, so a translation cannot have any tokens"
            )
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def token_budget(self) -> int:
        """Source tokens times beam in a batch, for engines that do not choose it themselves."""
        return self.batch_tokens or DEFAULT_BATCH_TOKENS
