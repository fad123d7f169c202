"""How much memory a training step takes, worked out from the sizes before the first step."""

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
    """Bytes of a step on its largest batch: weights, gradients, moments, what backward needs, and logits.

    Two moments a weight, as Adam keeps them; Muon keeps one, and needs the room of the other while it steps.
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

    Counted from the layers' own code: a normalisation keeps its input, a linear layer keeps its input, attention
    keeps queries, keys, values and contexts, dropout a byte an element, all of them once however often used.
    """
    d_model = sizes.d_model
    wide = FLOAT if on_cpu else narrow  # on a CPU the results of products are widened again (model/linear.py), ...
    copy = narrow if narrow < wide else 0  # ... so that the next product keeps a narrow copy of its input
    inner = wide * _feed_forward(sizes) + copy * sizes.d_ff
    norms, masks = FLOAT * d_model * _norm_inputs(sizes, on_cpu), _dropout_bytes(sizes)
    encoder = 2 * norms + (2 * narrow + 4 * wide + copy) * d_model + inner + _rotation(sizes, wide) + 2 * masks
    decoder = 3 * norms + (3 * narrow + 6 * wide + 2 * copy) * d_model + inner + _rotation(sizes, wide) + 3 * masks
    ends = norms + FLOAT * d_model + masks  # the last normalisation, its result, and dropout on embeddings
    source_token = sizes.encoder_layers * encoder + sizes.decoder_layers * (2 * wide + copy) * d_model + ends
    target_token = sizes.decoder_layers * decoder + ends
    maps = _maps_bytes(sizes, source_length, target_length, narrow, on_cpu)
    return sentences * (source_length * source_token + target_length * target_token + maps)


def _feed_forward(sizes: ModelConfig) -> int:
    """Numbers a position keeps between the two matrices (relu keeps its output, which is the next input too)."""
    kept = {"relu": 1, "gelu": 2, "swiglu": 4}[sizes.activation] * sizes.d_ff
    return kept + (sizes.d_ff if sizes.feed_forward_dropout else 0)


def _norm_inputs(sizes: ModelConfig, on_cpu: bool) -> int:
    """Tensors a normalisation keeps: fused kernels keep their input (PyTorch has none for RMS on a CPU)."""
    if sizes.norm_kernel == "handmade" or sizes.epsilon_on == "deviation":
        return 3
    return 2 if sizes.normalization == "rms" and on_cpu else 1


def _rotation(sizes: ModelConfig, width: int) -> int:
    return 3 * width * sizes.d_model if sizes.positions == "rotary" else 0


def _dropout_bytes(sizes: ModelConfig) -> int:
    return sizes.d_model if sizes.dropout else 0


def _maps_bytes(sizes: ModelConfig, source_length: int, target_length: int, narrow: int, on_cpu: bool) -> int:
    """Attention maps of one sentence, where they are made: fused kernels need none, but on a CPU with dropout."""
    if sizes.attention == "fused" and not (sizes.attention_dropout and on_cpu):
        return 0
    copies = 3 if sizes.attention_dropout else 2
    encoder = sizes.encoder_layers * source_length**2
    decoder = sizes.decoder_layers * target_length * (target_length + source_length)
    return narrow * copies * sizes.n_heads * (encoder + decoder)
