"""Label smoothing (section 5.4): a share epsilon of the target's probability is spread over the whole vocabulary."""

from __future__ import annotations

from torch import Tensor


def smoothed_cross_entropy(logits_NV: Tensor, target_N: Tensor, epsilon: float) -> Tensor:
    """-(1 - epsilon) log p(target) - epsilon / V * sum_v log p(v), summed over the N tokens; a scalar, in nats.

    logits: [N, V]; target: ids [N]. The caller divides the sum by the number of tokens in the whole update.
    """
    log_p_NV = logits_NV.log_softmax(dim=-1)
    log_p_target_N = log_p_NV.gather(1, target_N[:, None])[:, 0]
    return -((1 - epsilon) * log_p_target_N + epsilon * log_p_NV.mean(dim=-1)).sum()
