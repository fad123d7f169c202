"""How much memory a training step takes, calculated from the sizes before the first step."""

from __future__ import annotations

from torch import nn

from transformer_mt.config.model import ModelConfig
from transformer_mt.config.schema import Config
from transformer_mt.kernels.loss import rows_at_a_time
from transformer_mt.runtime.device import Machine

FLOAT = 4


def step_bytes(
    model: nn.Module, config: Config, machine: Machine, sentences: int, source_length: int, target_length: int
) -> int:
    """Bytes of a step on a batch of this shape: weights, gradients, moments, tensors for backward, and logits.

    It counts two moments per weight, as in Adam; Muon keeps one, and needs the room of the other while it steps.
    """
    weights = FLOAT * sum(parameter.numel() for parameter in model.parameters())
    copies = 4 + (config.training.ema_decay is not None)  # weights, gradients, two moments, moving average
    narrow = machine.dtype.itemsize
    cast = weights * narrow // FLOAT if narrow < FLOAT else 0
    rows = sentences * (2 if config.training.r_drop else 1)
    vocabulary = int(model.generator.out_features)  # type: ignore[union-attr, arg-type]
    logits = 2 * FLOAT * vocabulary * min(rows * target_length, rows_at_a_time(machine.device))
    table = FLOAT * vocabulary * config.model.d_model  # gradient of the generator
    kept = kept_bytes(config.model, rows, source_length, target_length, narrow, machine.device.type == "cpu")
    return copies * weights + cast + kept + logits + table


def kept_bytes(
    sizes: ModelConfig, sentences: int, source_length: int, target_length: int, narrow: int, on_cpu: bool
) -> int:
    """Bytes of the tensors that the layers keep for backward. narrow: bytes of a number in a matrix product.

    Counted from the code of the layers: a normalisation keeps its input, a linear layer keeps its input, attention
    keeps queries, keys, values and contexts, dropout one byte per element. A tensor used by several layers counts once.
    """
    d_model = sizes.d_model
    wide = FLOAT if on_cpu else narrow  # on a CPU the results of products are widened again (kernels/linear.py), ...
    copy = narrow if narrow < wide else 0  # ... so that the next product keeps a narrow copy of its input
    between = {"relu": 1, "gelu": 2, "swiglu": 4}[
        sizes.activation
    ]  # relu keeps its output, the input of the next layer
    inner = (wide * (between + bool(sizes.feed_forward_dropout)) + copy) * sizes.d_ff
    if sizes.norm_kernel == "handmade" or sizes.epsilon_on == "deviation":
        norms = 3 * FLOAT * d_model
    else:  # fused kernels keep only their input, but on a CPU PyTorch has no fused RMS normalisation
        norms = (2 if sizes.normalization == "rms" and on_cpu else 1) * FLOAT * d_model
    rotation = 3 * wide * d_model if sizes.positions == "rotary" else 0
    masks = d_model if sizes.dropout else 0
    encoder = 2 * norms + (2 * narrow + 4 * wide + copy) * d_model + inner + rotation + 2 * masks
    decoder = 3 * norms + (3 * narrow + 6 * wide + 2 * copy) * d_model + inner + rotation + 3 * masks
    ends = norms + FLOAT * d_model + masks  # the last normalisation, its result, and dropout on embeddings
    source_token = sizes.encoder_layers * encoder + sizes.decoder_layers * (2 * wide + copy) * d_model + ends
    target_token = sizes.decoder_layers * decoder + ends
    maps = _maps_bytes(sizes, source_length, target_length, narrow, on_cpu)
    return sentences * (source_length * source_token + target_length * target_token + maps)


def _maps_bytes(sizes: ModelConfig, source_length: int, target_length: int, narrow: int, on_cpu: bool) -> int:
    """Bytes of the attention maps of one sentence. Fused kernels make none, except on a CPU with dropout."""
    if sizes.attention == "fused" and not (sizes.attention_dropout and on_cpu):
        return 0
    copies = 3 if sizes.attention_dropout else 2
    encoder = sizes.encoder_layers * source_length**2
    decoder = sizes.decoder_layers * target_length * (target_length + source_length)
    return narrow * copies * sizes.n_heads * (encoder + decoder)
