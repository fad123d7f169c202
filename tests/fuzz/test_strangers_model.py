"""The folder of a stranger's model: what it claims is compared with the sizes of its files before memory is taken."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz.targets import limited, made, model_target
from transformer_mt.decoding.model_directory import load_model_directory
from transformer_mt.errors import TmtError

MEMORY = 1 << 28  # bytes; much less than each of these models claims to need


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = made(model_target("character"), tmp_path_factory.mktemp("model") / "files") / "model"
    load_model_directory(folder)
    return folder


@pytest.fixture
def model(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "model"))


def refusal(model: Path) -> str:
    with limited(memory=MEMORY), pytest.raises(TmtError) as error:
        load_model_directory(model)
    return str(error.value)


def in_config(old: str, new: str) -> Callable[[Path], None]:
    def change(model: Path) -> None:
        text = (model / "config.yaml").read_text(encoding="utf-8")
        assert old in text
        (model / "config.yaml").write_text(text.replace(old, new), encoding="utf-8")

    return change


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("d_model: 16", "d_model: 65536", "shape of source_embedding.tokens.weight"),
        ("d_ff: 32", "d_ff: 1048576", "shape of"),
        ("encoder_layers: 1", "encoder_layers: 1000", "1 encoder layers in the file, 1000 in the config"),
        ("decoder_layers: 1", "decoder_layers: 2", "1 decoder layers in the file, 2 in the config"),
        (
            "positions: sinusoidal\n  max_positions: null",
            "positions: learned\n  max_positions: 1000000000000000000",
            "must be at most",
        ),
        ("positions: sinusoidal\n  max_positions: null", "positions: learned\n  max_positions: 1000000", "missing"),
    ],
)
def test_a_config_that_asks_for_a_larger_model_than_the_weights(model: Path, old: str, new: str, said: str) -> None:
    in_config(old, new)(model)
    assert said in refusal(model)


def tensors(model: Path, name: str, shape: list[int], dtype: str = "F32") -> None:
    """Replace the claimed shape of a tensor, or add an empty one."""
    file = model / "model.safetensors"
    content = file.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    end = len(data)
    header[name] = {
        "dtype": dtype,
        "shape": shape,
        "data_offsets": header.get(name, {}).get("data_offsets", [end, end]),
    }
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.mark.parametrize("shape", [[0], [0, 10**18], [1] * 69 + [0], [0] * 9])
def test_tensors_of_odd_shapes(model: Path, shape: list[int]) -> None:
    tensors(model, "more", shape)
    assert "unknown: more" in (said := refusal(model)) or "dimensions" in said


def test_weights_of_integers(model: Path) -> None:
    tensors(model, "generator.bias", [next(iter(_shape(model, "generator.bias")))], "I32")
    assert "not finite floats: generator.bias" in refusal(model)


def _shape(model: Path, name: str) -> list[int]:
    content = (model / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    shape: list[int] = json.loads(content[8 : 8 + length])[name]["shape"]
    return shape


def sparse(file: Path) -> None:
    """3 GiB that take no space on the disk."""
    with file.open("ab") as stream:
        stream.truncate(3 << 30)


@pytest.mark.parametrize("name", ["source/vocabulary.txt", "source/tokenizer.json", "target/truecase.txt"])
def test_files_of_a_tokenizer_that_would_fill_the_memory(model: Path, name: str) -> None:
    sparse(model / name)
    assert f"{Path(name).name} is larger than 64 MiB" in refusal(model)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_files_of_a_tokenizer_that_never_end(model: Path, make: Callable[[Path], None]) -> None:
    (model / "source" / "vocabulary.txt").unlink()
    make(model / "source" / "vocabulary.txt")
    assert "vocabulary.txt is not a regular file" in refusal(model)


def test_a_vocabulary_of_another_size_than_the_embedding(model: Path) -> None:
    with (model / "source" / "vocabulary.txt").open("a", encoding="utf-8") as stream:
        stream.write("".join(f"word{n}\n" for n in range(1000)))
    assert "lines, but the model has" in refusal(model)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"language": "lex_attrs", "tokenizer": {}}',
        '{"language": "../x"}',
        "1" * 5000,
    ],
    ids=["lists", "objects", "module", "path", "digits"],
)
def test_settings_of_a_tokenizer(model: Path, text: str) -> None:
    (model / "source" / "tokenizer.json").write_text(text, encoding="utf-8")
    assert "the tokenizer is damaged" in refusal(model)
