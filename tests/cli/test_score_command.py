"""`tmt score`: one line for each pair, alignments of words, and what it refuses."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from transformer_mt import load, score
from transformer_mt.cli.main import main
from transformer_mt.errors import TmtError


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    source, target = tmp_path / "a.en", tmp_path / "a.de.gz"
    source.write_text("hello all\n\nab\n", encoding="utf-8")
    target.write_bytes(gzip.compress(b"xyz abc\nb\n\n"))
    return source, target


def test_a_row_has_sum_mean_and_tokens(tiny_model: Path, files: tuple[Path, Path], capsys) -> None:
    source, target = map(str, files)
    assert main(["score", "--model", str(tiny_model), "--source", source, "--target", target]) == 0
    output, errors = capsys.readouterr()
    rows = [line.split("\t") for line in output.splitlines()]
    scored = list(load(tiny_model).score(["hello all", "", "ab"], ["xyz abc", "b", ""]))
    for (total, mean, tokens), one in zip(rows, scored, strict=True):
        assert float(total) == pytest.approx(one.log_probability, abs=1e-5)
        assert float(mean) == pytest.approx(float(total) / int(tokens), abs=1e-5)
    assert "tmt: line 2: the source is empty" in errors
    assert "tmt: line 3: the target is empty" in errors
    assert "3 pairs, 11 tokens: " in errors


def test_json_alignment_and_gain(tiny_model: Path, files: tuple[Path, Path], tmp_path: Path) -> None:
    source, target, output, links = *map(str, files), str(tmp_path / "out"), str(tmp_path / "links")
    common = ["score", "--model", str(tiny_model), "--source", source, "--target", target]
    assert main([*common, "--json", "--gain", "-o", output, "--alignment", links]) == 0
    first, *others = map(json.loads, Path(output).read_text(encoding="utf-8").splitlines())
    assert len(others) == 2
    assert sum(first["token_scores"]) == pytest.approx(first["log_probability"], abs=1e-4)
    assert first["tokens"][-1] == "</s>"
    assert isinstance(first["gain"], float)
    pharaoh = Path(links).read_text(encoding="utf-8").split("\n")
    assert pharaoh[0] == " ".join(f"{i}-{j}" for i, j in first["word_alignment"])
    assert pharaoh[1:] == ["", "", ""]
    assert main([*common, "--per-token", "-o", output]) == 0
    tokens = Path(output).read_text(encoding="utf-8").splitlines()[0].split("\t")[3].split()
    assert [float(value) for value in tokens[1::2]] == pytest.approx(first["token_scores"], abs=1e-5)
    assert tokens[0::2] == first["tokens"]


def test_what_it_refuses(tiny_model: Path, files: tuple[Path, Path], tmp_path: Path, capsys) -> None:
    source, target = map(str, files)
    two = tmp_path / "two"
    two.write_text("a\nb\n", encoding="utf-8")
    common = ["score", "--model", str(tiny_model), "--source", source]
    for options, message in (
        (["--target", str(two)], f"{source} has 3 lines, {two} has 2"),
        (["--target", str(tmp_path / "none")], "no such file"),
        (["--target", target, "-o", source], "this file is given twice"),
        (["--target", target, "-o", str(tmp_path)], "this is a folder, not a file"),
        (["--target", target, "-o", str(two), "--alignment", str(two)], "this file is given twice"),
        (["--target", target, "--alignment", str(tmp_path / "no" / "links")], "no such folder"),
        (["--target", target, "--alignment", "-"], "-: two results would both go to stdout"),
        (["--source", "-", "--target", target], "--source is given 2 times"),
    ):
        assert main([*common, *options]) == 2
        assert message in capsys.readouterr().err
    for option in ("--hypothesis", "--source", "--baseline", "--split"):
        assert main(["evaluate", "--model", str(tiny_model), option, source, option, target]) == 2
        assert f"{option} is given 2 times" in capsys.readouterr().err
    assert main([*common[:-1], "-", "--target", "-"]) == 2
    assert "both files are stdin" in capsys.readouterr().err


@pytest.fixture
def stdin() -> Iterator[Callable[[bytes], None]]:
    """A function that makes some bytes the standard input of this process."""
    before = os.dup(0)

    def feed(content: bytes) -> None:
        reader, writer = os.pipe()
        os.write(writer, content)
        os.close(writer)
        os.dup2(reader, 0)
        os.close(reader)

    yield feed
    os.dup2(before, 0)
    os.close(before)


def test_a_dash_is_stdin_or_stdout(
    tiny_model: Path, files: tuple[Path, Path], tmp_path: Path, monkeypatch, stdin, capfdbinary
) -> None:
    monkeypatch.chdir(tmp_path)
    source, target = map(str, files)
    common = ["score", "--model", str(tiny_model), "--target", target]
    assert main([*common, "--source", source, "-o", "scores", "--alignment", "links"]) == 0
    capfdbinary.readouterr()
    stdin(files[0].read_bytes())
    assert main([*common, "--source", "-", "-o", "-"]) == 0
    printed, written = (text.decode().split() for text in (capfdbinary.readouterr().out, Path("scores").read_bytes()))
    # without --alignment another kernel computes the attention, so last digits may differ
    assert [float(number) for number in printed] == pytest.approx([float(number) for number in written], abs=1e-4)
    assert main([*common, "--source", source, "-o", "scores", "--alignment", "-"]) == 0
    assert capfdbinary.readouterr().out == Path("links").read_bytes()
    assert not Path("-").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("Öl\nfür alle\nab\n".encode("cp1252"), "iconv -f CP1252 -t UTF-8"),
        ("hello all\nb\nab\n".encode("utf-16"), "iconv -f UTF-16 -t UTF-8"),
    ],
)
def test_another_encoding_is_converted_and_not_configured(
    tiny_model: Path, files: tuple[Path, Path], tmp_path: Path, capsys, content: bytes, said: str
) -> None:
    (tmp_path / "other").write_bytes(content)
    source = ["--model", str(tiny_model), "--source", str(tmp_path / "other")]
    assert main(["score", *source, "--target", str(files[1])]) == 2
    scored = capsys.readouterr().err
    assert main(["translate", *source[:2], "hello", "--glossary", source[3]]) == 2
    assert main(["evaluate", "--hypothesis", source[3], "--reference", source[3]]) == 2
    for told in (scored, capsys.readouterr().err):
        assert said in told
        assert "data.corpus" not in told


def test_from_python(tiny_model: Path, files: tuple[Path, Path]) -> None:
    scored = list(score(*files, tiny_model, align=True))
    assert [len(one.tokens) for one in scored] == [8, 2, 1]
    assert scored[0].word_alignment
    with pytest.raises(TmtError, match="no such file"):
        score("hello", "xyz", tiny_model)
