"""The memory of a training step, calculated from the sizes before the first step."""

from __future__ import annotations

import torch
from torch import nn

from transformer_mt.config.model import ModelConfig
from transformer_mt.config.schema import Config
from transformer_mt.kernels.loss import logits_bytes
from transformer_mt.kernels.r_drop import twin_logits_bytes
from transformer_mt.runtime.device import Machine, compiles

FLOAT = 4  # bytes


def step_bytes(
    model: nn.Module, config: Config, machine: Machine, sentences: int, source_length: int, target_length: int
) -> int:
    """Bytes of a step on a batch of this shape: weights, gradients, moments, activations and logits.

    Each weight counts with two moments, as in Adam. Muon has one, and needs as much memory again during its step.
    """
    weights = FLOAT * sum(parameter.numel() for parameter in model.parameters())
    copies = 4 + (config.training.ema_decay is not None)  # weights, gradients, two moments, moving average
    narrow = config.runtime.weights == "bfloat16"
    dtype = torch.bfloat16 if narrow else machine.dtype
    itemsize = dtype.itemsize
    cast = weights * itemsize // FLOAT * (1 + narrow) if itemsize < FLOAT else 0  # weights; narrow: gradients too
    rows = sentences * (2 if config.training.r_drop else 1)
    vocabulary = int(model.generator.out_features)  # type: ignore[union-attr, arg-type]
    on_cpu = machine.device.type == "cpu"
    if config.training.r_drop:
        logits = twin_logits_bytes(machine.device, vocabulary, sentences * target_length)
    else:
        compiled = compiles(config.runtime, machine.device)
        logits = logits_bytes(machine.device, dtype, vocabulary, sentences * target_length, compiled)
    table = FLOAT * vocabulary * config.model.d_model  # gradient of the generator
    if not on_cpu:
        table += table * itemsize // FLOAT  # of one chunk of logits
    activations = activation_bytes(config.model, rows, source_length, target_length, itemsize, on_cpu, narrow)
    return copies * weights + cast + activations + logits + table


def activation_bytes(
    sizes: ModelConfig,
    sentences: int,
    source_length: int,
    target_length: int,
    itemsize: int,
    on_cpu: bool,
    narrow: bool = False,
) -> int:
    """Bytes of the tensors that the layers keep for backward. itemsize: bytes of a number in a matrix product.

    narrow: hidden states have that size, too; otherwise 4 bytes.
    Counted from the code of the layers: a normalisation and a linear layer keep their input, attention keeps queries,
    keys, values and contexts, and dropout one byte per element. A tensor that several layers use counts once.
    """
    d_model = sizes.d_model
    # On a CPU the results of products are float32 again (kernels/linear.py), and the next product keeps a narrow copy.
    wide = FLOAT if on_cpu and not narrow else itemsize
    stream = itemsize if narrow else FLOAT
    copy = itemsize if itemsize < wide else 0
    # ReLU keeps only its output, which is also the input of the next layer.
    inner_tensors = {"relu": 1, "swiglu": 4}.get(sizes.activation, 2)
    inner = (wide * (inner_tensors + bool(sizes.feed_forward_dropout)) + copy) * sizes.d_ff
    if not sizes.has_fused_norms:
        norms = 3 * FLOAT * d_model
    else:  # fused kernels keep only their input, but PyTorch has no fused RMS normalisation on a CPU
        norms = (2 if sizes.normalization == "rms" and on_cpu else 1) * stream * d_model
    rotation = 3 * wide * d_model if sizes.positions == "rotary" else 0
    masks = d_model if sizes.dropout else 0
    encoder = 2 * norms + (2 * itemsize + 4 * wide + copy) * d_model + inner + rotation + 2 * masks
    decoder = 3 * norms + (3 * itemsize + 6 * wide + 2 * copy) * d_model + inner + rotation + 3 * masks
    ends = norms + stream * d_model + masks  # the last normalisation, its result, and the dropout of embeddings
    source_token = sizes.encoder_layers * encoder + sizes.decoder_layers * (2 * wide + copy) * d_model + ends
    target_token = sizes.decoder_layers * decoder + ends
    maps = _maps_bytes(sizes, source_length, target_length, itemsize, on_cpu)
    return sentences * (source_length * source_token + target_length * target_token + maps)


def _maps_bytes(sizes: ModelConfig, source_length: int, target_length: int, itemsize: int, on_cpu: bool) -> int:
    """Bytes of the attention maps of one sentence. Fused kernels store none, except on a CPU with dropout."""
    if sizes.attention == "fused" and not (sizes.attention_dropout and on_cpu):
        return 0
    copies = 3 if sizes.attention_dropout else 2
    encoder = sizes.encoder_layers * source_length**2
    decoder = sizes.decoder_layers * target_length * (target_length + source_length)
    return itemsize * copies * sizes.n_heads * (encoder + decoder)
