"""Small models with random weights and any options, each in its own folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from transformer_mt.config.load import load_config
from transformer_mt.decoding.model_directory import ModelDirectory, load_model_directory
from transformer_mt.decoding.model_directory import save_model_directory as save
from transformer_mt.kernels.build import build_model
from transformer_mt.runtime.weights import named_weights
from transformer_mt.text.codec import load_codecs
from transformer_mt.text.vocabulary import BOS, PAD

MakeModel = Callable[..., ModelDirectory]


@pytest.fixture(scope="module")
def make_model(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> MakeModel:
    """A model directory like `tiny_model`'s, with other options of the model (and of the search)."""

    def make(decoding: dict[str, Any] | None = None, **model: Any) -> ModelDirectory:
        values = load_config(tiny_model / "config.yaml").model_dump(mode="json")
        values["model"] |= {"max_positions": None, **model}
        values["decoding"] |= decoding or {}
        config = type(load_config(tiny_model / "config.yaml")).model_validate(values)
        torch.manual_seed(1)
        network = build_model(config, 31, 31)
        with torch.no_grad():
            for parameter in network.parameters():  # also gains, shifts and biases: none is 0 or 1
                parameter.add_(0.3 * torch.randn_like(parameter))
            if network.generator.bias is not None:
                network.generator.bias[[PAD, BOS]] -= 9.0  # a trained model never writes them
        folder = tmp_path_factory.mktemp("made") / "model"
        save(folder, config, named_weights(network), load_codecs(tiny_model))
        return load_model_directory(folder)

    return make


@pytest.fixture(scope="module")
def model(make_model: MakeModel) -> ModelDirectory:
    return make_model()
