"""Models of Marian, as Hugging Face stores them: the same logits and translations, and clear refusals.

The reference here computes Marian's model in its own way, from the tensors of the file.
"""

from __future__ import annotations

import json
import math
import shlex
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor

import transformer_mt as tmt
from transformer_mt.decoding.model_directory import load_model_directory
from transformer_mt.errors import TmtError
from transformer_mt.phrasebook import generate
from transformer_mt.reporting.history import read_history
from transformer_mt.text.tokenizers.piece_file import Piece, model_of
from transformer_mt.text.vocabulary import BOS, EOS, MARKS, UNK
from transformer_mt.workflows.converting import marian

PAIRS = list(generate("de", "en", "train", 600, 1))
LINES = [source for source, _ in generate("de", "en", "test", 40, 2)] + [
    "Straße  mit   Lücken",
    "ﬁne … Ünïcödé 日本",
    "É",
]
D, HEADS = 16, 2
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 312087009\n"
Q = "model.encoder.layers.0.self_attn.q_proj.weight"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with random weights; its pieces and files are as those of OPUS-MT."""
    folder = tmp_path_factory.mktemp("opus") / "opus-mt-de-en"
    folder.mkdir()
    numbers = {"</s>": 0, "<unk>": 1}
    for side, size, texts in (("source", 160, [one for one, _ in PAIRS]), ("target", 120, [one for _, one in PAIRS])):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_prefix=str(folder / side),
            vocab_size=size,
            model_type="unigram",
            minloglevel=2,
            num_threads=1,
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        pieces = _library(folder / f"{side}.spm")
        for index in range(3, pieces.get_piece_size()):
            numbers.setdefault(pieces.id_to_piece(index), len(numbers))
    numbers["<pad>"] = len(numbers)
    (folder / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "deu", "target_lang": "en"}))
    padding = numbers["<pad>"]
    config = {"model_type": "marian", "d_model": D, "encoder_layers": 2, "decoder_layers": 3, "dropout": 0.1}
    config |= {"encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS, "encoder_ffn_dim": 24}
    config |= {"decoder_ffn_dim": 24, "activation_function": "swish", "scale_embedding": True, "num_beams": 6}
    config |= {"max_position_embeddings": 64, "pad_token_id": padding, "decoder_start_token_id": padding}
    config |= {"normalize_before": False, "static_position_embeddings": True, "vocab_size": len(numbers)}
    (folder / "config.json").write_text(json.dumps(config))
    save_file(_random_tensors(len(numbers)), folder / "model.safetensors")
    return folder


@pytest.fixture(scope="module")
def converted(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "de-en"
    made = tmt.convert(original, folder)
    assert (made.folder, made.direction) == (str(folder), "de-en")
    return folder


@pytest.fixture
def copied(original: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in original.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def _library(file: Path) -> Any:
    pieces = sentencepiece.SentencePieceProcessor()
    pieces.load(str(file))
    return pieces


def _random_tensors(size: int) -> dict[str, Tensor]:
    torch.manual_seed(1)

    def linear(name: str, rows: int, columns: int) -> dict[str, Tensor]:
        return {f"{name}.weight": torch.randn(rows, columns) * 0.4, f"{name}.bias": torch.randn(rows) * 0.1}

    def norm(name: str) -> dict[str, Tensor]:
        return {f"{name}.weight": 1 + torch.randn(D) * 0.1, f"{name}.bias": torch.randn(D) * 0.1}

    tensors = {"model.shared.weight": torch.randn(size, D) * 0.3, "final_logits_bias": torch.randn(1, size)}
    tensors["model.shared.weight"][-1] = 0
    for stack, layers in (("encoder", 2), ("decoder", 3)):
        for number in range(layers):
            name = f"model.{stack}.layers.{number}"
            for one in ["self_attn", "encoder_attn"][: 1 + (stack == "decoder")]:
                for part in ("q", "k", "v", "out"):
                    tensors |= linear(f"{name}.{one}.{part}_proj", D, D)
                tensors |= norm(f"{name}.{one}_layer_norm")
            tensors |= linear(f"{name}.fc1", 24, D) | linear(f"{name}.fc2", D, 24) | norm(f"{name}.final_layer_norm")
    return tensors


def _logits(folder: Path, source: list[int], target: list[int]) -> Tensor:
    """Marian's logits [T, V] for one pair, by its own formulas."""
    tensors = load_file(folder / "model.safetensors")
    shared = tensors["model.shared.weight"]

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    def norm(x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, (D,), tensors[f"{name}.weight"], tensors[f"{name}.bias"], 1e-5)

    def embed(ids: list[int]) -> Tensor:
        rates = [10_000 ** (-2 * (column % (D // 2)) / D) for column in range(D)]
        where = [
            [(math.sin if column < D // 2 else math.cos)(place * rates[column]) for column in range(D)]
            for place in range(len(ids))
        ]
        return shared[ids] * math.sqrt(D) + torch.tensor(where)

    def attend(x: Tensor, memory: Tensor, name: str, causal: bool) -> Tensor:
        heads = []
        three = (linear(one, f"{name}.{part}_proj") for one, part in ((x, "q"), (memory, "k"), (memory, "v")))
        for query, key, value in zip(*(one.chunk(HEADS, 1) for one in three), strict=True):
            scores = query @ key.T / math.sqrt(D // HEADS)
            later = torch.ones_like(scores, dtype=torch.bool).triu(1 if causal else len(memory))
            heads.append(scores.masked_fill(later, -math.inf).softmax(1) @ value)
        return linear(torch.cat(heads, 1), f"{name}.out_proj")

    def layer(x: Tensor, memory: Tensor | None, name: str) -> Tensor:
        x = norm(x + attend(x, x, f"{name}.self_attn", memory is not None), f"{name}.self_attn_layer_norm")
        if memory is not None:
            x = norm(x + attend(x, memory, f"{name}.encoder_attn", False), f"{name}.encoder_attn_layer_norm")
        inner = linear(x, f"{name}.fc1")
        return norm(x + linear(inner * inner.sigmoid(), f"{name}.fc2"), f"{name}.final_layer_norm")

    memory = embed(source)
    for number in range(2):
        memory = layer(memory, None, f"model.encoder.layers.{number}")
    hidden = embed(target)
    for number in range(3):
        hidden = layer(hidden, memory, f"model.decoder.layers.{number}")
    return hidden @ shared.T + tensors["final_logits_bias"]


def test_the_logits_are_those_of_marian(original: Path, converted: Path) -> None:
    numbers = json.loads((original / "vocab.json").read_text(encoding="utf-8"))
    found = load_model_directory(converted)
    words = found.target.vocabulary.tokens
    known = range(len(MARKS), len(words))
    rows = [numbers[words[index]] for index in known]
    start = numbers["<pad>"]
    for line in LINES[:10]:
        source = found.source.encode(line)
        theirs = [{UNK: 1, EOS: 0}.get(one, 0) or numbers.get(found.source.vocabulary.tokens[one], 0) for one in source]
        target = torch.randint(len(MARKS), len(words), (9,)).tolist()
        expected = _logits(original, theirs, [start, *(numbers[words[one]] for one in target)])
        with torch.inference_mode():
            hidden = found.model(torch.tensor([source]), torch.tensor([[BOS, *target]]))
            logits = found.model.generate_logits(hidden)[0]
        torch.testing.assert_close(logits[:, known], expected[:, rows], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(logits[:, [EOS, UNK]], expected[:, [0, 1]], atol=1e-4, rtol=1e-4)
        assert logits[:, [0, BOS]].max() < -50, "padding and the start are never written"


def test_sentences_are_cut_as_by_the_pieces_of_marian(original: Path, converted: Path) -> None:
    """Also characters that only the other side has."""
    numbers = json.loads((original / "vocab.json").read_text(encoding="utf-8"))
    translator = tmt.load(converted)
    pieces = _library(original / "source.spm")
    for line in LINES:
        expected = [piece if piece in numbers else "<unk>" for piece in pieces.encode(line, out_type=str)]
        known = load_model_directory(converted).source.vocabulary
        ids = known.encode(translator.translate(line).source_tokens)
        assert ["<unk>" if one == UNK else known.tokens[one] for one in ids] == expected, line


def test_a_character_that_only_the_other_side_has_can_be_read_and_written(original: Path, converted: Path) -> None:
    found = load_model_directory(converted)
    only_source = {one for one in found.source.vocabulary.tokens if len(one) == 1}
    target = _library(original / "target.spm")
    missing = [one for one in only_source if target.piece_to_id(one) == target.unk_id()]
    assert "ß" in missing
    assert set(missing) <= {*found.target.vocabulary.tokens}
    assert found.target.decode(found.target.encode("Fuß ß")) == "Fuß ß"


def test_the_settings_of_the_model_are_in_its_config(converted: Path) -> None:
    config = tmt.load_config(converted / "config.yaml")
    assert (config.data.cleaning.unicode, config.data.max_length, config.decoding.beam) == ("NFKC", 64, 6)
    assert (config.model.norm, config.model.activation, config.model.dropout) == ("post", "silu", 0.1)
    assert (config.source_tokenizer.algorithm, config.data.source, config.data.target) == ("unigram", "de", "en")


def _tuned(parent: Path, languages: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The folder of a model that was trained for four steps from another one, and has learned."""
    monkeypatch.chdir(folder)
    Path("tuned.yaml").write_text(
        f"""
name: tuned
data: {{{languages}, corpus: {{kind: phrasebook, train: 60, validation: 20, test: 1}}}}
training: {{start_from: '{parent}', max_steps: 4, batch_tokens: 256, bleu_sentences: 0}}
"""
    )
    report = tmt.train(tmt.load_config("tuned.yaml"))
    losses = [one["loss"] for one in read_history(Path("runs/tuned/metrics.jsonl")) if one["event"] == "validation"]
    assert losses[-1] < losses[0]
    return report.model


def test_a_training_starts_from_it(converted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = _tuned(converted, "source: de, target: en", tmp_path, monkeypatch)
    cleaning = tmt.load_config("runs/tuned/config.yaml").data.cleaning
    assert (cleaning.unicode, cleaning.whitespace) == ("NFKC", "collapse"), "texts are read as before"
    assert tmt.load(model).translate(LINES[0]).text is not None


def test_the_weights_may_be_float16_and_hold_copies(copied: Path, tmp_path: Path) -> None:
    tensors = load_file(copied / "model.safetensors")
    positions = marian.sinusoidal_positions(64, D)
    table = torch.cat([positions[:, 0::2], positions[:, 1::2]], dim=1)
    copies = {f"model.{stack}.embed_positions.weight": table.clone() for stack in ("encoder", "decoder")}
    copies["lm_head.weight"] = tensors["model.shared.weight"].clone()
    halves = {name: one.half() for name, one in (tensors | copies).items()}
    save_file(halves, copied / "model.safetensors")
    tmt.convert(copied, tmp_path / "made")
    assert {one.dtype for one in load_file(tmp_path / "made" / "model.safetensors").values()} == {torch.float32}


def _json(file: Path, **changes: Any) -> None:
    values = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    file.write_text(json.dumps(values | changes), encoding="utf-8")


def _weights(folder: Path, change: Callable[[dict[str, Tensor]], Any]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda one: (one / "config.json").unlink(), "this is no model of Marian"),
        (lambda one: (one / "config.json").write_text("{"), "not readable"),
        (lambda one: (one / "config.json").write_text("[]"), "it is no JSON object"),
        (lambda one: _json(one / "config.json", model_type="t5"), "model_type"),
        (lambda one: _json(one / "config.json", normalize_before=True), "normalize_before"),
        (lambda one: _json(one / "config.json", decoder_attention_heads=4), "attention_heads"),
        (lambda one: _json(one / "config.json", d_model=10**9), "d_model"),
        (
            lambda one: _json(one / "config.json", decoder_layers=4),
            "the weights have no tensor model.decoder.layers.3.",
        ),
        (lambda one: _json(one / "config.json", encoder_layers=1), "tensors belong to no model of this config"),
        (lambda one: _json(one / "config.json", encoder_ffn_dim=32, decoder_ffn_dim=32), "shape of"),
        (lambda one: _json(one / "config.json", decoder_start_token_id=10**6), "rows of the embeddings"),
        (lambda one: _json(one / "vocab.json", **{"▁": "x"}), "each piece needs a number"),
        (lambda one: _json(one / "vocab.json", **{"▁": True}), "each piece needs a number"),
        (lambda one: _json(one / "vocab.json", **{"▁": 2**70}), "each piece needs a number"),
        (lambda one: _json(one / "vocab.json", **{"▁": 0}), "two pieces have one number"),
        (lambda one: _json(one / "vocab.json", **{"</s>": 10**5}), "gives </s> the number"),
        (lambda one: _json(one / "config.json", max_position_embeddings=10**30), "max_position_embeddings"),
        (lambda one: _json(one / "config.json", encoder_layers=10**9, d_model=8), "encoder_layers"),
        (lambda one: _json(one / "generation_config.json", num_beams=None), "num_beams"),
        (lambda one: _weights(one, lambda t: t.update({"final_logits_bias": torch.zeros(2, 9)})), "final_logits_bias"),
        (lambda one: _weights(one, lambda t: t.update({Q: torch.zeros(D, 99)})), "q_proj"),
        (lambda one: _weights(one, lambda t: t.update({Q: torch.zeros(())})), "q_proj"),
        (lambda one: _weights(one, lambda t: t.update({Q: torch.ones(D, D, dtype=torch.int8)})), "floating-point"),
        (
            lambda one: (one / "vocab.json").write_text('{"xyz": 5, "<unk>": 1, "</s>": 0}'),
            "none of its pieces is in vocab.json",
        ),
        (lambda one: (one / "vocab.json").unlink(), "no such file"),
        (lambda one: (one / "source.spm").unlink(), "no such file"),
        (
            lambda one: (one / "target.spm").write_bytes(b"\x0a\xff\xff\xff\xff\x0f"),
            "not a readable SentencePiece model",
        ),
        (lambda one: (one / "target.spm").write_bytes(b""), "it has no pieces"),
        (lambda one: (one / "target.spm").write_bytes(b"\x0a\x06\x0a\x01a\x1a\x01\xff"), "a number of it has no end"),
        (lambda one: (one / "model.safetensors").write_bytes(b"x" * 99), "not a readable safetensors file"),
        (lambda one: (one / "model.safetensors").write_text(POINTER), "a Git LFS pointer, not the weights"),
        (lambda one: (one / "source.spm").write_text(POINTER), "a Git LFS pointer, not the pieces"),
        (
            lambda one: _weights(one, lambda t: t.update({"lm_head.weight": t["model.shared.weight"] + 1})),
            "lm_head.weight",
        ),
        (lambda one: _weights(one, lambda t: t["final_logits_bias"].fill_(math.nan)), "not finite"),
        (lambda one: _json(one / "tokenizer_config.json", target_lang=None), "does not name its languages"),
        (lambda one: _json(one / "tokenizer_config.json", target_lang="de"), "both languages are de"),
        (lambda one: _json(one / "tokenizer_config.json", target_lang="ROMANCE"), "'ROMANCE' is no code"),
    ],
)
def test_what_cannot_be_converted_is_refused_and_nothing_is_written(
    copied: Path, tmp_path: Path, change: Callable[[Path], Any], said: str
) -> None:
    change(copied)
    with pytest.raises(TmtError) as caught:
        tmt.convert(copied, tmp_path / "made")
    assert said in str(caught.value)
    assert caught.value.remedy
    assert not (tmp_path / "made").exists()


def _with_tags(folder: Path, *names: str) -> dict[str, int]:
    """Give the model tags, with rows of random numbers; their numbers in Marian's vocabulary."""
    numbers = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    tags = {name: len(numbers) + index for index, name in enumerate(names)}
    _json(folder / "vocab.json", **{f">>{name}<<": number for name, number in tags.items()})
    torch.manual_seed(2)
    _weights(
        folder,
        lambda tensors: tensors.update(
            {
                "model.shared.weight": torch.cat([tensors["model.shared.weight"], torch.randn(len(tags), D) * 0.3]),
                "final_logits_bias": torch.cat([tensors["final_logits_bias"], torch.randn(1, len(tags))], dim=1),
            }
        ),
    )
    return tags


def test_a_model_of_several_target_languages_reads_their_tags(copied: Path, tmp_path: Path) -> None:
    tags = _with_tags(copied, "eng", "por", "cmn_Hans", "pt_BR", "cmn_Hant", "zzz", "deu", "toki")
    made = tmt.convert(copied, tmp_path / "made")
    assert made.direction == "de-en, de-pt, de-zzz"
    assert (sorted(made.left_out), made.unknown) == (["cmn_Hans", "cmn_Hant", "pt_BR"], ("toki",))
    assert made.summary.splitlines()[:2] == [
        "left out: cmn_Hans, cmn_Hant, pt_BR (--to TAG takes one of them)",
        "left out: toki (no code of a language)",
    ]
    model = load_model_directory(tmp_path / "made")
    assert model.source.tags == ("<2en>", "<2pt>", "<2zzz>")
    pieces, line = _library(copied / "source.spm"), LINES[0]
    numbers = json.loads((copied / "vocab.json").read_text(encoding="utf-8"))
    theirs = [numbers[piece] for piece in pieces.encode(line, out_type=str)]
    for name, tag in (("por", "<2pt>"), ("eng", "<2en>")):
        ours = [*model.source.vocabulary.tag_ids([tag]), *model.source.encode(line)]
        padding = numbers["<pad>"]
        expected = _logits(copied, [tags[name], *theirs, 0], [padding])[0]
        with torch.no_grad():
            hidden = model.model(torch.tensor([ours]), torch.tensor([[BOS]]))
            found = model.model.generate_logits(hidden)[0, 0]
        known = [(own, numbers[piece]) for own, piece in enumerate(model.target.vocabulary.tokens) if piece in numbers]
        own, other = zip(*known, strict=True)
        torch.testing.assert_close(found[list(own)][4:], expected[list(other)][4:], rtol=1e-4, atol=1e-4)
    translator = tmt.load(tmp_path / "made")
    assert translator.translate(line, to="pt").text != translator.translate(line, to="en").text


def test_a_training_starts_from_one_of_several_target_languages(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_tags(copied, "eng", "kor", "por")
    tmt.convert(copied, tmp_path / "made")
    model = _tuned(tmp_path / "made", "directions: [de-en, de-ko]", tmp_path, monkeypatch)
    assert load_model_directory(Path(model)).source.tags == ("<2en>", "<2ko>", "<2pt>")
    assert tmt.load(model).translate(LINES[0], to="ko").text is not None


@pytest.mark.parametrize(
    ("to", "direction"), [("pt", "de-pt"), ("cmn_Hant", "de-zh"), ("por", "de-pt"), ("pt_br", "de-pt"), ("gl", "de-gl")]
)
def test_one_target_language_of_several_can_be_chosen(copied: Path, tmp_path: Path, to: str, direction: str) -> None:
    _with_tags(copied, "por", "cmn_Hans", "cmn_Hant", "pt_BR", "glg")
    made = tmt.convert(copied, tmp_path / "made", target=to)
    assert (made.direction, made.left_out) == (direction, ())
    assert tmt.load(tmp_path / "made").translate("Das ist gut.").tokens


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("zh", "no single tag of this model is for zh"),
        ("pt_PT", "no single tag of this model is for pt_PT"),
        ("fr", "no tag of this model is for fr"),
        ("deu", "no tag of this model is for deu"),
        ("!", "no tag of this model is"),
    ],
)
def test_a_target_language_without_a_single_tag_is_refused(copied: Path, tmp_path: Path, to: str, said: str) -> None:
    _with_tags(copied, "por", "cmn_Hans", "cmn_Hant", "deu", "toki")
    with pytest.raises(TmtError, match=said) as caught:
        tmt.convert(copied, tmp_path / "made", target=to)
    assert "por" in caught.value.remedy or "cmn_Hans" in caught.value.remedy
    assert "deu" not in caught.value.remedy
    assert "toki" not in caught.value.remedy, "only what can be chosen"
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("tags", "options", "said"),
    [
        (["cmn_Hans", "cmn_Hant"], {}, "no language has one tag of this model alone"),
        (["deu", "toki"], {}, "no language has one tag of this model alone"),
        (["fra", "por"], {"source": "mul"}, "mul is no language, and this model has tags"),
    ],
)
def test_tags_that_leave_no_direction_are_refused(
    copied: Path, tmp_path: Path, tags: list[str], options: dict[str, str], said: str
) -> None:
    _with_tags(copied, *tags)
    with pytest.raises(TmtError, match=said) as caught:
        tmt.convert(copied, tmp_path / "made", **options)
    assert caught.value.remedy
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("zipped", [True, False], ids=["as today", "as PyTorch 1.5 wrote it"])
def test_pickled_weights_are_not_read_but_what_the_message_says_makes_them_readable(
    copied: Path, tmp_path: Path, converted: Path, zipped: bool
) -> None:
    tensors = load_file(copied / "model.safetensors")
    for name in ("model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"):  # one tensor, many names
        tensors[f"{name}.weight"] = tensors["model.shared.weight"]
    (copied / "model.safetensors").unlink()
    torch.save(tensors, copied / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    with pytest.raises(TmtError, match="pickled") as caught:
        tmt.convert(copied, tmp_path / "made")
    command = caught.value.remedy.splitlines()[-1].replace("python", shlex.quote(sys.executable), 1)
    subprocess.run(["bash", "-c", command], cwd=copied, check=True)
    tmt.convert(copied, tmp_path / "made")
    made, expected = (load_file(folder / "model.safetensors") for folder in (tmp_path / "made", converted))
    assert made.keys() == expected.keys()
    assert all(torch.equal(made[name], expected[name]) for name in expected)


def test_the_message_on_pickled_weights_runs_no_code_of_them(copied: Path, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return open, (str(tmp_path / "written"), "w")

    (copied / "model.safetensors").unlink()
    torch.save({"model.shared.weight": Evil()}, copied / "pytorch_model.bin")
    with pytest.raises(TmtError, match="pickled") as caught:
        tmt.convert(copied, tmp_path / "made")
    command = caught.value.remedy.splitlines()[-1].replace("python", shlex.quote(sys.executable), 1)
    done = subprocess.run(["bash", "-c", command], cwd=copied, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "WeightsUnpickler error" in done.stderr
    assert not (tmp_path / "written").exists()


def test_a_model_that_is_not_here_has_to_be_downloaded() -> None:
    with pytest.raises(TmtError, match="no such folder") as caught:
        tmt.convert("Helsinki-NLP/opus-mt-ko-en", "models/ko-en")
    assert "hf download Helsinki-NLP/opus-mt-ko-en --local-dir opus-mt-ko-en" in caught.value.remedy


def test_nothing_is_replaced(original: Path, converted: Path) -> None:
    before = (converted / "config.yaml").read_bytes()
    with pytest.raises(TmtError, match="exists already"):
        tmt.convert(original, converted)
    assert (converted / "config.yaml").read_bytes() == before


def test_languages_can_be_named(copied: Path, tmp_path: Path) -> None:
    (copied / "tokenizer_config.json").unlink()
    assert tmt.convert(copied, tmp_path / "made", source="kor", target="English").direction == "ko-en"
    assert tmt.convert(copied, tmp_path / "other", source="jp", target="fin").direction == "ja-fi"
    with pytest.raises(TmtError, match="'xxx1' is no code"):
        tmt.convert(copied, tmp_path / "third", source="de", target="xxx1")


def test_a_new_file_of_pieces_has_what_was_given() -> None:
    pieces = [Piece("▁a", -1.5), Piece("한", -2.25), Piece("b" * 40, -3.0)]
    expected = [*((mark, 0.0) for mark in MARKS), *(piece[:2] for piece in pieces)]
    for algorithm in ("unigram", "bpe"):
        library = sentencepiece.SentencePieceProcessor()
        library.load_from_serialized_proto(model_of(pieces, algorithm))
        every = range(library.get_piece_size())
        assert [(library.id_to_piece(n), library.get_score(n)) for n in every] == expected
        assert (library.unk_id(), library.bos_id(), library.eos_id(), library.pad_id()) == (1, 2, 3, 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"normalization_rule_name": "nfkc"}, None),
        ({"model_type": "bpe"}, None),
        ({"user_defined_symbols": ["zz"]}, None),
        ({"normalization_rule_name": "nmt_nfkc_cf"}, "nmt_nfkc_cf"),
        ({"normalization_rule_name": "identity"}, "identity"),
        ({"add_dummy_prefix": False}, "changes texts in another way"),
        ({"remove_extra_whitespaces": False}, "changes texts in another way"),
        ({"treat_whitespace_as_suffix": True}, "spaces at the ends of words"),
        ({"byte_fallback": True, "vocab_size": 400}, "pieces for bytes"),
        ({"model_type": "char"}, "not unigram or BPE"),
    ],
)
def test_pieces_that_cut_otherwise_are_refused(
    copied: Path, tmp_path: Path, options: dict[str, Any], said: str | None
) -> None:
    given = {"vocab_size": 150, "model_type": "unigram", "minloglevel": 2, "num_threads": 1, **options}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([one for one, _ in PAIRS]), model_prefix=str(tmp_path / "p"), **given
    )
    (tmp_path / "p.model").rename(copied / "source.spm")
    numbers = json.loads((copied / "vocab.json").read_text(encoding="utf-8"))
    pieces = _library(copied / "source.spm")
    for index in range(3, pieces.get_piece_size()):
        numbers.setdefault(pieces.id_to_piece(index), len(numbers))
    (copied / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
    _weights(copied, lambda one: one.update(_random_tensors(len(numbers))))
    if said is not None:
        with pytest.raises(TmtError, match=said):
            tmt.convert(copied, tmp_path / "made")
        return
    tmt.convert(copied, tmp_path / "made")
    found = load_model_directory(tmp_path / "made").source
    for line, _ in PAIRS[:50]:
        tokens = [one if one in found.vocabulary.tokens else "<unk>" for one in found.segmenter.tokenize(line)]
        assert tokens == [one if one in numbers else "<unk>" for one in pieces.encode(line, out_type=str)]


def test_marks_may_have_any_number(original: Path, copied: Path, tmp_path: Path) -> None:
    """As in OPUS-MT's larger models."""
    numbers = json.loads((copied / "vocab.json").read_text(encoding="utf-8"))
    size = len(numbers)
    new = {piece: (number * 7 + 5) % size for piece, number in numbers.items()}
    assert len(set(new.values())) == size, "a permutation"
    assert new["<unk>"] != 1
    (copied / "vocab.json").write_text(json.dumps(new), encoding="utf-8")
    ends = {"pad_token_id": new["<pad>"], "decoder_start_token_id": new["<pad>"], "eos_token_id": new["</s>"]}
    _json(copied / "config.json", **ends)
    rows = torch.tensor([new[piece] for piece in numbers])

    def permute(tensors: dict[str, Tensor]) -> None:
        for name, dimension in (("model.shared.weight", 0), ("final_logits_bias", 1)):
            tensors[name] = torch.empty_like(tensors[name]).index_copy(dimension, rows, tensors[name])

    _weights(copied, permute)
    tmt.convert(copied, tmp_path / "made")
    tmt.convert(original, tmp_path / "plain")
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("made", "plain"))
    assert all(torch.equal(one[name], other[name]) for name in other)


def test_the_beam_may_be_in_the_settings_of_generation_and_embeddings_under_another_name(
    copied: Path, tmp_path: Path
) -> None:
    """As newer versions write them."""
    (copied / "generation_config.json").write_text(json.dumps({"num_beams": 8, "max_length": 512}))
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({key: one for key, one in config.items() if key != "num_beams"}))
    _weights(copied, lambda one: one.update({"lm_head.weight": one.pop("model.shared.weight")}))
    tmt.convert(copied, tmp_path / "made")
    assert tmt.load_config(tmp_path / "made" / "config.yaml").decoding.beam == 8


def test_hugging_faces_own_program_translates_alike(original: Path, converted: Path, tmp_path: Path) -> None:
    """Without the pieces that only the source has: a model with random weights would write them."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path / "theirs"
    folder.mkdir()
    for file in original.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    numbers = json.loads((original / "vocab.json").read_text(encoding="utf-8"))
    written = {numbers.get(one, 0) for one in load_model_directory(converted).target.vocabulary.tokens}
    never = [number for number in range(1, len(numbers)) if number not in written]
    _weights(folder, lambda tensors: tensors["final_logits_bias"][:, [1, *never]].fill_(0))
    model = transformers.MarianMTModel.from_pretrained(folder).eval()
    with torch.no_grad():
        model.final_logits_bias[:, [1, *never]] = -100.0
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    ours = tmt.load(converted, beam=1, max_length_ratio=0.0, max_length_offset=20)
    for line in LINES:
        ids = tokenizer(unicodedata.normalize("NFKC", line), return_tensors="pt")["input_ids"]
        found = model.generate(ids, num_beams=1, do_sample=False, max_new_tokens=20, forced_eos_token_id=None)
        words = tokenizer.convert_ids_to_tokens(found[0][1:])
        got = ours.translate(line).tokens
        assert list(got)[:15] == [one for one in words if one != "</s>"][:15], line
