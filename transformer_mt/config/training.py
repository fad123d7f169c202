"""The `training` section (optimizer, schedule, batches, stopping, checkpoints) and the `runtime` section."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from transformer_mt.config.choices import chosen, name_of
from transformer_mt.config.section import NonNegative, Positive, Probability, Section

DEFAULT_BATCH_TOKENS = 4096

ScheduleName: TypeAlias = str | Section
OptimizerName: TypeAlias = str | Section
if not TYPE_CHECKING:
    ScheduleName, OptimizerName = name_of("schedule"), name_of("optimizer")


class TrainingConfig(Section):
    optimizer: OptimizerName = Field(
        "adam",
        description="Adam, AdamW (decoupled weight decay), or Muon for the matrices of the layers and AdamW elsewhere",
    )
    betas: Annotated[tuple[Probability, Probability], Field(strict=False)] = Field(
        (0.9, 0.98), description="Adam's decay rates (section 5.3)"
    )
    epsilon: float = Field(1e-9, gt=0, lt=1, description="Adam's epsilon (section 5.3)")
    weight_decay: float = Field(0.0, ge=0, lt=1, description="L2 penalty (adam) or decoupled decay (adamw, muon)")
    schedule: ScheduleName = Field("noam", description="learning rate over the steps; noam is equation 3 of the paper")
    learning_rate: float | None = Field(
        None,
        gt=0,
        lt=10,
        description="peak learning rate; null: 1e-3, and for noam (d_model * warmup_steps)^-0.5",
    )
    noam_factor: float = Field(1.0, gt=0, le=100, description="multiplies the noam schedule")
    min_learning_rate: float = Field(0.0, ge=0, lt=10, description="where cosine ends, and plateau goes no lower")
    warmup_steps: NonNegative = Field(4000, description="steps of linear warmup")
    decay_steps: Positive | None = Field(
        None, description="step at which cosine reaches its minimum; null: max_steps, else the end of max_epochs"
    )
    plateau_factor: float = Field(0.9, gt=0, lt=1, description="plateau: multiply the learning rate by this ...")
    plateau_patience: NonNegative = Field(10, description="... after more validations than this without a lower loss")

    batch_tokens: Annotated[int, Field(ge=16)] | None = Field(
        None, description="budget of a batch in tokens of the longer side, padding included; null: 4096"
    )
    batch_sentences: Positive | None = Field(None, description="batches of this many sentences instead of batch_tokens")
    bucket_by_length: bool = Field(True, description="batch sentences of similar length together")
    accumulate: Positive = Field(1, description="batches summed into one update")

    label_smoothing: Probability = Field(0.1, description="label smoothing (section 5.4)")
    clip_norm: float | None = Field(None, gt=0, description="largest norm of the gradient; null: no clipping")
    ema_decay: float | None = Field(
        None, gt=0, lt=1, description="keep an exponential moving average of the weights; null: off"
    )
    r_drop: float = Field(
        0.0,
        ge=0,
        le=100,
        description="weight of R-Drop's KL term beside the mean loss of two dropout passes: half that paper's alpha;"
        " 0: off",
    )

    max_epochs: Positive | None = Field(None, description="stop after this many passes over the data")
    max_steps: Positive | None = Field(None, description="stop after this many updates")
    max_minutes: float | None = Field(
        None, gt=0, description="stop at the first validation after this much training time"
    )
    patience: Positive | None = Field(
        None, description="stop after this many validations without improvement; null: never"
    )
    monitor: Literal["loss", "bleu"] = Field("loss", description="what counts as improvement on the validation split")
    validate_every: Positive | None = Field(None, description="updates between validations; null: each epoch")
    bleu_sentences: NonNegative = Field(500, description="validation sentences translated (greedily) for BLEU; 0: none")

    checkpoint_every: Positive | None = Field(
        None, description="updates between checkpoints; null: with each validation"
    )
    keep_last: Positive = Field(2, description="newest checkpoints to keep")
    keep_best: NonNegative = Field(1, description="best checkpoints to keep beside them")
    average: Literal["none", "last", "best"] = Field(
        "none", description="the final model: the best checkpoint (with keep_best 0 the newest), or an average"
    )
    average_checkpoints: Positive = Field(5, description="how many checkpoints are averaged; as many are kept")

    @model_validator(mode="after")
    def _fits_together(self) -> TrainingConfig:
        schedule, _ = chosen("schedule", self.schedule)
        problems: list[str] = schedule.problems(self)
        if self.batch_tokens is not None and self.batch_sentences is not None:
            problems.append("batch_tokens and batch_sentences exclude each other; give one of them")
        if self.max_epochs is None and self.max_steps is None and self.max_minutes is None:
            problems.append("nothing ends the training; give max_epochs, max_steps or max_minutes")
        if self.monitor == "bleu" and self.bleu_sentences == 0:
            problems.append("monitor: bleu needs bleu_sentences above 0")
        if self.average == "best" and self.keep_best == 0:
            problems.append("average: best needs keep_best of at least 1")
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def token_budget(self) -> int | None:
        """Tokens of a batch, or None where batches count sentences."""
        if self.batch_sentences is not None:
            return None
        return self.batch_tokens or DEFAULT_BATCH_TOKENS

    @property
    def kept_last(self) -> int:
        return max(self.keep_last, self.average_checkpoints if self.average == "last" else 0)


class RuntimeConfig(Section):
    device: Literal["auto", "cpu", "cuda", "mps"] = Field(
        "auto", description="where to compute; auto: cuda, else mps, else cpu"
    )
    precision: Literal["auto", "fast", "float32", "bfloat16", "float16"] = Field(
        "auto",
        description="type of matrix products; auto: bfloat16 where CUDA has it, else float32; fast: on CPUs with"
        " bfloat16 instructions too, as far as PyTorch can tell",
    )
    threads: Annotated[int, Field(ge=0, le=1024)] = Field(
        0, description="CPU threads of matrix products; 0: one for each core, shared among the processes of a machine"
    )
    compile: bool = Field(
        False, description="torch.compile the model: for GPUs (slower on a CPU, and needs a C++ compiler there)"
    )
    tf32: bool = Field(True, description="let CUDA use TF32 for float32 matrix products")
    tensorboard: bool = Field(
        False, description="also write TensorBoard events (extra: pip install 'transformer_mt[tensorboard]')"
    )
