"""The `synthesis` section: text that models write, to train the final model with (`tmt synthesize`)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.direction import Tag
from transformer_mt.config.section import FileName, OneOrMany, Positive, Section

Weight = Annotated[float, Field(gt=0, le=100)]
Method = Literal["back", "forward", "diversify", "distill"]
# Of teachers: their names and seeds are given by the plan, and they must know the same data as the final model.
FIXED = ("name", "seed", "data", "synthesis")


class SynthesisConfig(Section):
    text: OneOrMany[str] | None = Field(
        None,
        description="back, forward: files with sentences to translate, one per line, or patterns; back: in the target"
        " language; forward: in the source language",
    )
    teachers: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None,
        description="models to train for each direction (and each round), with the seeds seed + 1, seed + 2, ...;"
        " null: 1 for back and forward, 3 for diversify and distill",
    )
    models: OneOrMany[str] | None = Field(
        None,
        description="runs or model folders that translate (in the first round), of either direction; null: the teachers"
        " are trained",
    )
    rounds: Positive = Field(
        1,
        le=10,
        description="diversify: how often the training pairs are translated; from the second round on by new teachers,"
        " which are trained on the real pairs and all translations so far",
    )
    ensemble: bool | None = Field(
        None,
        description="whether the models of a direction translate together, as an ensemble, or each alone all the text;"
        " null: together, except for diversify",
    )
    teacher: OneOrMany[str] = Field(
        (),
        description="keys of tokenizer, model, training, decoding and runtime that are different for teachers, such as"
        " [training.max_epochs=20]; `source` and `target` are those of the config, also for the opposite direction",
    )
    search: DecodingConfig | None = Field(
        None, description="how the text is translated; null: as `decoding` says; mostly beam search or sampling"
    )
    shard_lines: Positive = Field(
        2_000, description="sentences that are translated and saved together; an interrupted run goes on after them"
    )
    tag: Tag | None = Field(
        "<synthetic>",
        description="back: token in front of synthetic sources (tagged back-translation); null: none",
    )
    real_weight: Weight = Field(1.0, description="times that each pair of `data.corpus` is seen in an epoch")
    synthetic_weight: Weight = Field(1.0, description="times that each synthetic pair is seen in an epoch")
    min_score: float | None = Field(
        None, le=0, description="drop translations with a lower mean log-probability of their tokens; null: keep"
    )
    max_ratio: float | None = Field(
        None,
        gt=1,
        description="drop pairs if one side has more than this many times the tokens of the other; null: keep",
    )
    epochs: Positive | None = Field(
        None,
        description="training.max_epochs of the final model; null: the whole number, at least 1, that"
        " sees about as many pairs as with the real pairs alone",
    )
    folder: FileName = Field(
        "data/synthetic", description="folder of the synthetic text; each final run has a subfolder with its name"
    )

    @model_validator(mode="after")
    def _trains_or_takes(self) -> SynthesisConfig:
        problems = []
        if self.models is not None and self.rounds == 1 and (self.teachers is not None or self.teacher):
            problems.append(
                "`models` are trained already; remove `teachers` and `teacher`, or `models`"
                " (with `rounds`, teachers are for the later ones)"
            )
        for one in self.teacher:
            key = one.partition("=")[0].strip()
            if key.partition(".")[0] in FIXED:
                problems.append(f"teacher: '{key}' is the same for teachers and the final model; change it for all")
        if self.models == ():
            problems.append("`models` is empty; name a run, or remove the key")
        if self.search is not None and self.search.n_best > 1:
            problems.append("search.n_best must be 1: each sentence gets one translation")
        if problems:
            raise ValueError("\n".join(problems))
        return self
