"""What the pages show as output is what the program prints: blocks under `<!-- run -->` are executed and compared.

`...` stands for anything: within a line for characters, on a line alone for any number of lines. Below `print(...)` of
Python, comments hold the output. The model is that of the quickstart after 4 of its 10 epochs, trained once.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


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
def workplace(quickstart_run: Path, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder with configs, scripts and the model, and an environment in which `tmt` is this checkout's."""
    folder, tools = tmp_path / "folder", tmp_path / "tools"
    folder.mkdir()
    tools.mkdir()
    for name in ("configs", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(quickstart_run, folder / "runs" / "quickstart")
    for name, program in (("tmt", '-m transformer_mt.cli.main "$@"'), ("python", '"$@"')):
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {program}\n')
        (tools / name).chmod(0o755)
    (tools / "transformer-mt").symlink_to(tools / "tmt")
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    settings = {"PYTHONPATH": str(ROOT), "COLUMNS": "100", "OMP_NUM_THREADS": "1", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    return folder, {**os.environ, "PATH": path, **settings}


def _comments_below_print(code: str) -> Iterator[str]:
    showing = False
    for line in code.splitlines():
        showing = "print(" in line or (showing and line.startswith("#"))
        if showing and line.startswith("#"):
            yield line.removeprefix("#").removeprefix(" ")


def _output(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    return done.stdout


def test_an_example_prints_what_the_page_shows(example: Any, workplace: tuple[Path, dict[str, str]]) -> None:
    folder, environment = workplace
    if example.kind == "python":
        printed = _output([sys.executable, "-c", example.text], folder, environment)
        assert "Traceback" not in printed, printed
        shown = "\n".join(_comments_below_print(example.text))
        assert not shown or matches(shown, printed), f"{example.place} shows\n{shown}\nbut prints\n{printed}"
        return
    for command, shown in example.commands():
        printed = _output(["bash", "-c", command], folder, environment)
        assert matches(shown, printed), f"{example.place}: $ {command}\nshows\n{shown}\nbut prints\n{printed}"


def test_the_model_of_the_examples_has_learned_its_language(quickstart_run: Path) -> None:
    scores = json.loads((quickstart_run / "model" / "scores.json").read_text(encoding="utf-8"))
    assert scores["test"]["sentences"] == 1000
    assert scores["test"]["bleu"] > 85
