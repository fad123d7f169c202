"""Output to streams whose encoding has no Hangul, and to a full disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KOREAN = "나는 책을 읽었다."


def evaluate(folder: Path, *arguments: str) -> str:
    """`tmt evaluate` of one Korean sentence, on an ASCII stdout."""
    (folder / "lines").write_text(KOREAN + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "transformer_mt.cli.main", "evaluate", "--chrf", *arguments]
    done = subprocess.run(
        [*command, "--hypothesis", "lines", "--reference", "lines"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("ascii")


def test_letters_that_stdout_cannot_encode_become_question_marks(tmp_path: Path) -> None:
    assert f"reference   {'?' * 2} {'?' * 2} {'?' * 3}." in evaluate(tmp_path)


def test_json_escapes_letters_that_stdout_cannot_encode(tmp_path: Path) -> None:
    assert json.loads(evaluate(tmp_path, "--json"))["best"][0]["reference"] == KOREAN


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("arguments", "full", "code"), [("--version", "stdout", 2), ("--version", "stderr", 0), ("tarin", "stderr", 2)]
)
def test_exit_codes_on_a_full_disk(arguments: str, full: str, code: int) -> None:
    command = [sys.executable, "-m", "transformer_mt.cli.main", arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
    with Path("/dev/full").open("w") as device:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, full: device}
        done = subprocess.run(command, text=True, env=environment, timeout=60, check=False, **streams)
    assert done.returncode == code
    if full == "stdout":
        assert done.stderr.startswith("tmt: the disk is full")
        assert done.stderr.count("\n") == 2
    elif code == 0:
        assert done.stdout.startswith("tmt ")
