"""Shell completion, as bash asks for it, and the names under which the program can be called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from transformer_mt.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="this system has no bash")
PRESS_TAB = """
eval "$(cat completion.sh)"
function=$(complete -p {name} | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
"$function" {name}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with configs, a finished run, an unfinished one, and the program under each of its names."""
    for file in ("a.yaml", "notes.txt", "configs/b.yaml", "configs/deep/c.yml", ".hidden/d.yaml"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    for file in ("done/run.json", "done/model/model.safetensors", "going/run.json"):
        (tmp_path / "runs" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "runs" / file).touch()
    for name in ("tmt", "transformer-mt"):
        script = tmp_path / "bin" / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(f"#!{sys.executable}\nfrom transformer_mt.cli.main import run\nrun()\n")
        script.chmod(0o755)
    return tmp_path


def run(place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(place / "home"),
    }
    (place / "home").mkdir(exist_ok=True)
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=60, check=False)


def press_tab(place: Path, line: str) -> list[str]:
    """What bash offers after `line`: its script is installed, and its function called as bash does."""
    assert BASH is not None
    name, _, _ = line.partition(" ")
    script = run(place, BASH, "--norc", "-c", f"{name} --show-completion > completion.sh; cat completion.sh")
    assert script.returncode == 0, script.stderr
    words = " ".join(f"'{word}'" for word in line.split(" "))
    done = run(place, BASH, "--norc", "-c", PRESS_TAB.format(name=name, words=words))
    assert done.stderr == ""
    return done.stdout.split()


@needs_bash
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tmt ", list(COMMANDS)),
        ("tmt tra", ["train", "translate"]),
        ("tmt train --fr", ["--fresh"]),
        ("tmt train --config ", ["a.yaml", "configs/b.yaml", "configs/deep/c.yml"]),
        ("tmt train -c configs/", ["configs/b.yaml", "configs/deep/c.yml"]),
        ("tmt inspect -c ./a", ["./a.yaml"]),
        ("tmt train --config a.yaml --device c", ["cpu", "cuda"]),
        ("tmt translate --model ", ["runs/done"]),
        ("transformer-mt evaluate -m runs/d", ["runs/done"]),
        ("tmt average --run runs/", ["runs/done", "runs/going"]),
        ("tmt translate --engine c", ["ctranslate2"]),
        ("tmt translate --utility ", ["chrf", "bleu"]),
        ("tmt export --quantization int8_f", ["int8_float32", "int8_float16"]),
        ("tmt download ", ["multi30k"]),
        ("tmt init multi", ["multi30k-de-en", "multi30k-en-de", "multi30k-en-de-dropout"]),
        ("tmt translate --input ", []),  # bash offers files
        ("tmt --version ", []),
        ("tmt --install-completion ", list(COMMANDS)),
    ],
)
def test_tab_in_bash(place: Path, line: str, offered: list[str]) -> None:
    assert press_tab(place, line) == offered
    assert not (place / "home" / ".bashrc").exists(), "Tab changes nothing"


@needs_bash
def test_the_completion_is_installed_for_the_shell_that_runs_the_command(place: Path) -> None:
    done = run(place, str(BASH), "--norc", "-c", "transformer-mt --install-completion; true")
    assert done.stdout == ""
    file = place / "home" / ".bash_completions" / "transformer-mt.sh"
    assert str(file) in done.stderr
    assert "_TRANSFORMER_MT_COMPLETE" in file.read_text(encoding="utf-8")
    assert str(file) in (place / "home" / ".bashrc").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--install-completion", "--show-completion"])
def test_an_unknown_shell_is_an_error(option: str, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    from transformer_mt.cli.main import main

    monkeypatch.setattr("typer._completion_shared._get_shell_name", lambda: None)
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: None)
    assert main([option]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert "completion is not available for this shell\n  Start the command from bash, zsh" in error


def test_completing_loads_no_torch(place: Path) -> None:
    look = (
        "import os, sys; sys.argv = ['tmt']; os.environ |= {'COMP_WORDS': sys.stdin.read(), 'COMP_CWORD': '3',"
        " '_TMT_COMPLETE': 'complete_bash'}; from transformer_mt.cli.main import main;"
        " assert main([]) == 0; print('torch' in sys.modules)"
    )
    for line in ("tmt translate --model", "tmt train --config", "tmt export --quantization", "tmt translate --device"):
        done = subprocess.run(
            [sys.executable, "-c", look],
            input=line,
            cwd=place,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        *offered, torch_is_loaded = done.stdout.split()
        assert offered, done.stderr
        assert torch_is_loaded == "False"


@pytest.mark.parametrize("name", ["tmt", "transformer-mt", "python -m transformer_mt"])
def test_messages_name_the_program_as_it_was_called(place: Path, name: str) -> None:
    start = [sys.executable, "-m", "transformer_mt"] if " " in name else [name]
    shown = run(place, *start, "train", "--help")
    assert shown.stdout.startswith(f"Usage: {name} train [OPTIONS]\n")
    missing = run(place, *start, "train")
    assert missing.returncode == 2
    assert missing.stdout == ""
    assert f"Usage: {name} train" in missing.stderr
    assert f"  Name the config with --config:  {name} train --config my.yaml\n" in missing.stderr
    failed = run(place, *start, "translate", "--model", "runs/going", "x")
    assert failed.returncode == 2
    written = run(place, *start, "init", "files", "-o", "my files.yaml")
    assert written.stderr == f"Wrote my files.yaml. Check it, then:  {name} train --config 'my files.yaml'\n"


def test_a_remedy_names_the_program_as_it_was_called(place: Path) -> None:
    (place / "empty").mkdir()
    done = run(place, "sh", "-c", "cd empty && transformer-mt translate hello")
    assert done.returncode == 2
    assert done.stderr.startswith("tmt: no finished run")
    assert "  Train one:  transformer-mt train --config" in done.stderr
