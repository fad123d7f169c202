"""The `model` section: the Transformer's sizes and the options of its classic implementations.

The defaults are the base model of "Attention Is All You Need" (Vaswani et al. 2017, section 3 and Table 3), but for
three: `norm: pre` trains more safely than the paper's `post`; `tie_embeddings: none`, since the paper's `all` (section
3.4) needs one vocabulary for both languages; and attention and the output layer have biases (`bias`, `output_bias`).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from transformer_mt.config.section import Depth, Positive, Probability, Section, Width


class ModelConfig(Section):
    d_model: Width = Field(512, description="width of the residual stream (D)")
    n_heads: Positive = Field(8, description="attention heads (H); must divide d_model")
    d_ff: Width = Field(2048, description="inner width of the feed-forward sub-layer (F)")
    encoder_layers: Depth = Field(6, description="layers of the encoder")
    decoder_layers: Depth = Field(6, description="layers of the decoder")
    dropout: Probability = Field(
        0.1, description="dropout on each sub-layer's output and on the embeddings (section 5.4)"
    )
    attention_dropout: Probability = Field(0.0, description="dropout on the attention weights")
    feed_forward_dropout: Probability = Field(0.0, description="dropout on the feed-forward activations")
    norm: Literal["pre", "post"] = Field(
        "pre", description="normalise a sub-layer's input, or (the paper) its sum with the residual"
    )
    final_norm: bool | None = Field(
        None, description="normalise the output of each stack; null: with pre, not with post"
    )
    normalization: Literal["layer", "rms"] = Field("layer", description="layer normalisation, or root-mean-square only")
    layer_norm_epsilon: float = Field(1e-5, gt=0, lt=1, description="guards the division in normalisation")
    epsilon_on: Literal["variance", "deviation"] = Field(
        "variance",
        description="add epsilon to the variance, or to the (sample) standard deviation (The Annotated Transformer)",
    )
    positions: Literal["sinusoidal", "learned", "rotary"] = Field(
        "sinusoidal", description="how the model knows the order of tokens"
    )
    max_positions: Positive | None = Field(
        None, description="length of the table of learned positions; null: data.max_length"
    )
    scale_embeddings: bool = Field(True, description="multiply embeddings by sqrt(d_model) (section 3.4)")
    tie_embeddings: Literal["none", "decoder", "all"] = Field(
        "none",
        description="share weights: decoder input and output, or all three (needs a shared vocabulary); true means all",
    )
    activation: Literal["relu", "gelu", "swiglu"] = Field(
        "relu", description="non-linearity of the feed-forward sub-layer"
    )
    bias: bool = Field(True, description="biases in the linear layers")
    output_bias: bool = Field(True, description="bias of the output layer (the generator)")
    attention: Literal["handmade", "fused"] = Field(
        "fused",
        description="the readable attention, or PyTorch's fused kernel; same numbers, the second is faster, but"
        " not for single queries on a CPU: decoding there takes the first",
    )
    norm_kernel: Literal["handmade", "fused"] = Field(
        "fused", description="the readable normalisation, or PyTorch's fused kernel; same numbers, the second is faster"
    )
    embedding_init: Literal["normal", "xavier"] = Field(
        "normal", description="draw embeddings from N(0, 1/d_model), or Xavier-uniform as all other matrices"
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
            problems.append("rotary positions need an even width of a head (d_model / n_heads)")
        if self.positions == "sinusoidal" and self.d_model % 2:
            problems.append(f"sinusoidal positions need an even d_model, not {self.d_model}")
        if self.max_positions is not None and self.positions != "learned":
            problems.append("max_positions has a meaning only with positions: learned")
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def has_final_norm(self) -> bool:
        return self.norm == "pre" if self.final_norm is None else self.final_norm
