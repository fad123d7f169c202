"""The `model` section: sizes of the Transformer, and the variants that well-known implementations use.

The defaults are the base model of "Attention Is All You Need" (Vaswani et al. 2017, section 3 and Table 3), with three
differences: `norm: pre` trains more stably than the paper's `post`; `tie_embeddings: none`, because the paper's `all`
(section 3.4) needs one vocabulary for both languages; and attention and the output layer have biases.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from transformer_mt.config.section import Depth, Positive, Probability, Section, Width


class ModelConfig(Section):
    d_model: Width = Field(512, description="size of the vector of a token in every layer (D)")
    n_heads: Positive = Field(8, description="attention heads (H); d_model must be divisible by it")
    d_ff: Width = Field(2048, description="inner size of the feed-forward sub-layer (F)")
    encoder_layers: Depth = Field(6, description="layers of the encoder")
    decoder_layers: Depth = Field(6, description="layers of the decoder")
    dropout: Probability = Field(
        0.1,
        description="dropout on the output of each sub-layer and on the embeddings (section 5.4); more for little data",
    )
    attention_dropout: Probability = Field(0.0, description="dropout on the attention weights")
    feed_forward_dropout: Probability = Field(0.0, description="dropout on the feed-forward activations")
    norm: Literal["pre", "post"] = Field(
        "pre",
        description="pre: normalise the input of a sub-layer; post: the sum of its input and output, as in the paper",
    )
    final_norm: bool | None = Field(
        None, description="normalise the output of the encoder and of the decoder; null: only with norm: pre"
    )
    normalization: Literal["layer", "rms"] = Field(
        "layer", description="layer normalisation, or RMSNorm: without mean and bias"
    )
    layer_norm_epsilon: float = Field(
        1e-5, gt=0, lt=1, description="small number that prevents a division by zero in the normalisation"
    )
    epsilon_on: Literal["variance", "deviation"] = Field(
        "variance",
        description="add layer_norm_epsilon to the variance, or to the standard deviation (The Annotated Transformer);"
        " of normalization: layer only",
    )
    positions: Literal["sinusoidal", "learned", "rotary"] = Field(
        "sinusoidal",
        description="how the model knows the order of tokens: sines and cosines (section 3.5), a learned table, or"
        " rotated queries and keys",
    )
    max_positions: Width | None = Field(None, description="learned positions: rows of the table; null: data.max_length")
    scale_embeddings: bool = Field(True, description="multiply embeddings by sqrt(d_model) (section 3.4)")
    tie_embeddings: Literal["none", "decoder", "all"] = Field(
        "none",
        description="share weights; decoder: target embedding and output layer; all: source embedding too, which needs"
        " tokenizer.shared; true means all",
    )
    activation: Literal["relu", "gelu", "silu", "swiglu"] = Field(
        "relu", description="activation function of the feed-forward sub-layer; silu is also called swish"
    )
    bias: bool = Field(True, description="biases in attention and feed-forward")
    output_bias: bool = Field(True, description="bias of the output layer")
    attention: Literal["handmade", "fused"] = Field(
        "fused",
        description="handmade: as in the paper; fused: by kernels, the same up to rounding, faster",
    )
    norm_kernel: Literal["handmade", "fused"] = Field(
        "fused",
        description="handmade: normalisation as a formula; fused: the same up to rounding by PyTorch's kernel, faster",
    )
    embedding_init: Literal["normal", "xavier"] = Field(
        "normal",
        description="initial embeddings; normal: from N(0, 1/d_model); xavier: Xavier-uniform, as all other matrices",
    )

    @field_validator("tie_embeddings", mode="before", json_schema_input_type=Literal["none", "decoder", "all"] | bool)
    @classmethod
    def _yes_or_no(cls, value: Any) -> Any:
        return {True: "all", False: "none"}[value] if isinstance(value, bool) else value

    @model_validator(mode="after")
    def _fits_together(self) -> ModelConfig:
        problems = []
        if self.d_model % self.n_heads:
            problems.append(f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}")
        elif self.positions == "rotary" and (self.d_model // self.n_heads) % 2:
            problems.append(f"rotary positions need an even d_model / n_heads, not {self.d_model // self.n_heads}")
        if self.positions == "sinusoidal" and self.d_model % 2:
            problems.append(f"sinusoidal positions need an even d_model, not {self.d_model}")
        if self.max_positions is not None and self.positions != "learned":
            problems.append("max_positions is only for positions: learned")
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def has_fused_norms(self) -> bool:
        """Whether PyTorch's kernels compute the normalisations: their sums are float32, whatever the weights are."""
        return self.norm_kernel == "fused" and self.epsilon_on == "variance"

    @property
    def fits_streams(self) -> bool:
        """Whether it can be trained with `training.packing`, whose attention is always fused and has no dropout."""
        return self.attention != "handmade" and not self.attention_dropout

    @property
    def has_final_norm(self) -> bool:
        return self.norm == "pre" if self.final_norm is None else self.final_norm
