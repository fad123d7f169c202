"""Products in float32 by oneDNN: the numbers of PyTorch's own, and only where they are faster."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_mt.kernels import onednn
from transformer_mt.kernels.linear import CpuLinear
from transformer_mt.kernels.loss import linear_cross_entropy


@pytest.mark.parametrize("shape", [(7, 16), (3, 5, 16), (64, 16), (2, 0, 16), (1, 1, 16)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [slice(None), slice(3, 9)])
def test_values_and_gradients_are_those_of_pytorch(shape: tuple[int, ...], bias: bool, rows: slice, wide: None) -> None:
    torch.manual_seed(1)
    values = [torch.randn(size) for size in (shape, (12, 16), (12,), (*shape[:-1], 12))]
    found = []
    for product in (CpuLinear.product, F.linear):
        x, weight, offset = (value.clone().requires_grad_() for value in values[:3])
        y = product(x, weight[rows], offset[rows] if bias else None)
        y.backward(values[3][..., rows])  # not contiguous, as gradients often are
        found.append([y.detach(), x.grad, weight.grad, offset.grad])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_parts_of_a_matrix_are_copied_first(wide: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """oneDNN reads rows of a weight that is stored by columns, but slowly."""
    operands: list[Tensor] = []
    compute = torch.ops.mkldnn._linear_pointwise
    monkeypatch.setattr(
        torch.ops.mkldnn, "_linear_pointwise", lambda *all: (operands.extend(all[:2]), compute(*all))[1]
    )
    x, weight = torch.randn(9, 2, 16), torch.randn(16, 12).T
    y = CpuLinear.product(x[:, 1], weight[4:], None)
    torch.testing.assert_close(y, x[:, 1] @ weight[4:].T)
    assert len(operands) == 2
    assert all(one.is_contiguous() or one.T.is_contiguous() for one in operands)


@pytest.mark.parametrize("tokens", [5, 300])
def test_the_loss_and_its_gradients(tokens: int, wide: None, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    values = torch.randn(tokens, 16), torch.randn(40, 16), torch.randn(40)
    target = torch.randint(40, (tokens,))
    found = []
    for smallest in (0, None):
        monkeypatch.setattr(onednn, "smallest_weight", lambda smallest=smallest: smallest)
        hidden, weight, offset = (value.clone().requires_grad_() for value in values)
        loss = linear_cross_entropy(hidden, weight, offset, target, 0.1).smoothed
        loss.backward()
        found.append([loss.detach(), hidden.grad, weight.grad, offset.grad])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def rows_for_onednn(x: Tensor, outputs: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """The rows that oneDNN is given for one linear map; 0 if PyTorch's own product computes it."""
    rows = 0

    def product(x_ND: Tensor, weight_ED: Tensor, bias_E: Tensor | None = None) -> Tensor:
        nonlocal rows
        rows = len(x_ND)
        return F.linear(x_ND, weight_ED, bias_E)

    monkeypatch.setattr(onednn, "_product", product)
    with torch.no_grad():
        CpuLinear.product(x, torch.randn(outputs, x.shape[-1], dtype=x.dtype), None)
    return rows


def test_small_products_few_rows_and_other_number_formats_stay_with_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onednn, "smallest_weight", lambda: 0)
    assert rows_for_onednn(torch.randn(500, 128), 128, monkeypatch) == 512
    assert rows_for_onednn(torch.randn(63, 128), 128, monkeypatch) == 0
    assert rows_for_onednn(torch.randn(5, 512), 2048, monkeypatch) == 5, "no rows of zeros: a search has few rows"
    assert rows_for_onednn(torch.randn(3, 512), 2048, monkeypatch) == 0
    assert rows_for_onednn(torch.randn(500, 128).double(), 128, monkeypatch) == 0
    monkeypatch.setattr(onednn, "smallest_weight", lambda: None)
    assert rows_for_onednn(torch.randn(500, 128), 128, monkeypatch) == 0


def test_where_only_large_weights_gain_searches_use_it_and_trainings_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Zen 4, whose trainings would take much more memory for little."""
    monkeypatch.setattr(onednn, "smallest_weight", lambda: onednn.ZEN_4_WEIGHT)
    large, small = torch.randn(64, 512), torch.randn(500, 256)
    assert rows_for_onednn(large, 512, monkeypatch) == 0
    with torch.inference_mode():
        assert rows_for_onednn(large, 512, monkeypatch) == 64
        assert rows_for_onednn(small, 512, monkeypatch) == 0


LINUX = "processor\t: 0\nvendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: 2\n"


@pytest.mark.parametrize(
    ("instructions", "processor", "expected"),
    [
        ("AVX512", LINUX.format("AuthenticAMD", 26), 0),
        ("AVX512", LINUX.format("AuthenticAMD", 27), 0),  # later ones
        ("AVX512", LINUX.format("AuthenticAMD", 25), 1 << 18),  # Zen 4
        ("AVX2", LINUX.format("AuthenticAMD", 25), None),  # Zen 3
        ("AVX2", LINUX.format("AuthenticAMD", 26), None),
        ("AVX512", LINUX.format("GenuineIntel", 6), None),
        ("AVX512", "AMD64 Family 26 Model 68 Stepping 0, AuthenticAMD", 0),  # as Windows says it
        ("AVX512", "", None),
    ],
)
def test_it_is_for_processors_whose_wide_instructions_mkl_does_not_use(
    instructions: str, processor: str, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: instructions)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(onednn, "hasattr", lambda *_: True, raising=False)
    if "\n" in processor:
        monkeypatch.setattr(Path, "read_text", lambda self, **_: processor)
    else:  # not Linux
        monkeypatch.setattr(Path, "read_text", lambda self, **_: (_ for _ in ()).throw(FileNotFoundError))
        monkeypatch.setattr(platform, "processor", lambda: processor)
    assert onednn.smallest_weight.__wrapped__() == expected
