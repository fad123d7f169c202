"""`tmt inspect`: published parameter counts of the shipped configs, readable tables, clear error messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import typer
from torch import nn
from typer.testing import CliRunner, Result

from transformer_mt.cli.inspect import inspect
from transformer_mt.config.load import load_config
from transformer_mt.data.prepared import FORMAT, MANIFEST, Manifest, settings_of
from transformer_mt.decoding.model_directory import save_model_directory
from transformer_mt.errors import TmtError
from transformer_mt.kernels.build import build_model
from transformer_mt.runtime.weights import named_weights
from transformer_mt.text.codec import Codec, Segmenter, load_codecs
from transformer_mt.text.vocabulary import MARKS, Vocabulary

pytestmark = pytest.mark.slow

CLASSICS = Path(__file__).parents[2] / "configs" / "classics"
CONFIG = """
name: tiny
data: {source: qaa, target: qab, corpus: {kind: text, files: {source: a, target: b}}}
tokenizer: {kind: whitespace}
model: {d_model: 8, n_heads: 2, d_ff: 12, encoder_layers: 2, decoder_layers: 3}
training: {max_epochs: 1}
"""


def run(*arguments: object) -> Result:
    app = typer.Typer()
    app.command()(inspect)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def as_json(*arguments: object) -> dict:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def refused(*arguments: object) -> TmtError:
    result = run(*arguments)
    assert isinstance(result.exception, TmtError), result.output
    assert result.stdout == ""
    return result.exception


def codecs_in(folder: Path, source: int, target: int) -> Path:
    tokenizer = load_config(tiny(folder)).source_tokenizer
    for side, language, words in (("source", "qaa", source), ("target", "qab", target)):
        vocabulary = Vocabulary([*MARKS, *(f"w{index}" for index in range(words - len(MARKS)))])
        Codec(Segmenter(tokenizer, language), vocabulary).save(folder / side)
    return folder


def tiny(folder: Path, text: str = CONFIG) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "tiny.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("name", "source", "target", "parameters"),
    [
        ("handmade-ko-en", 29_004, 19_736, 21_554_456),
        ("annotated", 10, 10, 44_155_914),
        ("revisited-de-en", 7_853, 5_893, 9_038_341),
        ("hyunwoongko-en-de", 5_893, 7_855, 55_207_087),
    ],
)
def test_the_classics_have_their_published_number_of_parameters(name, source, target, parameters):
    value = as_json("--config", CLASSICS / f"{name}.yaml", "--source-vocab", source, "--target-vocab", target)
    assert value["parameters"] == {"total": parameters, "trainable": parameters}
    assert sum(tensor["count"] for tensor in value["tensors"]) == parameters
    assert sum(value["parts"].values()) == parameters


def test_frozen_parts_are_not_counted_as_trainable(tmp_path):
    text = CONFIG.replace("max_epochs: 1", "max_epochs: 1, start_from: runs/other, freeze: [encoder, embeddings]")
    value = as_json("--config", tiny(tmp_path, text), "--source-vocab", 10, "--target-vocab", 10)
    frozen = value["parts"]["encoder"] + value["parts"]["source_embedding"] + value["parts"]["target_embedding"]
    assert value["parameters"]["trainable"] == value["parameters"]["total"] - frozen


@pytest.mark.parametrize(("source", "target"), [(19_214, 10_837), (100, 70)])
def test_the_replication_is_torchs_transformer_plus_embeddings_and_output_layer(source, target):
    with torch.device("meta"):
        stacks = nn.Transformer(512, 8, 3, 3, 512, batch_first=True)
        others = nn.Embedding(source, 512), nn.Embedding(target, 512), nn.Linear(512, target)
    expected = sum(parameter.numel() for module in (stacks, *others) for parameter in module.parameters())
    file = CLASSICS / "replication-multi30k.yaml"
    assert (
        as_json("--config", file, "--source-vocab", source, "--target-vocab", target)["parameters"]["total"] == expected
    )


def test_there_are_five_classics_and_each_is_a_whole_config():
    files = sorted(CLASSICS.glob("*.yaml"))
    assert len(files) == 5
    for file in files:
        config = load_config(file)
        assert config.name == file.stem
        assert config.decoding.beam == 1, "reported greedy"
        assert file.read_text(encoding="utf-8").startswith("# "), "a comment says what is special"


def test_classics_train_as_reported():
    training = {file.stem: load_config(file).training for file in CLASSICS.glob("*.yaml")}
    reported = {
        "handmade-ko-en": ("constant", 5e-4, 256, 20),
        "annotated": ("noam", None, 80, 1),
        "replication-multi30k": ("constant", 1e-4, 128, 15),
        "revisited-de-en": ("constant", 5e-4, 128, 10),
        "hyunwoongko-en-de": ("plateau", 1e-5, 128, 1000),
    }
    for name, expected in reported.items():
        found = training[name]
        assert (found.schedule, found.learning_rate, found.batch_sentences, found.max_epochs) == expected, name
        assert found.token_budget is None


def test_the_table_is_aligned_and_counts_with_separators():
    result = run("--config", CLASSICS / "revisited-de-en.yaml", "--source-vocab", 7853, "--target-vocab", 5893)
    lines = result.stdout.splitlines()
    table = lines[: lines.index("")]
    assert len({len(line) for line in table}) == 1
    assert table[1].split("  ")[0] == "source_embedding.tokens.weight"
    assert table[1].endswith("2,010,368")
    assert "7,853 × 256" in table[1]
    assert "[V, D]" in table[1]
    assert any(line.startswith("total") and "9,038,341" in line for line in lines)
    assert result.stderr == ""


def test_shapes_in_letters_and_in_numbers(tmp_path: Path):
    arguments = ("--config", tiny(tmp_path), "--source-vocab", 20, "--target-vocab", 30, "--shapes")
    text = run(*arguments).stdout
    heading = "decoder.layers.0.cross_attention: target positions attend to source positions: Q = T, M = S"
    block = text[text.index(heading) :].split("\n\n")[0]
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in block.splitlines()[1:]}
    assert rows["query"] == "[B, H, Q, K] 2 × 2 × 5 × 4"
    assert rows["scores"] == "[B, H, Q, M] 2 × 2 × 5 × 7"
    assert rows["context"] == "[B, H, Q, K] 2 × 2 × 5 × 4"
    assert "encoder.layers.1: the same shapes, with other weights" in text
    assert "decoder.layers.1 to decoder.layers.2: the same shapes, with other weights" in text
    assert text.rstrip().endswith("2 × 5 × 30")


def test_shapes_as_json_hold_every_layer(tmp_path: Path):
    arguments = ("--config", tiny(tmp_path), "--source-vocab", 20, "--target-vocab", 30)
    shapes = as_json(*arguments, "--shapes")["shapes"]
    assert shapes[-1] == {"module": "generator", "name": "logits", "letters": ["B", "T", "V"], "shape": [2, 5, 30]}
    assert {step["module"] for step in shapes} >= {"encoder.layers.1.feed_forward", "decoder.layers.2.cross_attention"}
    assert "shapes" not in as_json(*arguments)


def test_overrides_reach_the_model(tmp_path: Path):
    arguments = ("--config", tiny(tmp_path), "--source-vocab", 20, "--target-vocab", 20)
    whole, tied = as_json(*arguments), as_json(*arguments, "--set", "model.tie_embeddings=decoder")
    assert whole["parameters"]["total"] - tied["parameters"]["total"] == 20 * 8
    (shared,) = [tensor for tensor in tied["tensors"] if "aliases" in tensor]
    assert shared["aliases"] == ["generator.weight"]
    text = run(*arguments, "--set", "model.tie_embeddings=decoder").stdout
    assert "generator.weight is target_embedding.tokens.weight: one tensor, counted once" in text


def test_a_huge_model_takes_no_memory(tmp_path: Path):
    big = ("--set", "model.d_model=65536", "--set", "model.d_ff=262144")
    value = as_json("--config", tiny(tmp_path), "--source-vocab", 250_000, "--target-vocab", 250_000, "--shapes", *big)
    assert value["parameters"]["total"] > 200e9


def prepared_in(folder: Path, source: int, target: int) -> tuple[str, str]:
    """Write prepared data of CONFIG with vocabularies of these sizes, and return the option that selects it."""
    codecs_in(folder / "tiny", source, target)
    settings = settings_of(load_config(tiny(folder / "tiny")))
    manifest = Manifest(
        format=FORMAT, settings=settings, fingerprint="", files=[], splits={}, parts=[], report={}
    ).model_dump()
    (folder / "tiny" / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return "--set", f"data.prepared={folder}"


def test_sizes_come_from_prepared_data(tmp_path: Path):
    file = tiny(tmp_path)
    value = as_json("--config", file, *prepared_in(tmp_path / "prepared", 21, 34))
    shapes = {tensor["name"]: tensor["shape"] for tensor in value["tensors"]}
    assert shapes["source_embedding.tokens.weight"] == [21, 8]
    assert shapes["generator.weight"] == [34, 8]


def test_sizes_come_from_a_sentencepiece_tokenizer(tmp_path: Path):
    text = CONFIG.replace("{kind: whitespace}", "{kind: sentencepiece, vocab_size: 500, shared: true}")
    unprepared = ("--set", f"data.prepared={tmp_path / 'nothing'}")
    value = as_json("--config", tiny(tmp_path, text), "--set", "model.tie_embeddings=all", *unprepared)
    assert value["tensors"][0]["shape"] == [500, 8]


def test_data_of_another_tokenizer_gives_no_size(tmp_path: Path):
    there = prepared_in(tmp_path / "prepared", 21, 34)
    value = as_json("--config", tiny(tmp_path), *there, "--set", "tokenizer={kind: sentencepiece, vocab_size: 500}")
    assert value["tensors"][0]["shape"] == [500, 8]
    assert "tmt prepare" in refused("--config", tiny(tmp_path), *there, "--set", "tokenizer.min_frequency=7").remedy


def test_data_of_another_corpus_gives_no_size(tmp_path: Path):
    there = prepared_in(tmp_path / "prepared", 21, 34)
    other = ("--set", "data.corpus.files.source=other")
    assert "tmt prepare" in refused("--config", tiny(tmp_path), *there, *other).remedy


def test_missing_sizes_are_an_error_that_names_the_options(tmp_path: Path):
    file = tiny(tmp_path)
    for given in ((), ("--source-vocab", 10)):
        error = refused("--config", file, *given, "--set", f"data.prepared={tmp_path / 'nothing'}")
        assert "--source-vocab N --target-vocab N" in error.remedy
        assert "tmt prepare" in error.remedy


def test_one_vocabulary_cannot_have_two_sizes(tmp_path: Path):
    file = tiny(tmp_path, CONFIG.replace("kind: whitespace", "kind: whitespace, shared: true"))
    arguments = ("--config", file, "--set", "model.tie_embeddings=all", "--source-vocab", 10)
    assert "10 and 12" in refused(*arguments, "--target-vocab", 12).message
    assert "10 and 12" in refused("--config", file, "--source-vocab", 10, "--target-vocab", 12).message, "tied or not"
    assert as_json(*arguments)["tensors"][0]["shape"] == [10, 8], "one size is enough for one vocabulary"


def test_a_trained_model(tmp_path: Path):
    config = load_config(tiny(tmp_path / "config"))
    folder = tmp_path / "model"
    weights = named_weights(build_model(config, 21, 34))
    save_model_directory(folder, config, weights, load_codecs(codecs_in(tmp_path / "codecs", 21, 34)))
    value = as_json("--model", folder)
    assert value["parameters"]["total"] == sum(tensor.numel() for tensor in weights.values())
    assert "--config" in refused("--model", folder, "--source-vocab", 5).message
    assert "cannot be combined" in refused("--model", folder, "--config", tmp_path / "config" / "tiny.yaml").message
    assert "no such model" in refused("--model", tmp_path / "nowhere").message
