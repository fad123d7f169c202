"""The README is held to the program: its reference is the schema's, and its commands and files exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line.removeprefix("$ ").partition("   #")[0].strip()
    for block in re.findall(r"```(?:console|sh|bash)?\n(.*?)```", README, re.S)
    for line in block.splitlines()
    if line.startswith(("tmt ", "$ tmt "))
]


def _update_readme() -> object:
    spec = importlib.util.spec_from_file_location("update_readme", ROOT / "scripts" / "update_readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_that_of_the_schema() -> None:
    assert _update_readme().updated(README) == README, "run: python scripts/update_readme.py"  # type: ignore[attr-defined]


def test_there_are_commands_to_check() -> None:
    assert len(COMMANDS) >= 10


@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_a_command_of_the_readme_has_only_options_that_exist(command: str) -> None:
    from importlib import import_module

    import typer

    words = [word for word in shlex.split(command.split(" > ")[0].split(" | ")[0].split(" < ")[0]) if word != "..."]
    name, given = words[1], [word.partition("=")[0] for word in words[2:] if word.startswith("-") and word != "-"]
    app = typer.Typer()
    app.command(name)(getattr(import_module(f"transformer_mt.cli.{name}"), name))
    options = {option for parameter in typer.main.get_command(app).params for option in parameter.opts}
    assert set(given) <= options | {"-h", "--help"}, f"unknown in `{command}`"


@pytest.mark.parametrize("name", sorted(set(re.findall(r"(?:configs|scripts)/[A-Za-z0-9_./-]+\w", README))))
def test_a_file_named_in_the_readme_exists(name: str) -> None:
    assert (ROOT / name).exists()


@pytest.mark.parametrize("image", re.findall(r"!\[[^]]*\]\(([^)]+)\)", README))
def test_a_picture_of_the_readme_exists(image: str) -> None:
    assert (ROOT / image).stat().st_size > 5_000
