"""First mistakes on the command line: the message says what to type instead."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from transformer_mt.cli import main
from transformer_mt.reporting.program import NAMES

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["train", "quickstart"], "Name the config with --config:  tmt train --config my.yaml"),
        (["prepare", "my.yaml"], "Name the config with --config:  tmt prepare --config my.yaml"),
        (["train", "--config", "c.yaml", "--set", "seed=1", "name=b"], "Give --set before each KEY=VALUE:"),
        (["train", "--config=c.yaml", "seed=2"], "Give --set before each KEY=VALUE:"),
        (["init", "files", "--data", "a.tsv", "b.tsv"], "Give --data before each file, or a folder with all of them:"),
        (["init", "--data", "a.tsv", "pyproject.toml"], "tmt init files --data FILE --data FILE"),
        (["train", "-c", "c.yaml", "d.yaml"], "Error: Got unexpected extra argument(s) (d.yaml)"),
        (["train"], "To write one to start from:  tmt init quickstart"),
        (["train", "--cofnig", "c.yaml"], "Error: No such option: --cofnig (Possible options: --config)"),
        (["tarin"], "Error: No such command 'tarin'. Did you mean 'train'?"),
        (["xxxxxxxx"], "convert, export."),
        (["plot", "--theme", "blue"], "Error: Invalid value for '--theme': 'blue' is not one of 'light', 'dark'."),
        (["my.yaml"], "To train with a config:  tmt train --config my.yaml"),
        (["translate", "-i", "a.txt", "--input=b.txt"], "Give --input once: it takes one value."),
        (["export", "--model", "a", "-m", "b", "-o", "c"], "Give --model once: it takes one value."),
        (["train", "-c", "a.yaml", "-c", "b.yaml"], "Give --config once: it takes one value."),
        (["train", "--run-dir", "a", "--run-dir", "b", "-c", "c.yaml"], "Check the path"),  # of these, the last counts
        (["init"], "    classics/revisited-de-en "),
        (["download", "wmt"], "Use `tmt download multi30k`."),
        ([], '  tmt translate "..."'),
    ],
)
def test_mistakes_get_a_remedy(arguments: list[str], remedy: str) -> None:
    command = [sys.executable, "-m", "transformer_mt.cli.main", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert remedy in done.stderr.splitlines()[-1]


def test_ctrl_c_inside_a_callback_of_the_memory_management_ends_the_command() -> None:
    """Python cannot raise it there: imports have many such callbacks."""
    code = """
import signal, time, weakref
from transformer_mt.cli import main

class Thing: pass

def add_commands(first):
    thing = Thing()
    reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
    del thing
    last = time.monotonic() + 15
    while time.monotonic() < last:
        pass

main.add_commands = add_commands
main.run()
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=20
    )
    assert (done.returncode, done.stderr) == (130, "tmt: interrupted\n")


@pytest.mark.parametrize("command", ["translate", "score", "export", "serve"])
def test_torchrun_is_refused_where_each_process_would_do_all(command: str, monkeypatch, capsys) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main.main([command, "--model", "runs/none"]) == 2
    assert f"tmt {command} runs in one process" in capsys.readouterr().err


def test_commands_of_one_process_do_not_pile_up() -> None:
    for command in ("plot", "score", "plot"):
        assert main.main([command, "--help"]) == 0
    assert [one.name for one in main.app.registered_commands] == ["plot"]


def test_two_scripts_are_installed() -> None:
    """Another package on PyPI installs a `tmt` too."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = project.split("[project.scripts]\n")[1].split("\n[")[0]
    assert dict(re.findall(r'^(\S+) = "(.*?)"', section, re.MULTILINE)) == dict.fromkeys(
        NAMES, "transformer_mt.cli.main:run"
    )


@pytest.mark.parametrize(
    "error",
    [MemoryError(), torch.OutOfMemoryError("tried to allocate 2 GiB"), RuntimeError("CUDA error: out of memory")],
)
def test_memory_that_runs_out_anywhere_is_one_message(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "add_commands", Mock(side_effect=error))
    assert main.main(["average"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("tmt: out of memory\n")
    assert "training.batch_tokens" in told


def test_a_fault_of_the_program_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "add_commands", Mock(side_effect=RuntimeError("sizes differ")))
    with pytest.raises(RuntimeError, match="sizes differ"):
        main.main(["average"])
