"""Whether a readable part of `model` was changed that a kernel computes in its place: the change would do nothing.

In a notebook, a part can change while the program runs, so each call looks again, which takes less than a millisecond.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_mt.config.model import ModelConfig
from transformer_mt.errors import TmtError
from transformer_mt.model import attention, label_smoothing, normalization


def require_same_parts(config: ModelConfig) -> None:
    """Raises TmtError if attention, its mask or normalisation are not what the kernels for such a model compute."""
    if config.attention != "handmade" and not _has_same_attention():
        raise TmtError(
            "attention.py or masks.py computes something else than the kernel that runs instead",
            place="transformer_mt/model",
            remedy="To run yours:  model.attention: handmade  in the config (of a finished run: model/config.yaml).",
        )
    if config.norm_kernel != "handmade" and not _has_same_norms():
        raise TmtError(
            "normalization.py computes something else than the kernel that runs instead",
            place="transformer_mt/model",
            remedy="To run yours:  model.norm_kernel: handmade  in the config (of a finished run: model/config.yaml).",
        )


def require_same_loss() -> None:
    """Raises TmtError if `smoothed_cross_entropy` is not what `kernels.loss` computes."""
    if not _has_same_loss():
        raise TmtError(
            "label_smoothing.py computes something else than kernels/loss.py, which runs instead",
            place="transformer_mt/model",
            remedy="Change kernels/loss.py in the same way, or train with a loop of your own (docs/paper/training.md).",
        )


def _has_same_attention() -> bool:
    query_BHQK, key_BHMK, value_BHMK = (numbers(2, 2, 5, 4, start=start) for start in (1, 2, 3))
    mask_BHQM = numbers(2, 1, 5, 5, start=4) > -0.9
    mask_BHQM[:, :, 2] = False  # a query that may attend nowhere
    given = {"attn_mask": mask_BHQM}, {"attn_mask": None, "is_causal": True}
    known = [F.scaled_dot_product_attention(query_BHQK, key_BHMK, value_BHMK, **one) for one in given]
    own = [
        attention.scaled_dot_product_attention(query_BHQK, key_BHMK, value_BHMK, mask_BHQM),
        attention.scaled_dot_product_attention(query_BHQK, key_BHMK, value_BHMK, causal=True),
    ]
    return _equal(known, own) and _has_same_dropout(query_BHQK, key_BHMK)


def _has_same_dropout(query_BHQK: Tensor, key_BHMK: Tensor) -> bool:
    """Whether half of the weights are dropped, and the others doubled."""
    one_hot_MM = torch.eye(key_BHMK.shape[2], dtype=torch.float64, device="cpu")
    one_hot_BHMM = one_hot_MM.expand(*key_BHMK.shape[:2], -1, -1)  # as values: the contexts are the weights
    weights_BHQM = attention.scaled_dot_product_attention(query_BHQK, key_BHMK, one_hot_BHMM)
    with torch.random.fork_rng(devices=[]):
        dropped_BHQM = attention.scaled_dot_product_attention(query_BHQK, key_BHMK, one_hot_BHMM, dropout=0.5)
    is_kept_BHQM = dropped_BHQM != 0
    n_kept, n_weights = int(is_kept_BHQM.sum()), is_kept_BHQM.numel()
    return n_weights / 5 < n_kept < n_weights * 4 / 5 and _equal([2 * weights_BHQM * is_kept_BHQM], [dropped_BHQM])


def _has_same_norms() -> bool:
    x_BTD, gamma_D, beta_D = numbers(2, 3, 8), numbers(8, start=5), numbers(8, start=6)
    with torch.no_grad(), torch.device("cpu"):
        layer_norm = normalization.LayerNorm(8, 1e-5).double()
        rms_norm = normalization.RMSNorm(8, 1e-5).double()
        layer_norm.gamma.copy_(gamma_D)
        layer_norm.beta.copy_(beta_D)
        rms_norm.gamma.copy_(gamma_D)
        own = [layer_norm(x_BTD), rms_norm(x_BTD)]
    known = [F.layer_norm(x_BTD, (8,), gamma_D, beta_D, 1e-5), F.rms_norm(x_BTD, (8,), gamma_D, 1e-5)]
    return _equal(known, own)


def _has_same_loss() -> bool:
    logits_NV, target_N = numbers(3, 7), torch.tensor([0, 3, 6], device="cpu")
    known = F.cross_entropy(logits_NV, target_N, label_smoothing=0.1, reduction="sum")
    return _equal([known], [label_smoothing.smoothed_cross_entropy(logits_NV, target_N, 0.1)])


def numbers(*shape: int, start: int = 0) -> Tensor:
    """Any numbers, without a random generator: training draws from it."""
    count_N = torch.arange(torch.Size(shape).numel(), dtype=torch.float64, device="cpu")
    return (7 * count_N + start).sin().view(shape)


def _equal(known: list[Tensor], own: list[Tensor]) -> bool:
    return all(one.shape == other.shape and torch.allclose(one, other) for one, other in zip(known, own, strict=True))
