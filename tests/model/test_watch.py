"""Watching shows the insides of a running model, changes nothing, and leaves no trace."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from transformer_mt.config.model import ModelConfig
from transformer_mt.model import watch
from transformer_mt.model.transformer import Transformer
from transformer_mt.model.watch import attention_maps, note, watched, watching

SOURCE_BS = torch.tensor([[4, 5, 6, 7], [4, 5, 0, 0]])
TARGET_BT = torch.tensor([[2, 5, 6], [2, 8, 0]])


@pytest.fixture
def transformer() -> Transformer:
    torch.manual_seed(0)
    config = ModelConfig(d_model=16, n_heads=2, d_ff=8, encoder_layers=2, decoder_layers=1)
    return Transformer(config, 10, 10).eval()


def hooks(model: torch.nn.Module) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


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


def test_watching_does_not_change_the_result(transformer):
    expected = transformer(SOURCE_BS, TARGET_BT)
    with watching(transformer, lambda path, name, tensor: None):
        seen = transformer(SOURCE_BS, TARGET_BT)
    assert_close(seen, expected)
    assert torch.equal(transformer(SOURCE_BS, TARGET_BT), expected)


def test_every_tensor_has_as_many_dimensions_as_letters(transformer):
    seen = []

    def look(path: str, name: str, tensor: torch.Tensor) -> None:
        letters = name.rpartition("_")[2]
        seen.append(name)
        assert tensor.dim() == len(letters), f"{path}: {name} is {tuple(tensor.shape)}"
        assert all(size == 1 for size, letter in zip(tensor.shape, letters, strict=True) if letter == "1")

    with watching(transformer, look):
        transformer.generate_logits(transformer(SOURCE_BS, TARGET_BT))
        transformer.step(torch.tensor([2, 2]), transformer.start(SOURCE_BS))
    assert len(seen) > 60


def test_an_exception_leaks_nothing(transformer):
    def stumble(path: str, name: str, tensor: torch.Tensor) -> None:
        if path.endswith("cross_attention"):
            raise KeyError(name)

    before = hooks(transformer)
    with pytest.raises(KeyError), watching(transformer, stumble):
        transformer(SOURCE_BS, TARGET_BT)
    assert not watched()
    assert hooks(transformer) == before == 0
    assert watch._path == [""]
    with attention_maps(transformer) as maps:
        transformer(SOURCE_BS, TARGET_BT)
    assert "decoder.layers.0.cross_attention" in maps, "paths are right again"


def test_paths_stay_right_where_an_exception_is_caught_inside(transformer):
    paths = []
    with watching(transformer, lambda path, name, tensor: paths.append(path)):
        with pytest.raises(RuntimeError):
            transformer.encoder.layers[0](torch.zeros(1, 2, 3), None)  # of the wrong width
        transformer.generate_logits(torch.zeros(1, 1, 16))
    assert paths[-1] == ""


def test_the_inner_watcher_sees_and_then_the_outer_one_again(transformer):
    outer, inner = [], []
    with watching(transformer, lambda path, name, tensor: outer.append(name)):
        with watching(transformer, lambda path, name, tensor: inner.append(name)):
            note(one_D=torch.zeros(1))
        note(two_D=torch.zeros(1))
    note(three_D=torch.zeros(1))
    assert (outer, inner) == (["two_D"], ["one_D"])
