"""Search and streams compute the layers again: a model that has more must not lose it in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import transformer_mt as tmt
from transformer_mt import TmtError
from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.model import ModelConfig
from transformer_mt.decoding.batches import translate_ids
from transformer_mt.decoding.incremental import IncrementalDecoder, require_same_steps
from transformer_mt.kernels.packing import require_same_streams
from transformer_mt.kernels.repeated import require_known_attention
from transformer_mt.model.layers import DecoderLayer, EncoderLayer
from transformer_mt.model.multi_head_attention import MultiHeadAttention
from transformer_mt.model.transformer import Transformer


class Halved(MultiHeadAttention):
    """Computes something else with the same weights."""

    def combine(self, context_BHQK: Tensor) -> Tensor:
        return super().combine(context_BHQK) / 2


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_an_attention_with_more_is_an_error(positions: str) -> None:
    config = ModelConfig.model_validate(
        {"d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 2, "decoder_layers": 2, "positions": positions}
    )
    model = Transformer(config, 9, 9)
    require_known_attention(model)
    IncrementalDecoder(model)
    attention = model.decoder.layers[1].cross_attention
    attention.gate = nn.Linear(8, 8)
    with pytest.raises(NotImplementedError, match=r"decoder\.layers\.1\.cross_attention has gate.*CONTRIBUTING"):
        IncrementalDecoder(model)
    del attention.gate
    attention.scale = nn.Parameter(torch.ones(1))
    with pytest.raises(NotImplementedError, match="has scale"):
        require_known_attention(model)
    del attention.scale
    model.encoder.layers[0].self_attention.__class__ = Halved
    with pytest.raises(NotImplementedError, match=r"encoder\.layers\.0\.self_attention is a Halved"):
        require_known_attention(model)


def _with_a_feed_forward_before(monkeypatch: pytest.MonkeyPatch, layer: type[nn.Module]) -> None:
    """As in Macaron networks. Its output starts at 0, so that a new model is as before."""
    begin: Any = layer.__init__
    usual: Any = layer.forward

    def begin_with_more(self: Any, config: ModelConfig, *more: Any) -> None:
        begin(self, config, *more)
        self.first = nn.Linear(config.d_model, config.d_model, bias=False)
        nn.init.zeros_(self.first.weight)

    monkeypatch.setattr(layer, "__init__", begin_with_more)
    monkeypatch.setattr(layer, "forward", lambda self, x, *more: usual(self, x + self.first(x), *more))


def _with_sub_layers_side_by_side(monkeypatch: pytest.MonkeyPatch, layer: type[nn.Module]) -> None:
    """The same parts in another order."""
    usual: Any = layer.forward
    monkeypatch.setattr(layer, "forward", lambda self, x, *more: usual(self, x, *more) + self.feed_forward(x))


@pytest.mark.parametrize("change", [_with_a_feed_forward_before, _with_sub_layers_side_by_side])
def test_a_layer_that_computes_more_is_an_error(change: Any, monkeypatch: pytest.MonkeyPatch, tiny_model: Path) -> None:
    config = ModelConfig.model_validate({"d_model": 8, "n_heads": 2, "d_ff": 8})
    require_same_steps(config)
    require_same_streams(Transformer(config, 9, 9))
    with monkeypatch.context() as patch:
        change(patch, EncoderLayer)
        require_same_steps(config)  # search calls the encoder itself
        with pytest.raises(TmtError, match="streams would compute something else"):
            require_same_streams(Transformer(config, 9, 9))
    change(monkeypatch, DecoderLayer)
    model = Transformer(config, 9, 9)
    with pytest.raises(TmtError, match="streams would compute something else"):
        require_same_streams(model)
    with pytest.raises(TmtError, match="search would compute something else") as caught:
        translate_ids(model, [[4, 5]], DecodingConfig())
    assert "`_layer_step` in decoding/incremental.py" in caught.value.remedy


def test_a_translator_looks_before_its_first_search(monkeypatch: pytest.MonkeyPatch, tiny_model: Path) -> None:
    translator = tmt.load(tiny_model)
    with monkeypatch.context() as patch:
        _with_sub_layers_side_by_side(patch, DecoderLayer)
        with pytest.raises(TmtError, match="search would compute something else"):
            translator.translate("abc")
        assert translator.score("abc", "def").log_probability < 0, "this calls the model itself"
    assert translator.translate("abc")
