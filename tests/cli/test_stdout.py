"""What reaches a terminal or a pipe whose encoding does not know the letters of the languages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KOREAN = "나는 책을 읽었다."


def evaluate(folder: Path, *arguments: str) -> str:
    """`tmt evaluate` of one Korean sentence, on a stdout that can write ASCII alone."""
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


def test_letters_that_cannot_be_written_are_shown_as_question_marks(tmp_path: Path) -> None:
    assert f"reference   {'?' * 2} {'?' * 2} {'?' * 3}." in evaluate(tmp_path)


def test_json_loses_no_letter(tmp_path: Path) -> None:
    assert json.loads(evaluate(tmp_path, "--json"))["best"][0]["reference"] == KOREAN
