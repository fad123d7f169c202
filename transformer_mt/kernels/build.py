"""Builds a model for a device: picks the kernels that its parts use, or compiles its layers."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext

import torch

from transformer_mt.config.model import ModelConfig
from transformer_mt.config.schema import Config
from transformer_mt.kernels.attention import cpu_attention, fused_attention
from transformer_mt.kernels.changed import require_same_parts
from transformer_mt.kernels.dropout import ByteDropout, FusedDropout
from transformer_mt.kernels.linear import CpuLinear, FusedLinear
from transformer_mt.kernels.normalization import FusedLayerNorm, FusedRMSNorm
from transformer_mt.model import attention, normalization
from transformer_mt.model.parts import Parts
from transformer_mt.model.transformer import Transformer

MOST_GRAPHS = 64  # of a function in a process: `tmt tune` trains many models in one


def parts_for(config: ModelConfig, device: torch.device | str) -> Parts:
    """The fastest parts for a device, except those that the config sets to `handmade`, as in the paper."""
    on_cpu = torch.device(device).type == "cpu"
    fused = cpu_attention if on_cpu else fused_attention
    by_hand, norm_by_hand = config.attention == "handmade", config.norm_kernel == "handmade"
    return Parts(
        linear=CpuLinear if on_cpu else FusedLinear,
        dropout=ByteDropout if on_cpu else FusedDropout,
        layer_norm=normalization.LayerNorm if norm_by_hand else FusedLayerNorm,
        rms_norm=normalization.RMSNorm if norm_by_hand else FusedRMSNorm,
        attention=attention.scaled_dot_product_attention if by_hand else fused,
    )


def build_model(
    config: Config, source_vocab: int, target_vocab: int, device: torch.device | str = "cpu"
) -> Transformer:
    """The model that a config describes, on the device. Its weights are drawn by torch's CPU generator.

    Raises TmtError if all embeddings are tied and the vocabularies differ in size, or if a readable part was changed
    that a kernel computes instead.
    """
    require_same_parts(config.model)
    parts = parts_for(config.model, device)
    model = Transformer(config.model, source_vocab, target_vocab, max_positions=config.max_positions, parts=parts)
    return model.to(device)


def compile_layers(model: Transformer) -> None:
    """Compile the layers, for batches of all shapes.

    All layers of a stack share one graph. A graph of the whole model would take several times as long to compile.
    Changes settings of torch.compile for this process.
    """
    import torch._dynamo.config  # here, because it takes long
    import torch.fx.experimental._config

    torch._dynamo.config.specialize_float = True  # else dropout and epsilon become tensors on the CPU
    torch._dynamo.config.recompile_limit = MOST_GRAPHS
    torch._dynamo.config.optimize_ddp = False  # else several processes cut each layer in two; gradients follow each
    torch.fx.experimental._config.use_duck_shape = False  # else equal lengths in the first batch need a graph later
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.compile(dynamic=True)


def uncompiled() -> AbstractContextManager[object]:
    """Inside, compiled layers run as written: a few batches take less time than compiling for them."""
    has_compiled = "torch._dynamo" in sys.modules  # it takes long to import
    return torch.compiler.set_stance("force_eager") if has_compiled else nullcontext()
