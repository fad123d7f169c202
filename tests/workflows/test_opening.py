"""What the user is told when a run is started again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.training.test_run_directory import FILES, config_of
from transformer_mt.training.run_directory import RunDirectory
from transformer_mt.training.run_facts import facts_of
from transformer_mt.workflows.opening import open_run


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    directory = RunDirectory(tmp_path / "runs" / "one")
    yield directory
    directory.close()


def save(run: RunDirectory, step: int) -> None:
    run.checkpoints.path(step).mkdir(parents=True)


def test_a_run_that_saved_nothing_says_that_it_begins_again(run: RunDirectory):
    assert open_run(run, config_of(), facts_of(FILES)) == []
    (note,) = open_run(run, config_of(), facts_of(FILES))
    assert note == "note       an earlier start of this run saved nothing; it begins again"
    save(run, 5)
    assert open_run(run, config_of(), facts_of(FILES)) == []
    (moved,) = open_run(run, config_of(), facts_of(FILES), fresh=True)
    assert moved.startswith("previous run moved to ")


def test_other_steps_of_validations_are_noted(run: RunDirectory):
    open_run(run, config_of(), facts_of(FILES))
    save(run, 5)
    changed, note = open_run(run, config_of(validate_every=500), facts_of(FILES))
    assert changed == "changed since the run started (old | new): training.validate_every: None | 500"
    assert note.startswith("validations come at other steps now: training.patience and the best checkpoint")


def facts(git: str = "d3efdf6", processes: int = 1, **packages: str) -> dict[str, Any]:
    """Those of a start with this code."""
    own = facts_of(FILES, processes=processes)
    return {**own, "git": git, "packages": {**own["packages"], **packages}}


def test_other_code_is_noted_when_a_run_goes_on(run: RunDirectory):
    open_run(run, config_of(), facts("0000000", torch="2.11.0"))
    assert len(open_run(run, config_of(), facts(torch="2.12.0"))) == 1, "it begins again, so nothing is mixed"
    save(run, 5)
    assert open_run(run, config_of(), facts(torch="2.12.0")) == []
    note = "note       goes on with other code than it began with: "
    changed = [f"{note}git d3efdf6 -> d3efdf6+changes, torch 2.12.0 -> 2.13.0"]
    for _ in range(2):
        assert open_run(run, config_of(), facts("d3efdf6+changes", torch="2.13.0")) == changed
    assert open_run(run, config_of(), facts(torch="2.12.0")) == []


def test_unknown_code_is_not_other_code(run: RunDirectory):
    open_run(run, config_of(), facts(spacy="not installed"))
    save(run, 5)
    assert open_run(run, config_of(), facts("none", spacy="3.8.0")) == []
    (run.folder / "run.json").write_text('[{"packages": 3}]', encoding="utf-8")
    assert open_run(run, config_of(), facts()) == []


def test_the_commit_is_that_of_the_package_not_of_a_project_that_it_is_installed_in(tmp_path: Path):
    if shutil.which("git") is None:
        pytest.skip("needs git")
    root = Path(__file__).parents[2]
    installed = tmp_path / "venv"
    shutil.copytree(root / "transformer_mt", installed / "transformer_mt")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "a project"]):
        subprocess.run([*git, *words], check=True)
    code = "from transformer_mt.training.run_facts import facts_of; print(facts_of([])['git'])"
    for files, described in ((".gitignore", "none"), ("venv", "known")):
        (tmp_path / ".gitignore").touch()
        subprocess.run([*git, "add", files], check=True)
        done = subprocess.run([sys.executable, "-c", code], cwd=installed, capture_output=True, text=True, check=True)
        assert (done.stdout.strip() == "none") == (described == "none")
