"""`tmt translate`: what it refuses, with one message and exit code 2, and with nothing lost."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from transformer_mt.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "nowhere", "x"], "no such model folder"),
        (["--input", "nowhere.txt"], "no such file"),
        (["--input", "-"], "stdin needs no option"),
        (["in.txt", "--input", "in.txt"], 'the text "in.txt" is translated; for the file of this name give --document'),
        (["--input", "in.txt", "text"], "cannot be combined"),
        (["--input", "in.txt", "--output", "in.txt"], "same file"),
        (["--output", "no/such/out.txt", "x"], "no such folder"),
        (["--attention", "map.png", "one", "two"], "exactly one sentence"),
        (["--attention-of", "cross", "one"], "--attention-of needs --attention"),
        (["--theme", "dark", "one"], "--theme needs --attention"),
        (["--attention", "in.txt/map.png", "one"], "in.txt/map.png: found a file instead of a folder"),
        (["--attention", "map.png/", "one"], "'map.png/' is not the name of a picture"),
        (["--attention", "map.png", "--attention-of", "heads", "one"], "names no attention map"),
        (["--attention", "map.jpg", "one"], "cannot be written as .jpg"),
        (["--attention", ".", "one"], "not a regular file"),
        (["--attention", "/dev/null", "one"], "not a regular file"),
        (["--attention", "map.png", "--output", "./map.png", "one"], "are the same file"),
        (["--engine", "steam", "x"], "unknown engine 'steam'"),
        (["--sample", "--mbr", "x"], "--sample and --mbr cannot be combined"),
        (["--sample", "--beam", "3", "x"], "two ways of searching"),
        (["--mbr", "--beam", "3", "--samples", "8", "x"], "--samples is for samples"),
        (["--mbr", "--beam", "3", "--top-k", "3", "x"], "--top-k is for samples"),
        (["--top-k", "3", "x"], "--top-k is for sampling"),
        (["--sample", "--samples", "8", "x"], "--samples is for --mbr"),
        (["--threads", "100000", "x"], "'--threads'"),
        (["--sample", "--seed", "9223372036854775808", "x"], "'--seed'"),
        (["--top-p", "7", "x"], "--top-p"),
        (["--n-best", "4", "--beam", "2", "x"], "n_best 4 needs a beam of at least 4, not 2"),
        (["--n-best", "300", "x"], "tmt: --n-best is 300, but must be at most 256\n"),
        ([], "no finished run"),
    ],
)
def test_user_errors_have_exit_code_2(
    tiny_model: Path, tmp_path: Path, monkeypatch, capfd, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("hello\n")
    model = [] if not arguments or "--model" in arguments else ["--model", str(tiny_model)]
    code, (output, errors) = main(["translate", *model, *arguments]), capfd.readouterr()
    assert (code, output) == (2, ""), errors
    assert said in errors
    assert "Traceback" not in errors
    assert [file.name for file in tmp_path.iterdir()] == ["in.txt"]
    assert Path("in.txt").read_text() == "hello\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "pairs.csv",
            "tmt: pairs.csv is translated line by line: all its columns are translated, with their separators\n",
        ),
        (
            "page.html.gz",
            "tmt: page.html.gz is translated line by line: --document in place of --input keeps its markup\n",
        ),
        ("letters.ko.txt", ""),
    ],
)
def test_a_file_with_more_than_sentences_is_noted(
    tiny_model: Path, tmp_path: Path, monkeypatch, capfd, name: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(gzip.compress(b"a dog\n") if name.endswith(".gz") else b"a dog\n")
    code = main(["translate", "--model", str(tiny_model), "--input", name])
    output, errors = capfd.readouterr()
    assert (code, output.count("\n")) == (0, 1)
    assert "".join(line for line in errors.splitlines(keepends=True) if "line by line" in line) == said


@pytest.mark.parametrize(
    ("line", "said"), [("a <b>dog</b>", 1), ("{n, plural, one {a dog} other {a dog}}", 1), ("a dog", 0)]
)
def test_a_note_of_lost_tags_says_once_how_to_keep_them(
    tiny_model: Path, tmp_path: Path, capfd, line: str, said: int
) -> None:
    (tmp_path / "strings").write_text(f"{line}\n" * 3)
    code = main(["translate", "--model", str(tiny_model), "--input", str(tmp_path / "strings")])
    output, errors = capfd.readouterr()
    assert (code, output.count("\n")) == (0, 3)
    assert errors.count("tmt translate --document FILE --format strings") == said
