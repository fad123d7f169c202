"""What the pages show as output is what the program prints: blocks under `<!-- run -->` are executed and compared.

`...` stands for anything: within a line for characters, on a line alone for any number of lines. Below `print(...)` of
Python, comments hold the output. The requests under `<!-- serve -->` get the answers that stand there. The model is
that of the quickstart, trained once and for a shorter time. What needs it is in this file: one process waits for it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.conftest import Block
from tests.forks import PYTHON

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
_SERVED = re.compile(r"^<!-- serve -->\n```console\n(.*?)^```$", re.M | re.S)
_USUAL = "http://127.0.0.1:5000"


def pattern_of(shown: str) -> re.Pattern[str]:
    """A pattern that matches output as a page shows it."""
    lines = []
    for line in shown.strip("\n").splitlines():
        if line.strip() == "...":
            lines.append(r"(?:[^\n]*\n)*?")
        else:
            lines.append(re.escape(line.rstrip()).replace(r"\.\.\.", r"[^\n]*") + r"[ ]*\n")
    return re.compile("".join(lines))


def matches(shown: str, printed: str) -> bool:
    text = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines()) + "\n"
    return pattern_of(shown).fullmatch("" if text == "\n" else text) is not None


def test_dots_match_characters_and_lines() -> None:
    assert matches("a\n...\nb", "a\nb\n")
    assert matches("a\n...\nb", "a\nx\ny\nb\n")
    assert matches("time ... s", "time 1.5 s\n")
    assert matches("", "")
    assert not matches("a", "a\nb\n")
    assert not matches("time ... s", "time 1.5\n s\n")


@pytest.fixture
def workplace(quickstart_run: Path, tmp_path: Path) -> Path:
    """A folder with configs, scripts and the model."""
    folder = tmp_path / "folder"
    for name in ("configs", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(quickstart_run, folder / "runs" / "quickstart")
    return folder


def _comments_below_print(code: str) -> Iterator[str]:
    showing = False
    for line in code.splitlines():
        showing = "print(" in line or (showing and line.startswith("#"))
        if showing and line.startswith("#"):
            yield line.removeprefix("#").removeprefix(" ")


def test_an_example_prints_what_the_page_shows(example: Any, workplace: Path, run: Any) -> None:
    if example.kind == "python":
        _, printed = run([*PYTHON, "-c", example.text], workplace, COLUMNS="100")
        assert "Traceback" not in printed, printed
        shown = "\n".join(_comments_below_print(example.text))
        assert not shown or matches(shown, printed), f"{example.place} shows\n{shown}\nbut prints\n{printed}"
        return
    for command, shown in example.commands():
        _, printed = run(["bash", "-c", command], workplace, COLUMNS="100")
        assert matches(shown, printed), f"{example.place}: $ {command}\nshows\n{shown}\nbut prints\n{printed}"


def test_the_model_of_the_examples_has_learned_its_language(quickstart_run: Path) -> None:
    scores = json.loads((quickstart_run / "model" / "scores.json").read_text(encoding="utf-8"))
    assert scores["test"]["sentences"] == 1000
    assert scores["test"]["bleu"] > 85


@pytest.fixture
def address(quickstart_run: Path, environment: dict[str, str]) -> Iterator[str]:
    """A server with the model of the quickstart."""
    command = [sys.executable, "-m", "transformer_mt", "serve", "--model", str(quickstart_run), "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield next(line for line in process.stdout if line.startswith("page")).split()[1]
        process.terminate()
    assert process.returncode == 0


def test_the_requests_of_the_page_get_its_answers(address: str) -> None:
    page = ROOT / "docs" / "serving.md"
    texts = _SERVED.findall(page.read_text(encoding="utf-8"))
    requests = [one for text in texts for one in Block(page, 0, "console", text, True).commands()]
    assert len(requests) > 4
    for command, shown in requests:
        typed = ["bash", "-c", command.replace(_USUAL, address)]
        printed = subprocess.run(typed, capture_output=True, text=True, check=True).stdout
        assert matches(shown, printed), f"$ {command}\nshows\n{shown}\nbut prints\n{printed}"
