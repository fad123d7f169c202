"""Weights on disk: a round trip with tied weights, and a clear error for every damaged file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from transformer_mt.config.model import ModelConfig
from transformer_mt.errors import TmtError
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.weights import load_weights, named_weights, read_shapes, read_weights, save_weights

IDS = torch.tensor([[2, 5, 6, 3]])


def model(seed: int, **options: object) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(
        ModelConfig(**{"d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1, **options}), 9, 9
    ).eval()


@pytest.mark.parametrize("ties", ["none", "decoder", "all"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_round_trip_gives_the_same_model(tmp_path: Path, ties, norm):
    saved, loaded = model(1, tie_embeddings=ties, norm=norm), model(2, tie_embeddings=ties, norm=norm)
    file = tmp_path / "model.safetensors"
    save_weights(named_weights(saved), file)
    load_weights(loaded, read_weights(file), file)
    assert torch.equal(loaded(IDS, IDS), saved(IDS, IDS))
    assert torch.equal(loaded.generate_logits(loaded(IDS, IDS)), saved.generate_logits(saved(IDS, IDS)))
    tied = loaded.generator.weight.data_ptr() == loaded.target_embedding.tokens.weight.data_ptr()
    assert tied == (ties != "none")


def test_tied_weights_are_stored_once(tmp_path: Path):
    file = tmp_path / "model.safetensors"
    tied = model(1, tie_embeddings="all")
    save_weights(named_weights(tied), file)
    stored = read_weights(file)
    assert sum(tensor.numel() for tensor in stored.values()) == sum(p.numel() for p in tied.parameters())
    assert "generator.weight" not in stored


def test_all_weights_that_do_not_fit_are_reported_at_once(tmp_path: Path):
    weights = dict(named_weights(model(1, d_ff=12)))
    del weights["generator.bias"]
    weights["generator.scale"] = torch.ones(1)
    fitting = model(2)
    before = {name: tensor.clone() for name, tensor in named_weights(fitting).items()}
    with pytest.raises(TmtError) as caught:
        load_weights(fitting, weights, tmp_path / "w.safetensors")
    message = str(caught.value)
    assert "missing: generator.bias" in message
    assert "unknown: generator.scale" in message
    assert "feed_forward.inner.weight: [12, 8] in the file, [8, 8] in the model" in message
    assert "w.safetensors" in message
    assert caught.value.remedy
    for name, tensor in named_weights(fitting).items():
        assert torch.equal(tensor, before[name]), "a model is loaded completely or not at all"


@pytest.mark.parametrize("wrong", [torch.tensor(float("nan")), torch.tensor(float("inf")), torch.tensor(3)])
def test_weights_that_are_not_finite_are_refused(tmp_path: Path, wrong: torch.Tensor):
    weights = dict(named_weights(model(1)))
    weights["generator.bias"] = wrong.expand_as(weights["generator.bias"])
    with pytest.raises(TmtError, match=r"not finite floats: generator\.bias"):
        load_weights(model(2), weights, tmp_path)


def test_a_long_list_of_problems_is_cut(tmp_path: Path):
    with pytest.raises(TmtError, match=r"and \d+ more"):
        load_weights(model(1), {}, tmp_path)


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "header", "text"])
def test_a_missing_or_damaged_file_is_a_clear_error(tmp_path: Path, damage):
    file = tmp_path / "model.safetensors"
    save_weights(named_weights(model(1)), file)
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        damaged = {
            "empty": b"",
            "cut": content[: len(content) // 2],
            "header": b"\xff" * 16 + content[16:],
            "text": b"these are not weights",
        }
        file.write_bytes(damaged[damage])
    with pytest.raises(TmtError, match="missing" if damage == "missing" else "not a readable") as caught:
        read_weights(file)
    assert caught.value.place == str(file)


def test_a_file_that_cannot_be_opened_is_not_called_missing(tmp_path: Path):
    (tmp_path / "model.safetensors").mkdir()
    with pytest.raises(TmtError, match="found a folder") as caught:
        read_weights(tmp_path / "model.safetensors")
    assert "missing" not in str(caught.value)


def test_a_failed_save_is_an_os_error(tmp_path: Path):
    with pytest.raises(OSError):
        save_weights(named_weights(model(1)), tmp_path / "nowhere" / "model.safetensors")


def test_a_header_of_very_many_tensors_is_refused_at_once(tmp_path: Path):
    """The library needs quadratic time to list them."""
    header = json.dumps({f"t{n}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(100_000)})
    file = tmp_path / "model.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header.encode())
    with pytest.raises(TmtError, match=r"not a readable safetensors file \(a header of "):
        read_shapes(file)
