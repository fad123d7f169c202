"""The Python API, as a notebook uses it: each command is a function with a typed report."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import transformer_mt as tmt
from tests.forks import PYTHON
from transformer_mt.config.choices import CHOICES

pytestmark = pytest.mark.slow

QUICK = {"batch_tokens": 512, "max_epochs": 6, "learning_rate": 0.01, "keep_last": 2}


@pytest.fixture(scope="module")
def config(numbers: Any, tmp_path_factory: pytest.TempPathFactory) -> tmt.Config:
    return tmt.load_config(numbers.file(tmp_path_factory.mktemp("api"), **QUICK))


@pytest.fixture(scope="module")
def trained(config: tmt.Config, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmt.train(config, tmp_path_factory.mktemp("runs") / "numbers")


def test_prepare_returns_a_report(config: tmt.Config) -> None:
    report = tmt.prepare(config).report
    assert [report.splits[split].pairs for split in ("train", "validation", "test")] == [400, 40, 20]
    assert report.languages == {"source": "en", "target": "de"}


def test_train_returns_a_report_and_continues(config: tmt.Config, trained: Any, numbers: Any) -> None:
    assert trained.stopped == "max_epochs 6 reached"
    assert trained.model == trained.run / "model"
    assert trained.scores["test"].scores["bleu"].value > 0
    longer = numbers.file(trained.run.parent, **QUICK)
    further = tmt.train(longer, trained.run, overrides=["training.max_epochs=8"])
    assert further.steps == trained.steps // 6 * 8
    assert further.seconds > trained.seconds


def test_a_translator_translates(trained: Any) -> None:
    translator = tmt.Translator.load(trained.run)
    (answer, empty) = translator.translate(["one two three", ""])
    assert set(answer.text.split()) <= {"eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben"}
    assert empty.text == ""


def test_load_takes_settings_of_the_search(trained: Any) -> None:
    translator = tmt.load(trained.run, beam=3, n_best=2, length_penalty=0.0, device="cpu", threads=1, no_repeat_ngram=3)
    decoding = translator.decoding
    assert (decoding.beam, decoding.n_best, decoding.length_penalty, decoding.no_repeat_ngram) == (3, 2, 0.0, 3)
    assert len(translator.translate("one two").n_best) == 2
    assert repr(translator) == f"Translator(en-de, {trained.model})"


def test_results_are_shown_in_short(config: tmt.Config, trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell that ends with one prints it."""
    monkeypatch.chdir(trained.run.parent)
    report = tmt.evaluate(trained.model)
    assert report.hypotheses[3] not in repr(report)
    assert str(report.scores["bleu"]) == str(report).splitlines()[0]
    assert len(repr(trained)) < 1_200
    assert repr(tmt.prepare(config)).endswith("pairs: train 400, validation 40, test 20)")
    compared = tmt.compare_runs([trained.run])
    assert repr(compared) == "\n".join(compared.lines)
    assert compared._repr_markdown_().startswith("| run")
    maps = tmt.load(trained.run).attention("one two three")
    assert repr(maps).startswith("AttentionMaps(encoder.layers.0.self_attention [2, 4, 4], ")


def test_pictures_are_files(trained: Any, tmp_path: Path) -> None:
    drawn = tmt.draw_attention(tmt.load(trained.run), "one two three", str(tmp_path / "map.svg"), which="cross")
    assert drawn == tmp_path / "map.svg"
    assert b"<svg" in drawn.read_bytes()[:500]
    (curves,) = tmt.plot(str(trained.run), output=str(tmp_path / "curves.png"))
    assert curves.read_bytes()[:4] == b"\x89PNG"


def test_mistakes_in_pictures_are_errors_for_python(trained: Any, tmp_path: Path) -> None:
    with pytest.raises(tmt.TmtError, match=r"^translator: a value of type PosixPath was given") as caught:
        tmt.draw_attention(trained.run, "one", tmp_path / "map.png")  # type: ignore[arg-type]
    assert "tmt.load(" in caught.value.remedy
    for draw in (
        lambda: tmt.draw_attention(tmt.load(trained.run), "one", tmp_path / "map.png", theme="pink"),  # type: ignore[arg-type]
        lambda: tmt.plot(trained.run, output=tmp_path / "curves.png", theme="pink"),  # type: ignore[arg-type]
    ):
        with pytest.raises(tmt.TmtError, match=r"no theme 'pink'\n  There are: light, dark"):
            draw()


def test_training_leaves_the_process_as_it_was(numbers: Any, tmp_path: Path) -> None:
    tiny, threads, state = torch.full((1,), 1e-42), torch.get_num_threads(), torch.get_rng_state()
    tmt.train(numbers.values(**QUICK), tmp_path / "run", overrides={"training.max_epochs": 1, "runtime.threads": 2})
    assert tiny.mul(1).item() > 0, "it is not flushed to zero"
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_a_notebook_shows_an_error_without_its_traceback() -> None:
    """IPython calls this method if an exception has it."""
    with pytest.raises(tmt.TmtError) as caught:
        tmt.load("nowhere")
    assert caught.value._render_traceback_() == [f"TmtError: {caught.value}"]


def test_evaluate_takes_a_path_or_files(trained: Any, tmp_path: Path) -> None:
    one, same = tmt.evaluate(trained.model), tmt.evaluate([str(trained.model)], search={"beam": 1})
    assert one.scores["bleu"].value == same.scores["bleu"].value
    assert (one.name, one.sentences) == ("test", 20)
    (tmp_path / "said").write_text("eins zwei drei vier\n", encoding="utf-8")
    perfect = tmt.evaluate(files=tmt.TestFiles(hypothesis=tmp_path / "said", reference=tmp_path / "said"))
    assert perfect.scores["bleu"].value == pytest.approx(100)


def test_average_replaces_the_model(trained: Any) -> None:
    report = tmt.average(trained.run, last=2, force=True)
    assert len(report.steps) == 2
    assert report.model == trained.model


def test_export_writes_a_folder_with_equal_translations(trained: Any, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    report = tmt.export(tmp_path / "served", trained.model, sample=20)
    assert report.sentences == 20
    assert {search.equal for search in report.searches} == {1.0}


def test_an_error_has_place_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(tmt.TmtError) as caught:
        tmt.evaluate(tmp_path / "nothing")
    assert str(tmp_path / "nothing") in str(caught.value)
    assert caught.value.remedy


NOTEBOOK = """
import contextlib, io, sys, types
sys.modules["ipykernel"] = types.ModuleType("ipykernel")
class Cell(io.TextIOBase):  # what a kernel puts in the place of stderr
    def write(self, text):
        return sys.__stderr__.write(text)
sys.stderr = Cell()
import transformer_mt as tmt
with contextlib.nullcontext():
  tmt.train(sys.argv[1], sys.argv[2], overrides=["training.max_epochs=1"])
"""


@pytest.mark.parametrize("watched", [True, False])
def test_a_notebook_shows_progress_bars_and_a_pipe_does_not(numbers: Any, tmp_path: Path, watched: bool) -> None:
    program = NOTEBOOK if watched else NOTEBOOK.replace('sys.modules["ipykernel"] =', "_ =")
    file = numbers.file(tmp_path, **QUICK)
    command = [*PYTHON, "-c", program, str(file), str(tmp_path / "run")]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stderr
    assert ("epoch 1" in output and "%|" in output) == watched
    assert output.count("test  BLEU|") == 1, "the score, which the command prints on stdout"


def test_a_notebook_can_train_in_silence(numbers: Any, tmp_path: Path) -> None:
    program = NOTEBOOK.replace("contextlib.nullcontext()", "contextlib.redirect_stderr(io.StringIO())")
    command = [*PYTHON, "-c", program, str(numbers.file(tmp_path, **QUICK)), str(tmp_path / "run")]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stderr == ""


SCRIPT = """
import sys
import transformer_mt as tmt
print("pairs", tmt.prepare(sys.argv[1]).report.splits["train"].pairs)
"""


def test_a_plain_script_prepares_with_several_workers(tmp_path: Path) -> None:
    """The script has no `if __name__ == "__main__"`, and workers must not run it again."""
    rows = [f"one {n} two\teins {n} zwei" for n in range(5_000)]
    (tmp_path / "pairs.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    config = {
        "name": "script",
        "data": {"source": "en", "target": "de", "corpus": {"kind": "tsv", "files": "pairs.tsv"}, "workers": 2},
        "tokenizer": {"kind": "whitespace"},
        "training": {"max_epochs": 1},
    }
    (tmp_path / "c.yaml").write_text(json.dumps(config), encoding="utf-8")
    command = [sys.executable, "script.py", "c.yaml"]
    output = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60).stdout
    assert output == "pairs 4000\n"


def test_the_random_numbers_and_threads_of_the_caller_are_left_alone(
    trained: Any, config: tmt.Config, tmp_path: Path
) -> None:
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    states = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    tmt.load(trained.model)
    threads = torch.get_num_threads()
    tmt.train(config, tmp_path / "run", overrides=["training.max_epochs=1", f"runtime.threads={threads + 1}"])
    assert torch.get_num_threads() == threads
    assert states == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model, folder: tmt.evaluate(model, metrics="blue"), "unknown metric 'blue'"),
        (lambda model, folder: tmt.evaluate(model, metrics=[["bleu"]]), r"unknown metric '\['bleu'\]'"),
        (
            lambda model, folder: tmt.evaluate(model, search={"method": "bogus"}),
            f"method is \"bogus\", but must be one of '{next(iter(CHOICES['search']))}'",
        ),
        (lambda model, folder: tmt.evaluate(model, search={"beams": 3}), "unknown setting 'beams'"),
        (lambda model, folder: tmt.evaluate(model, search={"beam": "x"}), '--beam is "x", but must be a whole number'),
        (lambda model, folder: tmt.evaluate(model, baseline=str(folder / "nothing")), "no such file"),
        (lambda model, folder: tmt.average(model.parent, 0), "last must be a whole number of 1 or more, not 0"),
        (
            lambda model, folder: tmt.export(folder / "out", model, sample=0),
            "sample must be a whole number of 1 or more, not 0",
        ),
        (lambda model, folder: tmt.Computing(threads=0), "threads must be a whole number of 1 or more, not 0"),
        (lambda model, folder: tmt.Translator.load([]), "no model is named"),
        (lambda model, folder: tmt.load(folder / "nothing"), "no such model folder"),
        (lambda model, folder: tmt.load(model, beams=3), "unknown setting 'beams'"),
        (lambda model, folder: tmt.load(model, beam=0), "^beam is 0, but must be"),
        (lambda model, folder: tmt.load(model, engine="marian"), "unknown engine 'marian'"),
        (lambda model, folder: tmt.load(model, device="tpu"), "unknown device 'tpu'"),
        (lambda model, folder: tmt.Translator.load(model, computing=tmt.Computing("tpu")), "unknown device 'tpu'"),
    ],
)
def test_wrong_arguments_are_reported(trained: Any, tmp_path: Path, call: Any, message: str) -> None:
    with pytest.raises(tmt.TmtError, match=message):
        call(trained.model, tmp_path)


def test_text_and_paths_are_accepted_alone_and_in_lists(trained: Any, config: tmt.Config, tmp_path: Path) -> None:
    translator = tmt.Translator.load(str(trained.run))
    ways = [translator, tmt.load(str(trained.run)), tmt.load([trained.model])]
    answers = [*(one.translate("one two") for one in ways), *translator.translate(["one two"])]
    assert len({(one.text, one.tokens) for one in answers}) == 1
    assert [one.score for one in answers] == pytest.approx([answers[0].score] * 4, rel=1e-4)
    (tmp_path / "one").write_text("one two\n", encoding="utf-8")
    report = tmt.evaluate(
        trained.model, files=tmt.TestFiles(source=tmp_path / "one", reference=str(tmp_path / "one")), metrics="chrf"
    )
    assert list(report.scores) == ["chrf"]
    names = map(str, ("bleu", "chrf"))
    of_many = tmt.evaluate(trained.model, files=tmt.TestFiles(tmp_path / "one", tmp_path / "one"), metrics=names)
    assert list(of_many.scores) == ["bleu", "chrf"]
    assert tmt.load(trained.model, beam=np.int64(2)).decoding.beam == 2
    with pytest.raises(tmt.TmtError, match=r"unknown key 'training.max_epoch'"):
        tmt.train(config, tmp_path / "run", overrides="training.max_epoch=3")
