"""`tmt export`, and `tmt translate` with what it wrote."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from transformer_mt.cli import main
from transformer_mt.decoding.interpreter import Interpreter
from transformer_mt.decoding.model_directory import ModelDirectory, save_model_directory
from transformer_mt.evaluation.scores import score
from transformer_mt.exporting.agreement import Agreement, Scores
from transformer_mt.runtime.weights import named_weights

pytestmark = pytest.mark.slow

pytest.importorskip("ctranslate2")

SENTENCES = ["abc def", "xyz", "a longer sentence", "q"]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tmt(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> Run:
    """Run `tmt` in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tmt", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main.run()
        sys.stdout.flush()
        out, error = capfdbinary.readouterr()
        return int(left.value.code or 0), out.decode(), error.decode()

    return run


@pytest.fixture
def altered(model: ModelDirectory, tmp_path: Path) -> Callable[..., Path]:
    """A model folder with the weights of `model`, and other options of the search, or another name."""

    def save(name: str = model.config.name, **decoding: object) -> Path:
        update = {"name": name, "decoding": model.config.decoding.model_copy(update=decoding)}
        folder = tmp_path / "altered"
        config = model.config.model_copy(update=update)
        save_model_directory(folder, config, named_weights(model.model), (model.source, model.target))
        return folder

    return save


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "in.txt"
    file.write_text("".join(f"{line}\n" for line in SENTENCES))
    return file


def test_an_export_is_compared_and_translates(tmt: Run, model: ModelDirectory, source: Path) -> None:
    code, out, _ = tmt("export", "--model", model.folder, "--output", "out", "--input", source, "--reference", source)
    assert code == 0
    head, titles, *rows = out.splitlines()
    assert head.startswith("out: CTranslate2, float32")
    assert "BLEU tmt" in titles
    assert [row.split()[:3] for row in rows] == [["greedy", "100.0%", rows[0].split()[2]], ["beam", "3", "100.0%"]]
    assert [row.split("%")[1].split()[2] for row in rows] == ["+0.00", "+0.00"]

    ours = tmt("translate", "--model", model.folder, "--input", source, "--scores")
    exported = tmt("translate", "--model", "out", "--input", source, "--scores")
    converted = tmt("translate", "--model", model.folder, "--engine", "ctranslate2", "--input", source, "--scores")
    assert ours[1].count("\n") == len(SENTENCES)
    assert [line.split("\t")[1] for line in exported[1].splitlines()] == [
        line.split("\t")[1] for line in ours[1].splitlines()
    ]
    assert converted[1] == exported[1]


def test_references_are_compared_as_evaluate_compares_them(
    tmt: Run, model: ModelDirectory, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without characters that nobody sees and no model writes: both commands give the same BLEU."""
    reference, compared = tmp_path / "reference.txt", list[str]()
    reference.write_text("".join(f"\u200b{line}\n" for line in SENTENCES))

    def noted(hypotheses: Sequence[str], references: Sequence[str], *more: Any) -> dict[str, Any]:
        compared.extend(references)
        return score(hypotheses, references, *more)

    monkeypatch.setattr("transformer_mt.workflows.export.score", noted)
    code, _, _ = tmt("export", "--model", model.folder, "--output", "o", "--input", source, "--reference", reference)
    assert code == 0
    assert {*compared} == {*SENTENCES}


def test_translating_with_an_export_imports_no_torch(tmt: Run, model: ModelDirectory, source: Path) -> None:
    """Importing it would take longer than everything else."""
    tmt("export", "--model", model.folder, "--output", "out", "--input", source)
    program = """if True:
        import sys
        from transformer_mt.cli import main
        try:
            main.run()
        except SystemExit as left:
            assert not left.code
        assert "torch" not in sys.modules
    """
    command = [sys.executable, "-c", program, "translate", "--model", "out", "abc def"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout.count("\n")) == (0, 1), done.stderr


def test_json_reports_a_comparison_on_random_sentences(tmt: Run, model: ModelDirectory) -> None:
    code, out, error = tmt(
        "export", "--model", model.folder, "-o", "out", "--quantization", "int8", "--sample", 10, "--json"
    )
    assert code == 0
    assert "random tokens" in error
    report = json.loads(out)
    assert (report["quantization"], report["sentences"]) == ("int8", 10)
    assert [row["beam"] for row in report["searches"]] == [1, 3]
    assert all(row["bleu"] is None and 0 <= row["equal"] <= 1 for row in report["searches"])


def test_an_export_without_its_weights_is_named_and_can_be_written_again(
    tmt: Run, model: ModelDirectory, source: Path
) -> None:
    options = ("--model", model.folder, "--output", "out", "--input", source)
    assert tmt("export", *options)[0] == 0
    Path("out/model.bin").unlink()
    code, _, error = tmt("translate", "--model", "out", "abc")
    assert code == 2
    assert "an export for CTranslate2 without its weights, model.bin" in error
    assert tmt("export", *options)[0] == 0
    assert tmt("translate", "--model", "out", "abc")[0] == 0
    shutil.copytree(model.folder, "both")
    shutil.copy("out/export.json", "both")
    assert tmt("translate", "--model", "both", "abc")[0] == 0, "here are all parts of a model"
    Path("out/config.yaml").unlink()
    code, _, error = tmt("translate", "--model", "out", "abc")
    assert code == 2
    assert "an export for CTranslate2 without config.yaml" in error


def test_disagreement_in_float32_is_a_failure(
    tmt: Run, model: ModelDirectory, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformer_mt.exporting import specification
    from transformer_mt.exporting.engine import Ctranslate2Engine
    from transformer_mt.workflows import export

    options = ("--model", model.folder, "--sample", 40, "--output", "out")
    with monkeypatch.context() as patch:
        patch.setattr(export, "ENOUGH", 1.01)
        code, _, error = tmt("export", *options)
        assert code == 0, "translations are as likely"
        assert "only 100.0% of the translations with beam 3 are equal, but the others are about as likely" in error
    before, exact, find = Path("out/model.bin").read_bytes(), specification.specification, Ctranslate2Engine._search

    def inexact(factor: float) -> Callable[..., Any]:
        def write(*arguments: Any, **more: Any) -> Any:
            found = exact(*arguments, **more)
            found.decoder.projection.weight[5:9] *= factor
            return found

        return write

    for part, replacement, problem in (
        ((specification, "specification"), inexact(1.2), "log-probabilities of tokens differ by up to "),
        (
            (Ctranslate2Engine, "_search"),
            lambda engine, requests: [found[::-1] for found in find(engine, requests)],  # the worst first
            "with beam 3 only 0.0% of the translations are equal, and the others are less likely (by ",
        ),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(*part, replacement)
            if problem.startswith("with beam"):
                assert tmt("export", *options[:-1], "8", "--quantization", "int8")[0] == 0, "these may differ"
            code, _, error = tmt("export", *options)
        assert (code, f"VERIFICATION FAILED: {problem}" in error) == (1, True), error
        assert Path("out/model.bin").read_bytes() == before
        assert not list(Path().glob(".*"))


def test_scores_that_are_no_numbers_are_the_largest_difference() -> None:
    assert math.isnan(Scores((0.1, math.nan, 0.2), ()).difference)
    assert (Scores((0.3,), (0.5, -0.5)).disadvantage, Scores((0.3,), (0.5,) * 9).disadvantage) == (0.0, 3.0)
    assert (Scores((0.3,), ()).loss, Scores((0.3,), (4.0, -1.0)).loss) == (0.0, 1.5)


def test_an_export_replaces_an_earlier_export_and_nothing_else(
    tmt: Run, model: ModelDirectory, source: Path, tmp_path: Path
) -> None:
    Path("first").mkdir()
    Path("served").symlink_to("first")
    options = ("--model", model.folder, "--output", "served", "--input", source)
    for _ in range(2):
        assert tmt("export", *options)[0] == 0
        assert Path("served").is_symlink()
        assert Path("first/model.bin").is_file()
    for name in ("NOTES.md", "source/notes.txt", "source/mine", "my_vocabulary.json"):
        Path("first/export.json").unlink(missing_ok=True)  # as versions before it
        assert tmt("export", *options)[0] == 0
        if name != "NOTES.md":
            Path("first/export.json").unlink()
        other = Path("first", name)
        other.mkdir() if name == "source/mine" else other.write_text("mine")
        code, _, error = tmt("export", *options)
        assert code == 2
        assert f"contains other files ({name}); nothing was written" in error
        other.rmdir() if other.is_dir() else other.unlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "in.txt", "served"]


def test_a_folder_of_another_program_is_left_alone(tmt: Run, model: ModelDirectory, source: Path) -> None:
    for name in ("export.json", "config.yaml", "config.json", "source/thesis.txt"):
        file = Path("mine", name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('{"settings": "of another program"}')
    code, _, error = tmt("export", "--model", model.folder, "--output", "mine", "--input", source)
    assert code == 2
    assert "contains other files (config.json, config.yaml, export.json); nothing was written" in error
    assert Path("mine/source/thesis.txt").is_file()


def test_empty_lines_are_not_compared(tmt: Run, model: ModelDirectory, source: Path) -> None:
    source.write_text("\n\nabc def\n\nxyz\nq\n")
    code, out, _ = tmt(
        "export",
        "--model",
        model.folder,
        "-o",
        "out",
        "--input",
        source,
        "--reference",
        source,
        "--sample",
        2,
        "--json",
    )
    report = json.loads(out)
    assert (code, report["sentences"]) == (0, 2)
    assert report["searches"][0]["bleu"] is not None


def test_what_the_engines_do_differently_is_not_compared(tmt: Run, altered: Callable[..., Path]) -> None:
    code, _, error = tmt("export", "--model", altered(no_repeat_ngram=1), "--output", "out", "--sample", 60)
    assert code == 0, error
    assert "compared with plain beam search" in error


def test_what_the_export_does_not_protect_is_said_once(
    tmt: Run, model: ModelDirectory, altered: Callable[..., Path]
) -> None:
    said = "addresses and placeholders are left to the exported model"
    assert tmt("export", "--model", model.folder, "--output", "out", "--sample", 5)[2].count(said) == 1
    line = "abc {name} def"
    assert tmt("translate", "--model", model.folder, line)[1].count("{name}") == 1
    assert "the translation lacks {name}" in tmt("translate", "--model", "out", line)[2]
    sampled = altered(method="sampling", n_best=1)  # here the model itself protects none
    assert said not in tmt("export", "--model", sampled, "--output", "out", "--sample", 5)[2]


def test_a_search_that_the_export_does_not_have_is_named(tmt: Run, altered: Callable[..., Path]) -> None:
    code, _, error = tmt("export", "--model", altered(coverage_penalty=0.5), "--output", "out", "--sample", 5)
    assert code == 0, error
    assert (
        "the export cannot search as this model does: CTranslate2 does not support decoding.coverage_penalty" in error
    )
    assert tmt("translate", "--model", "out", "abc")[0] == 2


def test_an_export_that_replaces_that_of_another_model_says_so(
    tmt: Run, model: ModelDirectory, altered: Callable[..., Path]
) -> None:
    models = [model.folder, altered(name="other"), altered(name="other")]
    errors = [tmt("export", "--model", one, "--output", "out", "--sample", 5)[2] for one in models]
    said = f"out: replaced the export of another model, {model.config.name}, by that of other"
    assert [said in error for error in errors] == [False, True, False]


def test_validation_data_of_another_config_is_not_used(tmt: Run, model: ModelDirectory, tmp_path: Path) -> None:
    prepared = tmp_path / model.config.data.prepared / model.config.name
    prepared.mkdir(parents=True)
    (prepared / "manifest.json").write_text(json.dumps({"settings": {}}), encoding="utf-8")
    code, _, error = tmt("export", "--model", model.folder, "--output", "out", "--sample", 5)
    assert code == 0, error
    assert "comparing on sentences of random tokens" in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--format", "onnx"), "unknown format 'onnx'"),
        (("--quantization", "int3"), "unknown quantization 'int3'"),
        (("--reference", "in.txt"), "--input"),
        (("--input", "absent.txt"), "absent.txt"),
    ],
)
def test_wrong_options_are_the_users_fault(
    tmt: Run, model: ModelDirectory, source: Path, options: tuple[str, ...], message: str
) -> None:
    code, out, error = tmt("export", "--model", model.folder, "--output", "out", *options)
    assert (code, out) == (2, "")
    assert message in error
    assert not Path("out").exists()


def test_sentences_of_a_file_have_one_direction(
    tmt: Run, many_model: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformer_mt.workflows import export

    compared, compare = list[tuple[str, int]](), export.compare

    def noted(ours: Interpreter, theirs: Interpreter, lines: list[str]) -> Agreement:
        compared.append((ours.config.data.direction, len(lines)))
        return compare(ours, theirs, lines)

    monkeypatch.setattr(export, "compare", noted)
    options = ("--model", many_model, "--output", "out", "--quantization", "int8")
    code, _, error = tmt("export", *options, "--input", source)
    assert (code, compared) == (2, [])
    assert "this model translates several directions: ko-en, en-ko, en-de, de-en" in error
    assert tmt("export", *options, "--input", source, "--to", "en", "--from", "de")[0] == 0
    assert compared == [("de-en", 4)] * 2
    for more, expected in (
        ((), [("ko-en", 2), ("en-ko", 2), ("en-de", 1), ("de-en", 1)]),
        (("--to", "en"), [("ko-en", 3), ("de-en", 3)]),
    ):
        compared.clear()
        assert tmt("export", *options, "--sample", 6, *more)[0] == 0
        assert compared == expected * 2, "random lines are of all directions"


def test_ensembles_and_attention_need_the_tmt_engine(
    tmt: Run, model: ModelDirectory, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = ("--model", model.folder, "--model", model.folder)
    assert tmt("translate", *two, "--engine", "ctranslate2", "abc")[0] == 2
    options = ("--model", model.folder, "--engine", "ctranslate2", "--attention", "map.png")
    code, _, error = tmt("translate", *options, "abc")
    assert code == 2
    assert "--engine tmt" in error


def test_two_exports_to_one_folder_at_once_are_refused(
    tmt: Run, model: ModelDirectory, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformer_mt.workflows import export

    options = ("--model", model.folder, "--output", "out", "--input", source)
    inner: list[tuple[int, str]] = []
    write = export.write_export

    def write_twice(*arguments: Any) -> None:
        monkeypatch.setattr(export, "write_export", write)
        code, _, error = tmt("export", *options)
        inner.append((code, error))
        write(*arguments)

    monkeypatch.setattr(export, "write_export", write_twice)
    assert tmt("export", *options)[0] == 0
    ((code, error),) = inner
    assert code == 2
    assert "out: another process exports here" in error
    assert tmt("export", *options)[0] == 0, "the lock is released"
