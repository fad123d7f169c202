"""A stranger's model to start from: what its files claim is compared before memory is taken and tokens are added."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save_file
from safetensors.torch import load_file
from torch import Tensor

from tests.fuzz.targets import TARGETS, limited, made
from transformer_mt.config.runs import TRAINED_ON, WEIGHTS
from transformer_mt.data.store import SIDES
from transformer_mt.data.trained_on import TrainedOn
from transformer_mt.errors import TmtError
from transformer_mt.runtime.weights import save_weights

(START_FROM,) = (target for target in TARGETS if target.name == "start-from")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = made(START_FROM, tmp_path_factory.mktemp("parent") / "files")
    START_FROM.use(folder)
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "files"))


def refusal(folder: Path) -> str:
    with limited(memory=1 << 28), pytest.raises(TmtError) as error:
        START_FROM.use(folder)
    return str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("d_model: 16", "d_model: 65536", "shape of source_embedding.tokens.weight"),
        ("encoder_layers: 1", "encoder_layers: 900", "1 encoder layers in the file, 900 in the config"),
    ],
)
def test_a_config_that_claims_a_larger_model(folder: Path, old: str, new: str, said: str) -> None:
    """A config that leaves out `model` takes it from there, and a model of that size would be built."""
    file = folder / "model" / "config.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    assert said in refusal(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.to(torch.int32), "not finite floats: source_embedding.tokens.weight"),
        (lambda table: table * float("nan"), "not finite floats: source_embedding.tokens.weight"),
        (lambda table: table[:5].clone(), "shape of source_embedding.tokens.weight"),
        (lambda table: table[None], "shape of source_embedding.tokens.weight"),
        (lambda table: table[:0].clone(), "shape of source_embedding.tokens.weight"),
    ],
    ids=["integers", "nan", "fewer rows", "dimensions", "empty"],
)
def test_a_table_that_cannot_grow(folder: Path, change: Callable[[Tensor], Tensor], said: str) -> None:
    file = folder / "model" / WEIGHTS
    weights: Mapping[str, Tensor] = load_file(file)
    name = "source_embedding.tokens.weight"
    save_weights({**weights, name: change(weights[name])}, file)
    assert said in refusal(folder)


@pytest.mark.parametrize(
    "hashes",
    [
        np.zeros((2, 3), np.uint64),
        np.zeros((0,) * 40, np.uint64),
        np.zeros(5, np.float32),
        np.zeros(5, np.int64),
        np.zeros((), np.uint64),
    ],
    ids=["table", "dimensions", "floats", "signed", "number"],
)
def test_hashes_that_are_none(folder: Path, hashes: np.ndarray) -> None:
    save_file(dict.fromkeys(SIDES, hashes), folder / "model" / TRAINED_ON)
    assert "is not a list of at most 1,000,000 hashes" in refusal(folder)


def test_hashes_in_any_order_are_the_same(tmp_path: Path) -> None:
    some = np.array([7, 3, 3, 2**63], np.uint64)
    save_file(dict.fromkeys(SIDES, some), tmp_path / TRAINED_ON)
    read = TrainedOn.read(tmp_path)
    assert read is not None
    assert read.hashes["source"].tolist() == [3, 7, 2**63]
    (tmp_path / TRAINED_ON).write_bytes(read.to_bytes())
    with safe_open(tmp_path / TRAINED_ON, "np") as opened:
        assert opened.get_tensor("target").tolist() == [3, 7, 2**63]


def test_a_vocabulary_of_millions_of_lines(folder: Path) -> None:
    (folder / "model" / "source" / "vocabulary.txt").write_bytes(b"\n" * (1 << 22))
    assert "more than 2,097,152 lines" in refusal(folder)
