"""The `training` section (optimizer, schedule, batches, stopping, checkpoints) and the `runtime` section."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from transformer_mt.config.choices import CHOICES, choice, chosen, name_of
from transformer_mt.config.section import FileName, Many, NonNegative, Positive, Probability, Section

DEFAULT_BATCH_TOKENS = 4096

ScheduleName: TypeAlias = str | Section
OptimizerName: TypeAlias = str | Section
TrackerName: TypeAlias = str
if not TYPE_CHECKING:
    ScheduleName, OptimizerName, TrackerName = name_of("schedule"), name_of("optimizer"), name_of("tracker")


def _schedules(key: str) -> str:
    """The schedules that read this key, for its description."""
    return ", ".join(name for name in CHOICES["schedule"] if key in choice("schedule", name).keys)


class TrainingConfig(Section):
    start_from: FileName | None = Field(
        None,
        description="folder of a model or run whose weights and tokenizers this training starts with (fine-tuning);"
        " the sections `model` and `tokenizer` have its values, as far as they are left out; null: random weights",
    )
    freeze: Many[str] = Field(
        (),
        description="start_from: parts of the model that do not change, such as encoder, embeddings or"
        " decoder.layers.0",
    )
    optimizer: OptimizerName = Field(
        "adam",
        description="adam: as in the paper; adamw: with decoupled weight decay; muon: Muon for the matrices of the"
        " layers, AdamW for all else",
    )
    betas: Annotated[tuple[Probability, Probability], Field(strict=False)] = Field(
        (0.9, 0.98), description="beta1 and beta2 of Adam (section 5.3)"
    )
    epsilon: float = Field(1e-9, gt=0, lt=1, description="epsilon of Adam (section 5.3)")
    weight_decay: float = Field(
        0.0, ge=0, lt=1, description="keeps weights small: an L2 penalty (adam) or decoupled decay (adamw, muon)"
    )
    schedule: ScheduleName = Field(
        "noam", description="how the learning rate changes during training; noam is equation 3 of the paper"
    )
    learning_rate: float | None = Field(
        None,
        gt=0,
        lt=10,
        description="highest learning rate, after the warmup; null: 0.001; noam always takes"
        " noam_factor * (d_model * warmup_steps)^-0.5",
    )
    noam_factor: float = Field(1.0, gt=0, le=100, description="noam: multiplies the learning rate")
    min_learning_rate: float = Field(
        0.0, ge=0, lt=10, description=f"{_schedules('min_learning_rate')}: lowest learning rate"
    )
    warmup_steps: NonNegative = Field(
        4000, description="updates at the start in which the learning rate rises; usually at most a tenth of all"
    )
    decay_steps: Positive | None = Field(
        None,
        description="cosine: the update that reaches the lowest learning rate; null: the last of max_steps or"
        " max_epochs",
    )
    plateau_factor: float = Field(
        0.9, gt=0, lt=1, description="plateau: factor of the learning rate when the validation loss stops falling"
    )
    plateau_patience: NonNegative = Field(
        10, description="plateau: validations without a lower loss to wait before the learning rate is reduced"
    )

    batch_tokens: Annotated[int, Field(ge=16)] | None = Field(
        None,
        description="size of a batch in tokens of the longer side, with padding; null: 4096; less needs less memory",
    )
    batch_sentences: Positive | None = Field(
        None, description="size of a batch in sentence pairs, instead of batch_tokens"
    )
    bucket_by_length: bool = Field(
        True, description="put sentences of similar length into a batch: less padding, faster"
    )
    packing: bool = Field(
        False,
        description="for CUDA GPUs: put sentences one behind the other into streams of constant length, in random"
        " order, instead of padding them; batch_tokens is the length of the longer stream",
    )
    accumulate: Positive = Field(
        1, description="batches that make one update; 4: like batches of four times the size, with less memory"
    )

    label_smoothing: Probability = Field(
        0.1, description="share of the target's probability that is spread over the vocabulary (section 5.4); 0: none"
    )
    clip_norm: float | None = Field(
        None, gt=0, description="largest norm of the gradient; larger gradients are scaled down; null: no limit"
    )
    ema_decay: float | None = Field(
        None, gt=0, lt=1, description="use a moving average of the weights with this decay, such as 0.999; null: off"
    )
    r_drop: float = Field(
        0.0,
        ge=0,
        le=100,
        description="weight of R-Drop's KL divergence between two passes with different dropout (half of that paper's"
        " alpha); 0: off",
    )

    max_epochs: Positive | None = Field(None, description="stop after this many passes over the training data")
    max_steps: Positive | None = Field(None, description="stop after this many updates")
    max_minutes: float | None = Field(
        None,
        gt=0,
        description="validate and stop after this many minutes of training, in the middle of an epoch if needed",
    )
    patience: Positive | None = Field(
        None, description="stop after this many validations without improvement; null: never"
    )
    monitor: Literal["loss", "bleu"] = Field(
        "loss", description="the validation score that decides which checkpoint is best"
    )
    validate_every: Positive | None = Field(None, description="updates between validations; null: one epoch")
    bleu_sentences: NonNegative = Field(
        500,
        description="validation sentences (of each direction, if there are several) that each validation translates"
        " (greedily) for BLEU; 0: no BLEU; the final model is then the candidate with the lowest validation loss",
    )

    checkpoint_every: Positive | None = Field(
        None,
        description="updates between checkpoints; null: one at each validation, and another one whenever the last is 30"
        " minutes old",
    )
    keep_last: Positive = Field(2, description="number of newest checkpoints to keep")
    keep_best: NonNegative = Field(1, description="number of best checkpoints to keep, besides the newest")
    average: Literal["none", "last", "best"] = Field(
        "none",
        description="a mean that may become the final model; last, best: of the last or best checkpoints. The mean, the"
        " last and the best checkpoint are compared on the validation split; the best of them is the final model",
    )
    average_checkpoints: Positive = Field(
        5, description="average: number of checkpoints in the mean; at least this many are kept"
    )

    tracker: TrackerName | None = Field(
        None,
        description="also send config, figures and scores to Weights & Biases (wandb) or MLflow (mlflow); needs: pip"
        " install wandb, or mlflow-skinny; addresses and keys come from their environment variables",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> TrainingConfig:
        schedule, _ = chosen("schedule", self.schedule)
        problems: list[str] = schedule.problems(self)
        if self.batch_tokens is not None and self.batch_sentences is not None:
            problems.append("batch_tokens and batch_sentences cannot both be set; remove one of them")
        if self.packing and self.batch_sentences is not None:
            problems.append("packing measures batches in tokens; set batch_tokens instead of batch_sentences")
        if self.max_epochs is None and self.max_steps is None and self.max_minutes is None:
            problems.append("no limit is set; set max_epochs, max_steps or max_minutes")
        if self.monitor == "bleu" and self.bleu_sentences == 0:
            problems.append("monitor: bleu needs bleu_sentences above 0")
        if self.freeze and self.start_from is None:
            problems.append("freeze needs start_from; without it, the frozen weights would stay random")
        if self.average == "best" and self.keep_best == 0:
            problems.append("average: best needs keep_best of at least 1")
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def token_budget(self) -> int | None:
        """Tokens of a batch, or None if batches are measured in sentences."""
        if self.batch_sentences is not None:
            return None
        return self.batch_tokens or DEFAULT_BATCH_TOKENS

    @property
    def kept_last(self) -> int:
        return max(self.keep_last, self.average_checkpoints if self.average == "last" else 0)


class RuntimeConfig(Section):
    device: Literal["auto", "cpu", "cuda", "mps"] = Field(
        "auto", description="where to compute; auto: an NVIDIA GPU (cuda), else an Apple GPU (mps), else the CPU"
    )
    precision: Literal["auto", "fast", "float32", "bfloat16", "float16"] = Field(
        "auto",
        description="number format of matrix products; auto: bfloat16 on CUDA GPUs that support it, else float32; fast:"
        " bfloat16 also on CPUs that are faster with it",
    )
    weights: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="number format of weights and hidden states in training; bfloat16: a rounded copy of the weights"
        " computes, for large models on GPUs; what is updated, validated and saved is always float32",
    )
    threads: Annotated[int, Field(ge=0, le=1024)] = Field(
        0, description="CPU threads; 0: one per core, divided among the training processes of a machine"
    )
    compile: bool | Literal["auto"] = Field(
        "auto",
        description="train with torch.compile; auto: on CUDA GPUs, if a compiler works there (on a CPU it is slower and"
        " needs a C++ compiler)",
    )
    tf32: bool = Field(True, description="CUDA: compute float32 matrix products in TF32, faster and less exact")
    prefetch: Annotated[int, Field(ge=0, le=1024)] | Literal["auto"] = Field(
        "auto",
        description="batches that are made ready ahead, in another thread; 0: none; auto: 16 on CUDA GPUs, so that they"
        " do not wait, and 0 on other devices: on a CPU, the thread takes time from the training",
    )
    tensorboard: bool = Field(False, description="also write TensorBoard events; needs: pip install tensorboard")
