"""An exported model translates like `tmt`: with every option of the model, and every option of the search."""

from __future__ import annotations

import importlib.util
import inspect
import os
import random
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from transformer_mt.config.runs import WEIGHTS
from transformer_mt.decoding.interpreter import Computing, Translation
from transformer_mt.decoding.model_directory import ModelDirectory
from transformer_mt.decoding.searches.mbr import consensus
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import TmtError
from transformer_mt.exporting.ctranslate2 import QUANTIZATIONS, load_engine, write_export
from transformer_mt.exporting.origin import is_exported
from transformer_mt.runtime.weights import facts_of_weights

pytestmark = pytest.mark.slow

pytest.importorskip("ctranslate2")

draw = random.Random(5)
ONE = Computing(device="cpu", threads=1)
LINES = ["".join(draw.choices(string.ascii_lowercase + "  é", k=draw.randint(1, 23))) for _ in range(40)]
MODELS: list[dict[str, Any]] = [
    {},
    {"norm": "post"},
    {"norm": "post", "final_norm": True},
    {"norm": "pre", "final_norm": False},
    {"normalization": "rms"},
    {"normalization": "rms", "layer_norm_epsilon": 0.1, "norm": "post"},
    {"layer_norm_epsilon": 0.1},
    {"positions": "learned"},
    {"positions": "learned", "max_positions": 40},
    {"positions": "rotary"},
    {"scale_embeddings": False},
    {"tie_embeddings": "decoder"},
    {"tie_embeddings": "all", "output_bias": False},
    {"activation": "gelu"},
    {"activation": "swiglu", "bias": False},
    {"activation": "silu", "norm": "post"},
    {"encoder_layers": 1, "decoder_layers": 3, "n_heads": 4, "d_ff": 24},
]


def search(directory: ModelDirectory, **options: Any) -> tuple[list[Translation], list[Translation]]:
    """All lines with our search and with CTranslate2's, under the same options."""
    decoding = directory.config.decoding.model_copy(update=options)
    ours = Translator([directory], decoding).translate(LINES)
    return list(ours), list(load_engine(directory.folder, decoding, ONE).translate(LINES))


def assert_equal(ours: list[Translation], theirs: list[Translation], all_of_n_best: bool = False) -> None:
    """The same tokens, scores within rounding, the same source tokens and notes."""
    assert len(ours) == len(theirs) == len(LINES)
    for one, other in zip(ours, theirs, strict=True):
        last = None if all_of_n_best else 1
        assert [best.tokens for best in one.n_best[:last]] == [best.tokens for best in other.n_best[:last]]
        assert [best.text for best in one.n_best[:last]] == [best.text for best in other.n_best[:last]]
        scores = [best.score for best in other.n_best[:last]]
        assert [best.score for best in one.n_best[:last]] == pytest.approx(scores, abs=2e-3)
        assert (one.source_tokens, one.notes) == (other.source_tokens, other.notes)


@pytest.mark.parametrize("options", MODELS, ids=lambda options: ",".join(f"{k}={v}" for k, v in options.items()))
def test_every_option_of_the_model_translates_alike(
    make_model: Callable[..., ModelDirectory], options: dict[str, Any]
) -> None:
    if options.get("positions") == "rotary":
        pytest.importorskip("ctranslate2", minversion="4.7")
    directory = make_model(**options)
    ours, theirs = search(directory, beam=1)
    assert len({translation.text for translation in ours}) > len(LINES) / 2, "equal translations would prove little"
    assert_equal(ours, theirs)


@pytest.mark.parametrize(
    "options", [{"beam": 3}, {"beam": 5}, {"beam": 5, "length_penalty": 0.0}, {"beam": 4, "length_penalty": 1.0}]
)
def test_beam_search_keeps_drops_and_ranks_alike(model: ModelDirectory, options: dict[str, Any]) -> None:
    assert_equal(*search(model, **options))


def test_the_n_best_are_the_same(model: ModelDirectory) -> None:
    ours, theirs = search(model, beam=4, n_best=3)
    assert_equal(ours, theirs, all_of_n_best=True)
    assert {len(translation.n_best) for translation in theirs} == {3}


@pytest.mark.parametrize("beam", [1, 3])
def test_each_sentence_keeps_its_own_longest_length(model: ModelDirectory, beam: int) -> None:
    ours, theirs = search(model, beam=beam, max_length_ratio=0.5, max_length_offset=1)
    assert_equal(ours, theirs)
    stopped = [translation for translation in theirs if any("stopped" in note for note in translation.notes)]
    assert len({len(translation.tokens) for translation in stopped}) > 3, "sentences of one batch, each with its limit"


@pytest.mark.parametrize("beam", [1, 3])
def test_marks_are_never_written(make_model: Callable[..., ModelDirectory], beam: int) -> None:
    """A badly trained model may rank <pad> and <s> first; both searches forbid them."""
    directory = make_model()
    with torch.no_grad():
        directory.model.generator.bias[[0, 2]] += 11.0
    folder = directory.folder.parent / "biased"
    write_export(directory, folder)
    decoding = directory.config.decoding.model_copy(update={"beam": beam})
    theirs = list(load_engine(folder, decoding, ONE).translate(LINES))
    assert not {"<pad>", "<s>"} & {token for translation in theirs for token in translation.tokens}
    if beam == 1:
        ours = Translator([directory], decoding).translate(LINES)
        assert [one.tokens for one in ours] == [other.tokens for other in theirs]


@pytest.mark.parametrize("options", [{"no_repeat_ngram": 2}, {"min_length_ratio": 0.9}])
def test_forbidden_tokens_are_forbidden_and_scores_stay_the_models(
    model: ModelDirectory, options: dict[str, Any]
) -> None:
    assert_equal(*search(model, beam=1, **options))


@pytest.mark.parametrize("options", [{}, {"no_repeat_ngram": 2}, {"max_length_ratio": 0.5, "max_length_offset": 1}])
def test_greedy_search_without_scores_finds_the_same(model: ModelDirectory, options: dict[str, Any]) -> None:
    decoding = model.config.decoding.model_copy(update={"beam": 1, **options})
    engines = [
        load_engine(model.folder, decoding, Computing(device="cpu", threads=1, scored=scored))
        for scored in (True, False)
    ]
    prefixes = [["", "ab"][index % 2] for index in range(len(LINES))]
    scored, bare = (list(engine.translate(LINES, prefixes)) for engine in engines)
    assert [one.tokens for one in bare] == [other.tokens for other in scored]
    assert {one.score for one in bare} == {0.0}
    assert len({other.score for other in scored}) > 5


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system binds no process to cores")
def test_threads_equal_the_cores_that_may_be_used(model: ModelDirectory) -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        decoding = model.config.decoding.model_copy(update={"beam": 2})
        assert load_engine(model.folder, decoding).engine.num_translators == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_prefixes_are_kept_and_scored(model: ModelDirectory) -> None:
    decoding = model.config.decoding.model_copy(update={"beam": 1})
    prefixes = [["", "ab", "b c"][index % 3] for index in range(len(LINES))]
    ours = list(Translator([model], decoding).translate(LINES, prefixes))
    theirs = list(load_engine(model.folder, decoding, ONE).translate(LINES, prefixes))
    assert_equal(ours, theirs)
    pairs = zip(theirs, LINES, prefixes, strict=True)
    assert all(translation.text.startswith(prefix) for translation, line, prefix in pairs if line.strip())


def test_alignments_and_replaced_words_are_the_same(model: ModelDirectory) -> None:
    decoding = model.config.decoding.model_copy(update={"beam": 2, "replace_unknown": True})
    ours = list(Translator([model], decoding).translate(LINES, align=True))
    theirs = list(load_engine(model.folder, decoding, ONE).translate(LINES, align=True))
    assert_equal(ours, theirs)
    assert [one.n_best[0].alignment for one in ours] == [other.n_best[0].alignment for other in theirs]


def test_scores_of_given_translations_are_the_same(model: ModelDirectory) -> None:
    targets = LINES[::-1]
    ours = list(Translator([model]).score(["", *LINES], ["", *targets], align=True, gain=True))
    engine = load_engine(model.folder, computing=ONE)
    theirs = list(engine.score(["", *LINES], ["", *targets], align=True, gain=True))
    for one, other in zip(ours, theirs, strict=True):
        assert other.token_scores == pytest.approx(one.token_scores, abs=1e-4)
        assert other.prior == pytest.approx(one.prior, abs=1e-3)
        assert (other.tokens, other.word_alignment, other.notes) == (one.tokens, one.word_alignment, one.notes)
    assert engine.translate(LINES[0]).text == next(engine.translate(LINES[:1])).text


def test_samples_repeat_with_their_seed_and_carry_the_models_scores(model: ModelDirectory) -> None:
    decoding = model.config.decoding.model_copy(update={"method": "sample", "beam": 1, "n_best": 2})

    def drawn(seed: int) -> list[tuple[str, float]]:
        engine = load_engine(model.folder, decoding, Computing(device="cpu", threads=1, seed=seed))
        return [(best.text, best.score) for translation in engine.translate(LINES) for best in translation.n_best]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    certain = decoding.model_copy(update={"top_k": 1, "n_best": 1})
    greedy = decoding.model_copy(update={"method": "beam", "n_best": 1})
    ours = list(Translator([model], greedy).translate(LINES))
    assert_equal(ours, list(load_engine(model.folder, certain, ONE).translate(LINES)))


def test_minimum_bayes_risk_chooses_among_samples(model: ModelDirectory) -> None:
    decoding = model.config.decoding.model_copy(update={"method": "mbr", "samples": 6, "n_best": 1})
    translations = list(load_engine(model.folder, decoding, ONE).translate(LINES[:5]))
    assert [len(translation.n_best) for translation in translations] == [1] * 5


def test_minimum_bayes_risk_chooses_among_the_results_of_its_beam_search(model: ModelDirectory) -> None:
    wide = model.config.decoding.model_copy(update={"beam": 4, "n_best": 4})
    listed = load_engine(model.folder, wide, ONE).translate(LINES)
    decoding = wide.model_copy(update={"method": "mbr", "candidates": "beam", "n_best": 1})
    for one, other in zip(load_engine(model.folder, decoding, ONE).translate(LINES), listed, strict=True):
        texts, scores = zip(*((best.text, best.score) for best in other.n_best), strict=True)
        assert one.text == consensus(texts, "chrf", scores)[0][0]


def test_lines_of_any_kind_are_answered_in_order(model: ModelDirectory) -> None:
    lines = ["ab", "", "\t ", "</s> <pad>", "x" * 90, "한글", "ab"]
    engine = load_engine(model.folder, computing=Computing(device="cpu", threads=2))
    answers = list(engine.translate(lines, chunk_size=3))
    assert [bool(answer.source_tokens) for answer in answers] == [True, False, False, True, True, True, True]
    assert answers[0].text == answers[-1].text
    assert answers[4].notes[0] == "cut to 23 of 90 tokens (the model's longest sentence)"


def test_a_coverage_penalty_is_refused_by_name(model: ModelDirectory) -> None:
    decoding = model.config.decoding.model_copy(update={"coverage_penalty": 0.2})
    with pytest.raises(TmtError, match="coverage_penalty") as refused:
        load_engine(model.folder, decoding)
    assert refused.value.place == str(model.folder / "config.yaml")


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"beam": 3, "min_length_ratio": 0.5}, "min_length_ratio"), ({"method": "mbr", "top_k": 1}, "top_k")],
)
def test_unsupported_settings_are_refused_by_name(model: ModelDirectory, changes: dict, named: str) -> None:
    with pytest.raises(TmtError, match=named):
        load_engine(model.folder, model.config.decoding.model_copy(update=changes))
    engine = load_engine(model.folder, model.config.decoding.model_copy(update={"beam": 1, "n_best": 1}))
    with pytest.raises(TmtError, match=named):
        engine.with_search(model.config.decoding.model_copy(update=changes))


def test_more_candidates_than_words_are_all_of_them_and_seeds_may_be_large(model: ModelDirectory) -> None:
    decoding = model.config.decoding.model_copy(update={"method": "sample", "n_best": 1, "top_k": 5000})
    engine = load_engine(model.folder, decoding, Computing(device="cpu", threads=1, seed=2**40))
    assert len(list(engine.translate(LINES[:5]))) == 5


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_every_quantization_loads_and_translates(model: ModelDirectory, tmp_path: Path, quantization: str) -> None:
    before = {name: parameter.detach().clone() for name, parameter in model.model.named_parameters()}
    write_export(model, tmp_path / "out", quantization)
    assert all(torch.equal(before[name], parameter) for name, parameter in model.model.named_parameters())
    translations = list(load_engine(tmp_path / "out", computing=ONE).translate(LINES))
    assert len(translations) == len(LINES)
    if quantization == "int8":
        write_export(model, tmp_path / "float32")
        sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("out", "float32")]
        assert sizes[0] < sizes[1]


def test_the_folder_needs_nothing_else(model: ModelDirectory, tmp_path: Path) -> None:
    import ctranslate2

    write_export(model, tmp_path / "out")
    assert is_exported(tmp_path / "out")
    assert not is_exported(model.folder)
    assert {"config.yaml", "source", "config.json"} <= {file.name for file in (tmp_path / "out").iterdir()}
    alone = ctranslate2.Translator(str(tmp_path / "out"), inter_threads=1, intra_threads=1)
    first = list(load_engine(tmp_path / "out", model.config.decoding.model_copy(update={"beam": 1})).translate(["abc"]))
    (result,) = alone.translate_batch([[*first[0].source_tokens, "</s>"]], beam_size=1, max_decoding_length=8)
    assert result.hypotheses[0] == list(first[0].tokens)


def test_what_ctranslate2_lacks_is_refused_by_name_and_nothing_is_written(
    make_model: Callable[..., ModelDirectory], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformer_mt.exporting import specification

    monkeypatch.delitem(specification._ACTIVATIONS, "silu")  # as one that is new here
    with pytest.raises(TmtError, match=r"not support model\.activation: silu; model\.epsilon_on: deviation"):
        write_export(make_model(epsilon_on="deviation", activation="silu"), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_only_an_earlier_export_is_replaced(model: ModelDirectory, tmp_path: Path) -> None:
    folder, file = tmp_path / "notes", tmp_path / "file"
    folder.mkdir()
    (folder / "keep.txt").write_text("mine")
    file.write_text("mine too")
    for place in (folder, file, model.folder):
        with pytest.raises(TmtError, match="this"):
            write_export(model, place)
    assert (folder / "keep.txt").read_text() == "mine"
    write_export(model, tmp_path / "out", "int8")
    write_export(model, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "notes", "out"]


def test_rotary_positions_are_refused_by_name_if_ctranslate2_is_too_old(
    make_model: Callable[..., ModelDirectory], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = inspect.signature(lambda self, num_layers, num_heads: None)
    monkeypatch.setattr("transformer_mt.exporting.specification.signature", lambda function: old)
    with pytest.raises(TmtError, match=r"model\.positions: rotary"):
        write_export(make_model(positions="rotary"), tmp_path / "out")
    assert not any(tmp_path.iterdir())


def test_a_damaged_folder_and_an_unsupported_device_are_refused(model: ModelDirectory, tmp_path: Path) -> None:
    write_export(model, tmp_path / "out")
    with pytest.raises(TmtError, match="'mps'"):
        load_engine(tmp_path / "out", computing=Computing(device="mps"))
    with pytest.raises(TmtError, match="'cuda:one'"):
        load_engine(tmp_path / "out", computing=Computing(device="cuda:one"))
    weights = tmp_path / "out" / "model.bin"
    weights.write_bytes(weights.read_bytes()[:500])
    (tmp_path / "out" / "export.json").unlink()  # an older version wrote none
    with pytest.raises(TmtError, match="cannot load"):
        load_engine(tmp_path / "out")


def test_the_number_of_pytorchs_threads_stays(model: ModelDirectory) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        load_engine(model.folder, computing=ONE)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("device", "expected"), [("cuda", ("cuda", 0)), ("cuda:1", ("cuda", 1)), ("cpu", ("cpu", 0))])
def test_a_gpu_may_have_a_number(
    model: ModelDirectory, monkeypatch: pytest.MonkeyPatch, device: str, expected: tuple[str, int]
) -> None:
    used: list[tuple[str, int]] = []
    monkeypatch.setattr(
        "ctranslate2.Translator", lambda _, device, device_index, **others: used.append((device, device_index))
    )
    load_engine(model.folder, computing=Computing(device=device))
    assert used == [expected]


def test_another_vocabulary_is_refused(model: ModelDirectory, tmp_path: Path) -> None:
    write_export(model, tmp_path / "out")
    for file in (tmp_path / "out").glob("*_vocabulary.json"):
        file.write_text("[]")
    (tmp_path / "out" / "export.json").unlink()
    with pytest.raises(TmtError, match="does not match the tokenizer in this folder"):
        load_engine(tmp_path / "out")


def test_a_damaged_file_one_of_another_export_and_a_missing_one_are_refused(
    make_model: Callable[..., ModelDirectory], tmp_path: Path
) -> None:
    write_export(make_model(), tmp_path / "out")
    write_export(make_model(encoder_layers=1), tmp_path / "other")
    before = {file: file.read_bytes() for file in (tmp_path / "out").rglob("*") if file.is_file()}
    weights, codec = tmp_path / "out" / "model.bin", tmp_path / "out" / "source" / "vocabulary.txt"
    for file, content in (
        (weights, (tmp_path / "other" / "model.bin").read_bytes()),
        (weights, before[weights][:-9] + bytes([before[weights][-9] ^ 1]) + before[weights][-8:]),
        (codec, before[codec] + b"x\n"),
    ):
        file.write_bytes(content)
        with pytest.raises(TmtError, match="its checksum differs") as refused:
            load_engine(tmp_path / "out", computing=ONE)
        assert refused.value.place == str(file)
        file.write_bytes(before[file])
    (tmp_path / "out" / "config.yaml").write_bytes(before[tmp_path / "out" / "config.yaml"] + b"# mine\n")
    load_engine(tmp_path / "out", computing=ONE)
    codec.unlink()
    with pytest.raises(TmtError, match=r"missing files of this export: source/vocabulary\.txt"):
        load_engine(tmp_path / "out", computing=ONE)
    codec.write_bytes(before[codec])
    (tmp_path / "out" / "._shared_vocabulary.json").write_text("{}")  # macOS writes such files
    load_engine(tmp_path / "out", computing=ONE)
    left = tmp_path / "out" / "source" / "truecase.txt"  # of another export that was here
    left.write_text("a\n", encoding="utf-8")
    with pytest.raises(TmtError, match=r"files of another export: source/truecase\.txt"):
        load_engine(tmp_path / "out", computing=ONE)
    left.unlink()
    (tmp_path / "out" / "export.json").unlink()
    (tmp_path / "out" / "export.json").symlink_to("nowhere")
    with pytest.raises(TmtError, match="cannot be read"):
        load_engine(tmp_path / "out", computing=ONE)
    (tmp_path / "out" / "export.json").unlink()
    (tmp_path / "out" / "export.json").write_text('{"version": 1}')
    with pytest.raises(TmtError, match="cannot be read"):
        load_engine(tmp_path / "out", computing=ONE)


def test_an_export_names_its_model_and_equal_exports_are_equal(model: ModelDirectory, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_export(model, tmp_path / name, "int8")
    one, two = (
        {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*.*") if file.is_file()}
        for folder in (tmp_path / "one", tmp_path / "two")
    )
    assert one == two
    engine = load_engine(tmp_path / "one", computing=ONE)
    assert (engine.fingerprint, engine.quantization) == (Translator([model]).fingerprint, "int8")
    (line,) = (line for line in facts_of_weights(model.folder / WEIGHTS)["sha256"].splitlines() if "tensors" in line)
    assert engine.fingerprint == line.split()[0]


def test_a_readme_and_a_licence_stay_when_an_export_is_replaced(model: ModelDirectory, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "LICENSE").write_text("free")
    write_export(model, out)
    (out / "README.md").write_text("mine")
    write_export(model, out, "int8")
    assert [(out / name).read_text() for name in ("LICENSE", "README.md")] == ["free", "mine"]
    assert list(load_engine(out, computing=ONE).translate(LINES[:2]))
    (out / "README").mkdir()
    with pytest.raises(TmtError, match="other files"):
        write_export(model, out)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_sentences_are_cut_to_the_positions_there_are(make_model: Callable[..., Any], positions: str) -> None:
    directory = make_model(positions=positions)
    folder = directory.folder.parent / "out"
    write_export(directory, folder)
    most = directory.config.data.max_length
    text = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(text.replace(f"max_length: {most}", "max_length: 4000", 1))
    (translation,) = load_engine(folder).translate(["a" * 4_500])
    assert most - 1 <= len(translation.source_tokens) < 4_000
    assert any(note.startswith("cut to ") for note in translation.notes)


def test_few_batches_are_queued_so_that_an_interruption_takes_effect_soon(
    model: ModelDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = load_engine(model.folder, model.config.decoding.model_copy(update={"batch_tokens": 60}), ONE)
    plain, queued, most = engine.engine, set[int](), []

    class Answer:
        def __init__(self, inner: Any, batch: int) -> None:
            self.inner, self.batch = inner, batch

        def result(self) -> Any:
            queued.discard(self.batch)
            return self.inner.result()

    class Watched:
        num_translators, score_batch = plain.num_translators, plain.score_batch

        def translate_batch(self, *arguments: Any, **options: Any) -> list[Answer]:
            queued.add(len(most))
            answers = [Answer(inner, len(most)) for inner in plain.translate_batch(*arguments, **options)]
            most.append(len(queued))
            return answers

    monkeypatch.setattr(engine, "engine", Watched())
    assert len(list(engine.translate(LINES))) == len(LINES)
    assert len(most) > 8
    assert max(most) == 3, "two more than the batch that is waited for"


def test_without_ctranslate2_the_message_says_how_to_install_it(
    model: ModelDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for attempt in (lambda: write_export(model, tmp_path / "out"), lambda: load_engine(model.folder)):
        with pytest.raises(TmtError) as raised:
            attempt()
        assert raised.value.remedy == "pip install ctranslate2"
