"""Readers change the readable code to see what happens: a kernel in its place must not hide that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_mt import TmtError
from transformer_mt.config.schema import Config
from transformer_mt.decoding.attention_maps import attention_maps
from transformer_mt.decoding.incremental import IncrementalDecoder
from transformer_mt.kernels import changed
from transformer_mt.kernels.attention import handmade_attention_to_past
from transformer_mt.kernels.build import build_model
from transformer_mt.model import attention, label_smoothing, normalization

SIZES = {"d_model": 16, "n_heads": 4, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 2, "dropout": 0.0}


def _config(**model: Any) -> Config:
    data = {"source": "de", "target": "en", "corpus": {"kind": "phrasebook"}}
    training = {"max_steps": 1}
    given = {"name": "x", "data": data, "tokenizer": {"kind": "whitespace"}, "training": training}
    return Config.model_validate({**given, "model": {**SIZES, **model}})


def _unscaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer_mt.model.attention.math", SimpleNamespace(sqrt=lambda _: 1.0))


def _without_causal_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_of_it(x_BHTK: Tensor) -> Tensor:
        return x_BHTK.new_ones(1, 1, x_BHTK.shape[-2], x_BHTK.shape[-2], dtype=torch.bool)

    monkeypatch.setattr("transformer_mt.model.attention.causal_mask", all_of_it)


def _without_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer_mt.model.attention.F", SimpleNamespace(dropout=lambda weights, _: weights))


def _with_the_mean_where_nothing_may_be_attended_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def unmasked(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, **more: Any) -> Tensor:
        found = usual(query, key, value, mask, **more)
        is_nowhere = torch.tensor(False) if mask is None else ~mask.any(dim=-1, keepdim=True)
        return torch.where(is_nowhere, value.mean(dim=-2, keepdim=True), found)

    usual = attention.scaled_dot_product_attention
    monkeypatch.setattr(attention, "scaled_dot_product_attention", unmasked)


@pytest.mark.parametrize(
    "change",
    [_unscaled, _without_causal_mask, _without_dropout, _with_the_mean_where_nothing_may_be_attended_to],
)
def test_a_change_of_attention_needs_handmade(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    build_model(_config(), 9, 9)  # a notebook that has trained already
    change(monkeypatch)
    with pytest.raises(TmtError, match=r"attention\.py or masks\.py computes something else") as caught:
        build_model(_config(), 9, 9)
    assert "model.attention: handmade" in caught.value.remedy
    build_model(_config(attention="handmade"), 9, 9)


def test_a_function_put_in_the_place_of_attention_is_the_one_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after `importlib.reload`, or an assignment in a notebook."""
    monkeypatch.setattr(attention, "scaled_dot_product_attention", lambda query, key, value, *_, **__: value.cumsum(-2))
    with pytest.raises(TmtError, match=r"attention\.py or masks\.py computes something else"):
        build_model(_config(), 9, 9)
    model = build_model(_config(attention="handmade"), 9, 9)
    assert model.decoder.layers[0].self_attention.attention is attention.scaled_dot_product_attention
    given = torch.ones(1, 1, 3, 4)
    assert torch.equal(handmade_attention_to_past(given, given, given), given.cumsum(2))
    with attention_maps(model) as maps:
        model(torch.randint(4, 9, (1, 5)), torch.randint(4, 9, (1, 5)))
    assert torch.equal(maps["decoder.layers.0.self_attention"], torch.ones(5, 5).tril())


@pytest.mark.parametrize("name", ["LayerNorm", "RMSNorm"])
def test_a_change_of_normalisation_needs_handmade(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Doubled(getattr(normalization, name)):  # type: ignore[misc]
        def forward(self, x_BTD: Tensor) -> Tensor:
            found: Tensor = 2 * super().forward(x_BTD)
            return found

    monkeypatch.setattr(normalization, name, Doubled)
    with pytest.raises(TmtError, match=r"normalization\.py computes something else"):
        build_model(_config(), 9, 9)
    kind = "rms" if name == "RMSNorm" else "layer"
    model = build_model(_config(norm_kernel="handmade", normalization=kind), 9, 9)
    assert any(isinstance(module, Doubled) for module in model.modules())


def test_a_change_of_the_loss_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    changed.require_same_loss()
    usual = label_smoothing.smoothed_cross_entropy
    monkeypatch.setattr(label_smoothing, "smoothed_cross_entropy", lambda x, y, e: usual(x, y, e / 2))
    with pytest.raises(TmtError, match=r"label_smoothing\.py computes something else than kernels/loss\.py"):
        changed.require_same_loss()


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_search_computes_a_changed_attention_of_a_handmade_model(
    positions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step by step the logits are those of the model; with the kernels they were others."""
    _unscaled(monkeypatch)
    torch.manual_seed(1)
    model = build_model(_config(attention="handmade", positions=positions), 30, 30).eval()
    source_BS, target_BT = torch.randint(4, 30, (2, 7)), torch.randint(4, 30, (2, 5))
    source_BS[1, 5:] = 0
    with torch.no_grad():
        logits_BTV = model.generate_logits(model(source_BS, target_BT))
        decoder = IncrementalDecoder(model, with_attention=True)
        cache = decoder.start(source_BS)
        for place in range(target_BT.shape[1]):
            logits_BV, cache = decoder.step(target_BT[:, place], cache)
            torch.testing.assert_close(logits_BV, logits_BTV[:, place])
    assert cache.attention_NS is not None
    torch.testing.assert_close(cache.attention_NS.sum(dim=1), torch.ones(2))
    assert cache.attention_NS[1, 5:].abs().max() == 0
