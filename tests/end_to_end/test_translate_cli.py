"""`tmt translate` as users and scripts run it: in a separate process, with pipes and terminals."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest
import yaml

from tests.forks import PYTHON

pytestmark = pytest.mark.slow

COMMAND = ("-m", "transformer_mt.cli.main", "translate")
TMT = [*PYTHON, *COMMAND]
ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TERM": "dumb"}
UNUSUAL = [
    "plain",
    "",
    "   ",
    "\t\t",
    "ends with a carriage return\r",
    "a\rb\x0bc\x0cd\x1ce\x1df\x1eg\x85h\u2028i\u2029j",
    "\u2028",
    "\u200b\ufeff\u00ad",
    "emoji 👩‍👩‍👧‍👦 🇰🇷",
    "tab\tseparated\tfields",
    "안녕하세요, 만나서 반갑습니다.",
    "</s> <s> <pad> <unk>",
    "null \x00 and bell \x07",
    "combining e\u0301\u0301\u0301",
    "x" * 3000,
    "word " * 5000,
    "\U0010ffff\ufffe",
    "last",
]


def translate(model: Path, *arguments: str, stdin: bytes = b"", code: int = 0) -> tuple[bytes, str]:
    done = subprocess.run(
        [*TMT, "--model", str(model), *arguments],
        input=stdin,
        capture_output=True,
        env=ENVIRONMENT,
        timeout=60,
        check=False,
    )
    error = done.stderr.decode()
    assert done.returncode == code, error
    assert "Traceback" not in error
    return done.stdout, error


def in_a_terminal(
    *arguments: str, environment: dict[str, str] = ENVIRONMENT, encoding: str | None = "utf-8"
) -> pexpect.spawn:
    return pexpect.spawn(PYTHON[0], [*PYTHON[1:], *COMMAND, *arguments], env=environment, encoding=encoding, timeout=30)


def test_exactly_one_output_line_for_each_input_line(tiny_model: Path, tmp_path: Path) -> None:
    text = "\n".join(UNUSUAL).encode()
    piped, error = translate(tiny_model, stdin=text)
    assert piped.count(b"\n") == len(UNUSUAL)
    assert piped.decode().splitlines() == piped.decode().removesuffix("\n").split("\n")  # and no other line break
    empty = [index for index, line in enumerate(piped.split(b"\n")[:-1]) if not line]
    assert {1, 2, 3, 6, 7} <= set(empty)
    assert f"line {len(UNUSUAL) - 2}: cut to 23 of 24999 tokens" in error

    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(text + b"\n")
    stdout, _ = translate(tiny_model, "--input", str(source), "--output", str(target))
    assert stdout == b""
    assert target.read_bytes() == piped, "a file gives the same as a pipe, with or without a line break at the end"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def test_arguments_scores_and_n_best(tiny_model: Path) -> None:
    plain = translate(tiny_model, "hello", " ", "abc")[0].decode().split("\n")
    assert len(plain) == 4
    assert plain[1] == ""
    scored = [
        line.split("\t") for line in translate(tiny_model, "--scores", "hello", "", "abc")[0].decode().splitlines()
    ]
    assert [text for _, text in scored] == plain[:3]
    assert all(float(score) <= 0 for score, _ in scored)
    rows = [
        line.split("\t") for line in translate(tiny_model, "--n-best", "4", "hello", "", "abc")[0].decode().splitlines()
    ]
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert {row[0] for row in rows} == {"1", "2", "3"}
    for number in "13":
        scores = [float(score) for line, score, _ in rows if line == number]
        assert 1 < len(scores) <= 4
        assert scores == sorted(scores, reverse=True)


def test_one_output_line_for_each_input_line_even_if_the_model_has_n_best(tiny_model: Path, tmp_path: Path) -> None:
    listing = tmp_path / "listing"
    shutil.copytree(tiny_model, listing)
    settings = yaml.safe_load((listing / "config.yaml").read_text())
    settings["decoding"] |= {"beam": 4, "n_best": 3}
    (listing / "config.yaml").write_text(yaml.safe_dump(settings, allow_unicode=True))
    plain = translate(listing, "hello", "abc")[0].decode().splitlines()
    assert len(plain) == 2
    assert not any("\t" in line for line in plain)
    answer = json.loads(translate(listing, "--json", "hello", "abc")[0])
    assert [line["text"] for line in answer["translations"]] == plain
    assert len(answer["translations"][0]["n_best"]) == 3


def test_json_is_one_object_with_all_results(tiny_model: Path) -> None:
    value = json.loads(translate(tiny_model, "--json", "abcÜ", "")[0])
    first, second = value["translations"]
    assert (first["line"], first["source"], first["source_tokens"]) == (1, "abcÜ", ["a", "b", "c", "Ü"])
    assert first["notes"][0] == "1 unknown word: Ü"
    assert len(first["alignment"]) == len(first["tokens"])
    assert all(0 <= place < 4 for place in first["alignment"])
    assert second["text"] == ""
    assert json.loads(translate(tiny_model, "--json", stdin=b"")[0])["translations"] == []


def test_a_pipe_is_answered_line_by_line(tiny_model: Path) -> None:
    with subprocess.Popen(
        [*TMT, "--model", str(tiny_model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = []
        for line in (b"hello\n", b"\n", b"abc\n"):
            process.stdin.write(line)
            process.stdin.flush()
            answers.append(process.stdout.readline())  # would wait forever without an answer
        process.stdin.write(b"no line end")
        process.stdin.close()
        rest = process.stdout.read()
        assert process.wait(30) == 0
    expected = translate(tiny_model, "hello", "", "abc", "no line end")[0]
    assert b"".join(answers) + rest == expected


def test_bytes_that_are_not_utf8(tiny_model: Path, tmp_path: Path) -> None:
    piped, error = translate(tiny_model, stdin=b"one\n\xff\xfe two\nthree\n")
    assert piped.count(b"\n") == 3
    assert "line 2: not UTF-8" in error
    file, target = tmp_path / "in.txt", tmp_path / "out.txt"
    file.write_bytes(b"one\n\xff\xfe two\nthree\n")
    _, error = translate(tiny_model, "-i", str(file), "-o", str(target), code=2)
    assert f"{file}:2: the line is not UTF-8: byte 0xff at position 1" in error
    assert not target.exists()


def test_a_killed_translation_leaves_no_partial_file(tiny_model: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("some words here\n" * 20_000)
    for stop in (signal.SIGKILL, signal.SIGINT):
        process = subprocess.Popen(
            [sys.executable, *COMMAND, "-m", str(tiny_model), "-i", str(source), "-o", str(target)],
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
        )
        deadline = time.monotonic() + 40
        while (
            not any(file.stat().st_size for file in tmp_path.glob(f".*{process.pid}*")) and time.monotonic() < deadline
        ):
            assert process.poll() is None, "it ended before it was killed"
            time.sleep(0.02)
        process.send_signal(stop)
        _, error = process.communicate(timeout=30)
        assert not target.exists()
        if stop == signal.SIGINT:
            assert process.returncode == 130
            assert error.decode().splitlines()[-1] == "tmt: interrupted"
            assert not list(tmp_path.glob(f".*{process.pid}*"))


def test_lines_before_one_that_is_too_long_are_translated(tiny_model: Path) -> None:
    """Both arrive while the model is loaded."""
    written, error = translate(tiny_model, stdin=b"one\ntwo\nthree\n" + b"x" * (3 << 20), code=2)
    assert written.count(b"\n") == 3
    assert "the input:4: the line is longer than 1 MiB" in error


def test_an_output_that_is_already_open_is_not_replaced(tiny_model: Path, tmp_path: Path) -> None:
    written, _ = translate(tiny_model, "--output", "/dev/stdout", "ab")
    assert written.count(b"\n") == 1
    file = tmp_path / "all.txt"
    file.write_bytes(b"old\n")
    with file.open("ab") as stream:
        command = [*TMT, "--model", str(tiny_model), "--output", "/dev/stdout", "ab"]
        subprocess.run(command, stdout=stream, env=ENVIRONMENT, timeout=60, check=True)
    assert file.read_bytes() == b"old\n" + written


def test_a_prefix_that_is_not_utf8_is_read_like_a_sentence(tiny_model: Path) -> None:
    written, _ = translate(tiny_model, "--prefix", os.fsdecode(b"a\xff"), "ab")
    assert written.count(b"\n") == 1


def test_a_closed_pipe_ends_the_command_quietly(tiny_model: Path) -> None:
    process = subprocess.Popen(
        [*TMT, "-m", str(tiny_model), "--beam", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(b"a\n")
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    process.stdin.write(b"b\n" * 10)
    process.stdin.close()
    assert process.wait(30) == 0
    errors = process.stderr.read().decode()
    process.stderr.close()
    assert all(line.startswith("tmt: line ") for line in errors.splitlines()), errors


@pytest.mark.parametrize("closing", [">&-", "2>&-"])
def test_a_closed_stdout_or_stderr_is_not_an_error(tiny_model: Path, closing: str) -> None:
    command = ["sh", "-c", f'exec "$@" {closing}', "sh", sys.executable, *COMMAND, "--model", str(tiny_model), "hello"]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    assert "tmt: " not in done.stdout, "notes go to stderr"


def test_sampling_ensembles_and_prefixes_from_the_command_line(tiny_model: Path) -> None:
    draw = [translate(tiny_model, "--sample", "--seed", seed, "hello", "abc")[0] for seed in ("1", "2")]
    assert draw[0] != draw[1]
    ensemble = translate(tiny_model, "--model", str(tiny_model), "--prefix", "abc", "hello", "x")[0]
    assert ensemble == translate(tiny_model, "--prefix", "abc", "hello", "x")[0]
    assert [line[:3] for line in ensemble.split(b"\n")] == [b"abc", b"abc", b""]


def test_attention_is_plotted(tiny_model: Path, tmp_path: Path) -> None:
    picture = tmp_path / "map.png"
    stdout, error = translate(tiny_model, "hello", "--attention", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert stdout.count(b"\n") == 1
    assert str(picture) in error


def test_characters_that_no_font_of_a_picture_has_are_noted(tiny_model: Path, tmp_path: Path) -> None:
    _, error = translate(tiny_model, "hello ครู", "--attention", str(tmp_path / "map.png"))
    assert "characters drawn as boxes: no font of the pictures has them" in error


def test_a_picture_is_written_through_a_link(tiny_model: Path, tmp_path: Path) -> None:
    link, picture = tmp_path / "link.png", tmp_path / "map.png"
    link.symlink_to(picture)
    translate(tiny_model, "hello", "--attention", str(link))
    assert link.is_symlink()
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_prompt_translates_keeps_a_history_and_quits(tiny_model: Path) -> None:
    prompt = "en > de: "
    expected = translate(tiny_model, "hello")[0].decode().strip()
    child = in_a_terminal("-m", str(tiny_model))
    child.expect_exact(prompt)
    child.sendline("hello")
    child.expect_exact(expected)
    child.expect_exact(prompt)
    child.sendline("   ")
    child.expect_exact(prompt)
    child.send("\x1b[A\x1b[A\r")  # history: up, beyond the empty line
    child.expect_exact("hello")
    child.expect_exact(expected)
    child.expect_exact(prompt)
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_progress_is_shown_on_a_terminal(tiny_model: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("hello\n" * 30)
    arguments = ["-m", str(tiny_model), "--input", str(source), "--output", str(tmp_path / "out.txt")]
    child = in_a_terminal(*arguments, environment={**ENVIRONMENT, "TERM": "xterm"})
    child.expect(r"30/30 .*lines")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_ctrl_c_quits_the_prompt_with_130(tiny_model: Path) -> None:
    child = in_a_terminal("-m", str(tiny_model))
    child.expect_exact("en > de: ")
    time.sleep(0.5)  # a signal right after the prompt may be missed on a busy machine
    child.sendintr()
    child.expect_exact("tmt: interrupted")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130


def test_the_prompt_continues_after_bytes_that_are_not_utf8(tiny_model: Path) -> None:
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": "utf-8:strict"}
    child = in_a_terminal("-m", str(tiny_model), environment=environment, encoding=None)
    child.expect_exact("en > de: ")
    child.send(b"gr\xfc\xdfe\n")
    child.expect_exact("not UTF-8")
    child.expect_exact("en > de: ")
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_no_compiler_is_imported(tiny_model: Path) -> None:
    """torch imports it for arithmetic on its device `meta`, and it takes longer than all else that the command does."""
    program = "import sys; from transformer_mt.cli.main import main; main(sys.argv[1:]); print([*sys.modules])"
    command = [sys.executable, "-c", program, "translate", "--model", str(tiny_model), "abc def"]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=True)
    assert "'torch'" in done.stdout
    assert "'torch._dynamo'" not in done.stdout
