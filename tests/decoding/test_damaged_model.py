"""A damaged file of a model is noticed when the model is opened; the decoding settings may be edited."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from transformer_mt.decoding.model_directory import load_model_directory
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import TmtError


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


def flip(file: Path, place: int, bit: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1 << bit
    file.write_bytes(content)


@pytest.mark.parametrize("place", [0.2, 0.5, 0.999], ids=["first", "middle", "last"])
def test_a_flipped_bit_in_the_weights_is_noticed(model: Path, place: float) -> None:
    file = model / "model.safetensors"
    flip(file, int(place * file.stat().st_size), bit=0)  # the lowest bit of a number: it stays finite
    with pytest.raises(TmtError, match="the weights are damaged: their checksum differs") as error:
        load_model_directory(model)
    assert error.value.place == str(file)
    assert "Copy the whole model folder again" in str(error.value)


def test_no_flipped_bit_in_weights_or_tokenizers_changes_a_translation(model: Path) -> None:
    generator, right = random.Random(7), [one.text for one in Translator.load([model]).translate(["hello", "a b c"])]
    files = [model / "model.safetensors", *(model / "source").iterdir()]
    for _ in range(20):
        for file in files:
            sound = file.read_bytes()
            flip(file, generator.randrange(len(sound)), generator.randrange(8))
            try:
                found = [one.text for one in Translator.load([model]).translate(["hello", "a b c"])]
            except TmtError:
                found = right
            assert found == right, file
            file.write_bytes(sound)


def test_a_missing_file_of_the_tokenizers_is_noticed(model: Path) -> None:
    """Without target/, both sides would share the source's tokenizer."""
    weights = load_file(model / "model.safetensors")
    with safe_open(model / "model.safetensors", "np") as opened:
        facts = opened.metadata()
    facts["sha256"] += f"{'0' * 64}  target/vocabulary.txt\n"
    save_file(weights, model / "model.safetensors", facts)
    with pytest.raises(TmtError, match=r"saved with the weights, and missing now: target/vocabulary\.txt"):
        load_model_directory(model)


def test_an_export_is_not_taken_for_a_damaged_model(tmp_path: Path) -> None:
    (tmp_path / "model.bin").touch()
    with pytest.raises(TmtError, match="this is an export for CTranslate2"):
        load_model_directory(tmp_path)


def test_a_tokenizer_of_another_model_is_named(model: Path) -> None:
    file = model / "source" / "tokenizer.json"
    text = file.read_text(encoding="utf-8")
    assert '"case": "keep"' in text
    file.write_text(text.replace('"case": "keep"', '"case": "lower"'), encoding="utf-8")
    with pytest.raises(TmtError, match="not the file that the weights beside it were trained with") as error:
        load_model_directory(model)
    assert error.value.place == str(file)


def test_settings_and_notes_may_be_edited(model: Path) -> None:
    file = model / "config.yaml"
    text = file.read_text(encoding="utf-8")
    assert "beam: 3" in text
    file.write_text(text.replace("beam: 3", "beam: 2"), encoding="utf-8")
    (model / "source" / "notes.txt").write_text("mine", encoding="utf-8")
    assert load_model_directory(model).config.decoding.beam == 2


def test_weights_without_checksums_open(model: Path) -> None:
    file = model / "model.safetensors"
    weights = load_file(file)
    save_file(weights, file)  # as an older version wrote them
    assert set(load_file(file)) == {name for name, _ in load_model_directory(model).model.named_parameters()}
