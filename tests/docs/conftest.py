"""Pages as the tests see them: fenced blocks, commands and examples, each a parameter of the tests that ask for it.

A test with an argument named `page`, `command`, `yaml_block`, `python_block` or `example` runs once for each of them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from filelock import FileLock

from tests.forks import PYTHON, executable

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(
    r"^(?P<run>[ ]*<!-- run -->\n)?(?P<indent>[ ]*)```(?P<kind>[\w-]*)[^\n]*\n(?P<text>.*?)^(?P=indent)```[ ]*$",
    re.M | re.S,
)
_COMMAND = re.compile(r"(?:^|[\s/(])tmt\s|python\S* -m transformer_mt(?:\.cli\.main)?\s|\sscripts/\w+\.py")
SHELL = {"", "console", "sh", "bash", "shell"}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    kind: the word after the fence; run: whether a test executes it.
    """

    page: Path
    line: int
    kind: str
    text: str
    run: bool

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def commands(self) -> Iterator[tuple[str, str]]:
        """Each command of a console block after its `$ `, with the lines that continue it, and the output below it."""
        for part in re.split(r"^\$ ", self.text, flags=re.M)[1:]:
            lines = part.splitlines()
            size = next((number for number, line in enumerate(lines, 1) if not line.endswith("\\")), len(lines))
            yield "\n".join(lines[:size]), "\n".join(lines[size:])


@cache
def pages() -> tuple[Path, ...]:
    roots = [ROOT / name for name in ("README.md", "README.ko.md", "CONTRIBUTING.md")]
    return (*(page for page in roots if page.exists()), *sorted((ROOT / "docs").rglob("*.md")))


@cache
def blocks() -> tuple[Block, ...]:
    found = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for match in _FENCE.finditer(text):
            indent = match["indent"]
            inside = "".join(line.removeprefix(indent) for line in match["text"].splitlines(keepends=True))
            line = text.count("\n", 0, match.start("kind")) + 1
            found.append(Block(page, line, match["kind"], inside, bool(match["run"])))
    return tuple(found)


def _commands() -> Iterator[tuple[str, str]]:
    """Place and text of every command line that names the program or a Python script of ours."""
    for block in blocks():
        if block.kind not in SHELL:
            continue
        lines = block.text.replace("\\\n", " ").splitlines()
        for line in lines:
            prompt, typed = line.startswith("$ "), line.removeprefix("$ ")
            bare = block.kind in {"sh", "bash", "shell"} or typed.startswith("tmt ")
            if (prompt or bare) and not typed.startswith("#") and _COMMAND.search(typed):
                yield block.place, typed
    for page in pages():
        prose = _FENCE.sub("", page.read_text(encoding="utf-8")).replace("\\", "")  # without the escapes of Markdown
        for span in re.findall(r"`([^`\n]+)`", prose):
            if re.match(r"tmt [a-z]+ ", span):
                yield str(page.relative_to(ROOT)), span


@cache
def commands() -> tuple[tuple[str, str], ...]:
    return tuple({typed: (place, typed) for place, typed in _commands()}.values())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    asked = set(metafunc.fixturenames)
    if "page" in asked:
        metafunc.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
    if "command" in asked:
        metafunc.parametrize("command", [typed for _, typed in commands()], ids=[place for place, _ in commands()])
    for name, chosen in (
        ("yaml_block", [block for block in blocks() if block.kind in ("yaml", "yml")]),
        ("python_block", [block for block in blocks() if block.kind == "python"]),
        ("example", [block for block in blocks() if block.run]),
    ):
        if name in asked:
            metafunc.parametrize(name, chosen, ids=lambda block: block.place)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Environment variables in which `tmt`, `transformer-mt` and `python` are those of this checkout."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, program in (("tmt", '-m transformer_mt.cli.main "$@"'), ("python", '"$@"')):
        (tools / name).write_text(f'#!/bin/sh\nexec "{executable()}" {program}\n')
        (tools / name).chmod(0o755)
    (tools / "transformer-mt").symlink_to(tools / "tmt")
    settings = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    return {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", **settings}


@pytest.fixture
def run(environment: dict[str, str]) -> Callable[..., tuple[int, str]]:
    """Runs a command in a folder; returns its exit code and what it wrote on stdout and stderr."""

    def run(command: list[str], folder: Path, **more: str) -> tuple[int, str]:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**environment, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        return done.returncode, done.stdout

    return run


@pytest.fixture
def all_blocks() -> tuple[Block, ...]:
    return blocks()


@pytest.fixture(scope="session")
def quickstart_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of configs/quickstart.yaml, which the examples of the pages use; trained here for 3 epochs, not 10.

    TMT_QUICKSTART=FOLDER names one that is trained already.
    """
    if named := os.environ.get("TMT_QUICKSTART"):
        return Path(named).resolve()
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # one training for all processes of the tests
    with FileLock(base / "quickstart.lock"):
        run = base / "quickstart-trained" / "runs" / "quickstart"
        if not (run / "model" / "scores.json").is_file():
            _train_quickstart(base / "quickstart-trained")
    return run


def _train_quickstart(folder: Path) -> None:
    settings = ["training.max_epochs=3", "training.optimizer=muon", "training.warmup_steps=200"]  # learns it sooner
    settings += ["training.bleu_sentences=0", "runtime.threads=1"]  # the other core has other tests
    command = [*PYTHON, "-m", "transformer_mt.cli.main", "train", "--config", "configs/quickstart.yaml"]
    command += ["--device", "cpu", *(word for setting in settings for word in ("--set", setting))]
    shutil.copytree(ROOT / "configs", folder / "configs", dirs_exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
