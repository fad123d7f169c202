"""Narrow products: exact for numbers that bfloat16 holds exactly, else rounded, and only under autocast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_mt.config.model import ModelConfig
from transformer_mt.kernels import onednn
from transformer_mt.kernels.build import parts_for
from transformer_mt.kernels.linear import CpuLinear, store_by_columns
from transformer_mt.kernels.loss import linear_cross_entropy
from transformer_mt.kernels.onednn import round_up_rows
from transformer_mt.kernels.r_drop import consistent_cross_entropy
from transformer_mt.model.transformer import Transformer
from transformer_mt.text.vocabulary import PAD


def narrow() -> torch.autocast:
    return torch.autocast("cpu", dtype=torch.bfloat16)


@pytest.mark.parametrize("shape", [(7, 16), (3, 5, 16), (2, 0, 16)])
@pytest.mark.parametrize("bias", [True, False])
def test_whole_numbers_that_bfloat16_holds_give_the_same_values_and_gradients(shape: tuple[int, ...], bias: bool):
    """Numbers up to 3 and sums up to 144 are exact in eight bits, so nothing may differ."""
    torch.manual_seed(1)
    found = []
    values = [torch.randint(-3, 4, size).float() for size in (shape, (12, 16), (12,), (*shape[:-1], 12))]
    for context in (narrow(), torch.autocast("cpu", enabled=False)):
        x, weight, offset = (value.clone().requires_grad_() for value in values[:3])
        with context:
            y = CpuLinear.product(x, weight, offset if bias else None)
        assert y.dtype is torch.float32
        y.backward(values[3])
        found.append([y.detach(), x.grad, weight.grad, offset.grad])
    for one, other in zip(*found, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


def test_other_numbers_are_rounded_only_under_autocast():
    torch.manual_seed(2)
    layer = CpuLinear(64, 32)
    x = torch.randn(10, 64)
    exact = F.linear(x, layer.weight, layer.bias)
    assert torch.equal(layer(x), exact)
    with narrow():
        rounded = layer(x)
    assert not torch.equal(rounded, exact)
    assert (rounded - exact).abs().max() < 2**-7 * exact.abs().max()


def test_only_the_rows_in_use_get_a_gradient():
    weight = torch.randn(9, 4, requires_grad=True)
    with narrow():
        CpuLinear.product(torch.ones(2, 4), weight[3:6], None).sum().backward()
    assert weight.grad is not None
    assert torch.equal(weight.grad, torch.tensor([0.0, 2.0, 0.0]).repeat_interleave(3)[:, None].expand(9, 4))


PRODUCTS = {"aten::mm", "aten::addmm", "mkldnn::_linear_pointwise"}


class Products(TorchDispatchMode):
    """Records the shapes of all matrix products inside the `with` block."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: set[object] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function.name() in PRODUCTS:
            self.shapes.add((function, *(tuple(one.shape) for one in args if isinstance(one, Tensor))))
        return function(*args, **(kwargs or {}))


def layer(x_ND: Tensor, weight_VD: Tensor, target_N: Tensor) -> Tensor:
    return CpuLinear.product(x_ND, weight_VD, None).sum()


def loss(x_ND: Tensor, weight_VD: Tensor, target_N: Tensor) -> Tensor:
    return linear_cross_entropy(x_ND, weight_VD, None, target_N, 0.1).smoothed


def r_drop(x_ND: Tensor, weight_VD: Tensor, target_N: Tensor) -> Tensor:
    return consistent_cross_entropy(x_ND, x_ND, weight_VD, None, target_N, 0.1, 1.0).smoothed


@pytest.mark.parametrize("least", [1, 64])
def test_few_numbers_of_rows_occur_and_few_rows_are_added(least: int):
    rounded = {rows: round_up_rows(rows, least) for rows in range(1, 20_000)}
    assert all(rows <= more < rows + max(least, rows / 8) for rows, more in rounded.items())
    assert len({rounded[rows] for rows in range(2_000, 4_001)}) == 9
    assert rounded[4_096] == 4_096


@pytest.mark.parametrize("number_format", ["bfloat16", "float32"])
@pytest.mark.parametrize(
    ("compute", "batches"),
    [(layer, (361, 370, 384)), (layer, (1_930, 1_990, 2_048)), (loss, (373, 374, 376)), (r_drop, (373, 374, 376))],
)
def test_batches_of_a_little_more_or_less_need_no_new_kernels(
    compute: Callable[..., Tensor], batches: tuple[int, ...], number_format: str, wide: None
):
    """A kernel is compiled and stored for each shape; one for each batch would fill the memory."""
    shapes = []
    for n_rows in batches:
        x, weight = torch.randn(n_rows, 16, requires_grad=True), torch.randn(40, 16, requires_grad=True)
        with Products() as products, torch.autocast("cpu", torch.bfloat16, enabled=number_format == "bfloat16"):
            compute(x, weight, torch.randint(40, (n_rows,))).backward()
        assert x.grad is not None
        assert len(x.grad) == n_rows
        shapes.append(products.shapes)
    assert shapes[0]
    assert all(one == shapes[0] for one in shapes)


@pytest.mark.parametrize("tie", ["none", "all"])
@pytest.mark.parametrize("smallest", [None, 0, 16 * 40])
def test_weights_stored_by_columns_are_the_same_numbers(
    tie: str, smallest: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onednn, "smallest_weight", lambda: smallest)
    torch.manual_seed(1)
    sizes = ModelConfig(d_model=16, n_heads=2, d_ff=32, encoder_layers=1, decoder_layers=1, tie_embeddings=tie)
    model = Transformer(sizes, 40, 40, PAD, parts=parts_for(sizes, "cpu")).eval()
    source_BS, target_BT = torch.randint(4, 40, (3, 7)), torch.randint(4, 40, (3, 5))
    before, weights = model.generate_logits(model(source_BS, target_BT)), model.state_dict()
    store_by_columns(model)
    torch.testing.assert_close(model.generate_logits(model(source_BS, target_BT)), before)
    assert all(torch.equal(weight, weights[name]) for name, weight in model.state_dict().items())
    assert model.target_embedding.tokens.weight.stride() == (16, 1), "an embedding reads rows"
    layer, by_mkl, all_large = model.decoder.layers[0], smallest is None, smallest == 0
    for module, by_columns in (
        (model.generator, True),
        (layer.self_attention.query_key_value, True),
        (layer.cross_attention.query_key_value, by_mkl),  # oneDNN would copy the part for queries
        (layer.feed_forward.inner, True),
        (layer.feed_forward.outer, not all_large),  # fewer outputs than inputs
        (layer.self_attention.output, not all_large),
    ):
        outputs, inputs = module.weight.shape
        assert module.weight.stride() == ((1, outputs) if by_columns else (inputs, 1))
