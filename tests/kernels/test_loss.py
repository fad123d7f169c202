"""The chunked loss equals the textbook's in value and gradients, with chunks of any size, also under autocast."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_mt.kernels import loss as loss_module
from transformer_mt.kernels.loss import linear_cross_entropy
from transformer_mt.kernels.r_drop import consistent_cross_entropy
from transformer_mt.model.label_smoothing import smoothed_cross_entropy as by_the_paper

N, D, V = 37, 12, 50


@pytest.fixture
def tensors() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(4)
    hidden_ND, weight_VD, bias_V = torch.randn(N, D), torch.randn(V, D), torch.randn(V)
    return hidden_ND.requires_grad_(), weight_VD.requires_grad_(), bias_V.requires_grad_(), torch.randint(V, (N,))


def gradients(value: Tensor, *of: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(value, of))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("rows", [1, 7, 36, 37, 1000])
def test_it_equals_torchs_cross_entropy_in_value_and_gradient(tensors, smoothing, rows, monkeypatch):
    hidden_ND, weight_VD, bias_V, target_N = tensors
    monkeypatch.setattr(loss_module, "CPU_ROWS", rows)
    ours = linear_cross_entropy(hidden_ND, weight_VD, bias_V, target_N, smoothing)
    logits_NV = F.linear(hidden_ND, weight_VD, bias_V)
    theirs = F.cross_entropy(logits_NV, target_N, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(ours.smoothed, theirs, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(by_the_paper(logits_NV, target_N, smoothing), theirs, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(ours.nll, F.cross_entropy(logits_NV, target_N, reduction="sum"), rtol=1e-5, atol=1e-4)
    for own, other in zip(
        gradients(3 * ours.smoothed, hidden_ND, weight_VD, bias_V),
        gradients(3 * theirs, hidden_ND, weight_VD, bias_V),
        strict=True,
    ):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-4)


def test_it_equals_the_textbooks_divergence_up_to_a_constant(tensors):
    """KL(q || p) with q = (1 - e) [v = y] + e / V (Szegedy et al. 2016) is the loss less the entropy of q."""
    hidden_ND, weight_VD, bias_V, target_N = tensors
    smoothing = 0.1
    q_NV = torch.full((N, V), smoothing / V)
    q_NV[torch.arange(N), target_N] += 1 - smoothing
    logp_NV = F.linear(hidden_ND, weight_VD, bias_V).log_softmax(dim=-1)
    divergence = F.kl_div(logp_NV, q_NV, reduction="sum")
    entropy = -(q_NV * q_NV.log()).sum()
    ours = linear_cross_entropy(hidden_ND, weight_VD, bias_V, target_N, smoothing).smoothed
    torch.testing.assert_close(ours, divergence + entropy, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(gradients(ours, hidden_ND), gradients(divergence, hidden_ND), rtol=1e-4, atol=1e-4)


def test_without_a_bias_and_without_tokens(tensors):
    hidden_ND, weight_VD, _, target_N = tensors
    ours = linear_cross_entropy(hidden_ND, weight_VD, None, target_N, 0.1).smoothed
    theirs = F.cross_entropy(hidden_ND @ weight_VD.T, target_N, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-4)
    nothing = linear_cross_entropy(hidden_ND[:0], weight_VD, None, target_N[:0], 0.1).smoothed
    assert nothing.item() == 0.0
    assert all(not gradient.any() for gradient in gradients(nothing, hidden_ND, weight_VD))


def test_no_gradients_are_computed_when_they_are_off(tensors, monkeypatch):
    hidden_ND, weight_VD, bias_V, target_N = tensors
    with_gradients = linear_cross_entropy(hidden_ND, weight_VD, bias_V, target_N, 0.1)
    monkeypatch.setattr(loss_module, "GeneratorGradients", None)
    for without in (torch.no_grad, torch.inference_mode):
        with without():
            without_gradients = linear_cross_entropy(hidden_ND, weight_VD, bias_V, target_N, 0.1)
        assert (without_gradients.smoothed, without_gradients.nll) == (with_gradients.smoothed, with_gradients.nll)


def test_huge_logits_do_not_overflow():
    hidden_ND, weight_VD = torch.full((2, 1), 1e4), torch.tensor([[1.0], [-1.0], [0.5]])
    ours = linear_cross_entropy(hidden_ND, weight_VD, None, torch.tensor([0, 2]), 0.0)
    torch.testing.assert_close(ours.smoothed, torch.tensor(5000.0))


def test_autocast_changes_it_by_rounding_only(tensors):
    hidden_ND, weight_VD, bias_V, target_N = tensors
    exact = linear_cross_entropy(hidden_ND, weight_VD, bias_V, target_N, 0.1).smoothed
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = linear_cross_entropy(hidden_ND, weight_VD, bias_V, target_N, 0.1).smoothed
    assert rounded.dtype is torch.float32
    assert 0 < abs((rounded - exact).item()) < 0.02 * exact.item()
    own, other = gradients(rounded, hidden_ND, weight_VD, bias_V), gradients(exact, hidden_ND, weight_VD, bias_V)
    for ours, theirs in zip(own, other, strict=True):
        assert ours.dtype is torch.float32
        assert float((ours - theirs).norm()) < 0.03 * float(theirs.norm())


class _LargestTensor(torch.utils._python_dispatch.TorchDispatchMode):
    """Records the number of elements of the largest tensor that an operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, func: Callable, types: object, args: tuple = (), kwargs: dict | None = None) -> object:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor):
            self.largest = max(self.largest, made.numel())
        return made


def test_no_tensor_of_all_logits_is_ever_made(monkeypatch):
    monkeypatch.setattr(loss_module, "CPU_ROWS", 16)
    tokens, vocabulary, width = 256, 400, 8
    hidden_ND, weight_VD = torch.randn(tokens, width, requires_grad=True), torch.randn(vocabulary, width)
    weight_VD.requires_grad_()
    target_N = torch.randint(vocabulary, (tokens,))
    with _LargestTensor() as record:
        linear_cross_entropy(hidden_ND, weight_VD, None, target_N, 0.1).smoothed.backward()
    assert record.largest == 16 * vocabulary
    with _LargestTensor() as record:
        consistent_cross_entropy(hidden_ND, hidden_ND + 1, weight_VD, None, target_N, 0.1, 2.0).smoothed.backward()
    assert record.largest <= 16 * vocabulary


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("r_drop", [0.3, 5.0])
@pytest.mark.parametrize("rows", [5, 1000])
def test_r_drop_equals_torchs_cross_entropy_and_divergence(tensors, rows, r_drop, smoothing, monkeypatch):
    """Liang et al. 2021, equations 3 and 4, with the mean of both passes as the cross-entropy."""
    monkeypatch.setattr(loss_module, "CPU_ROWS", rows)
    one_ND, weight_VD, bias_V, target_N = tensors
    other_ND = (one_ND.detach() + 0.3 * torch.randn(N, D)).requires_grad_()
    logits = [F.linear(hidden_ND, weight_VD, bias_V) for hidden_ND in (one_ND, other_ND)]
    losses = [F.cross_entropy(z, target_N, label_smoothing=smoothing, reduction="sum") for z in logits]
    p_NV, q_NV = (z.log_softmax(dim=-1) for z in logits)
    divergence = sum(F.kl_div(a, b, reduction="sum", log_target=True) for a, b in ((p_NV, q_NV), (q_NV, p_NV))) / 2
    theirs = sum(losses) / 2 + r_drop * divergence
    ours = consistent_cross_entropy(one_ND, other_ND, weight_VD, bias_V, target_N, smoothing, r_drop)
    torch.testing.assert_close(ours.smoothed, theirs, rtol=1e-4, atol=1e-4)
    nll = sum(F.cross_entropy(z, target_N, reduction="sum") for z in logits) / 2
    torch.testing.assert_close(ours.nll, nll, rtol=1e-5, atol=1e-4)
    of = (one_ND, other_ND, weight_VD, bias_V)
    for own, other in zip(gradients(3 * ours.smoothed, *of), gradients(3 * theirs, *of), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=2e-4)


def test_r_drop_of_equal_passes_equals_the_plain_loss(tensors):
    hidden_ND, weight_VD, _, target_N = tensors
    ours = consistent_cross_entropy(hidden_ND, hidden_ND, weight_VD, None, target_N, 0.1, 5.0)
    plain = linear_cross_entropy(hidden_ND, weight_VD, None, target_N, 0.1)
    torch.testing.assert_close(ours, plain)


def test_r_drop_under_autocast_differs_by_rounding_only(tensors):
    hidden_ND, weight_VD, bias_V, target_N = tensors
    arguments = hidden_ND, hidden_ND + 0.1, weight_VD, bias_V, target_N, 0.1, 1.0
    exact = consistent_cross_entropy(*arguments).smoothed
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = consistent_cross_entropy(*arguments).smoothed
    assert rounded.dtype is torch.float32
    assert 0 < abs((rounded - exact).item()) < 0.02 * exact.item()
    own, other = gradients(rounded, hidden_ND, weight_VD, bias_V), gradients(exact, hidden_ND, weight_VD, bias_V)
    for ours, theirs in zip(own, other, strict=True):
        assert float((ours - theirs).norm()) < 0.05 * float(theirs.norm())
