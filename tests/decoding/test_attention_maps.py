"""Attention maps show where a model looks; recording them changes neither the result nor the model."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.testing import assert_close

from transformer_mt.config.model import ModelConfig
from transformer_mt.decoding.attention_maps import attention_maps
from transformer_mt.kernels.build import parts_for
from transformer_mt.model.transformer import Transformer

SOURCE_BS = torch.tensor([[4, 5, 6, 7], [4, 5, 0, 0]])
TARGET_BT = torch.tensor([[2, 5, 6], [2, 8, 0]])


@pytest.fixture
def transformer() -> Transformer:
    torch.manual_seed(0)
    config = ModelConfig(d_model=16, n_heads=2, d_ff=8, encoder_layers=2, decoder_layers=1)
    return Transformer(config, 10, 10, parts=parts_for(config, "cpu")).eval()


def test_threads_that_share_a_model_record_only_their_own_attention(transformer):
    before = attentions_of(transformer)
    with ThreadPoolExecutor() as threads:
        with attention_maps(transformer) as maps:
            elsewhere = threads.submit(transformer, SOURCE_BS[:1], TARGET_BT[:1]).result(60)
            waiting = threads.submit(recorded_shapes, transformer)
            assert not maps, "another thread translates as before"
            expected = transformer(SOURCE_BS, TARGET_BT)
            assert len(maps) == 4
            assert not waiting.done()
        assert waiting.result(60)["encoder.layers.0.self_attention"] == (2, 2, 4, 4)
    assert_close(elsewhere, expected[:1])
    assert attentions_of(transformer) == before


def attentions_of(transformer):
    return [one.attention for one in transformer.modules() if hasattr(one, "attention")]


def recorded_shapes(transformer):
    with attention_maps(transformer) as maps:
        transformer(SOURCE_BS, TARGET_BT)
    return {path: tuple(tensor.shape) for path, tensor in maps.items()}


def test_attention_maps_sum_to_one_and_leave_padding_out(transformer):
    with attention_maps(transformer) as maps:
        transformer(SOURCE_BS, TARGET_BT)
    assert {path: tuple(tensor.shape) for path, tensor in maps.items()} == {
        "encoder.layers.0.self_attention": (2, 2, 4, 4),
        "encoder.layers.1.self_attention": (2, 2, 4, 4),
        "decoder.layers.0.self_attention": (2, 2, 3, 3),
        "decoder.layers.0.cross_attention": (2, 2, 3, 4),
    }
    for path, weights_BHQM in maps.items():
        assert_close(weights_BHQM.sum(dim=-1), torch.ones(weights_BHQM.shape[:-1]), msg=path)
        assert not weights_BHQM.requires_grad
    assert (maps["decoder.layers.0.cross_attention"][1, :, :, 2:] == 0).all()
    assert (maps["decoder.layers.0.self_attention"].triu(1) == 0).all()


def test_maps_of_one_module_are_those_of_all(transformer):
    with attention_maps(transformer) as maps:
        transformer(SOURCE_BS, TARGET_BT)
    with attention_maps(transformer, only="decoder.layers.0.cross_attention") as one:
        transformer(SOURCE_BS, TARGET_BT)
    assert list(one) == ["decoder.layers.0.cross_attention"]
    assert_close(one["decoder.layers.0.cross_attention"], maps["decoder.layers.0.cross_attention"])


def test_recording_does_not_change_the_result(transformer):
    expected = transformer(SOURCE_BS, TARGET_BT)
    with attention_maps(transformer):
        output = transformer(SOURCE_BS, TARGET_BT)
    assert_close(output, expected)
    assert torch.equal(transformer(SOURCE_BS, TARGET_BT), expected)


def test_an_exception_leaves_the_model_as_it_was(transformer):
    before = {path: vars(module).get("attention") for path, module in transformer.named_modules()}
    with pytest.raises(RuntimeError), attention_maps(transformer):
        transformer.encoder.layers[0](torch.zeros(1, 2, 3), None)  # of the wrong width
    assert {path: vars(module).get("attention") for path, module in transformer.named_modules()} == before
