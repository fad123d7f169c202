"""What several machines say about each other, without the machines. tests/end_to_end has them."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest

from transformer_mt.config.schema import Config
from transformer_mt.data.contents import contents_of, different_parts
from transformer_mt.data.prepare import prepare
from transformer_mt.errors import TmtError
from transformer_mt.runtime.distributed import World
from transformer_mt.training.run_directory import Found, RunDirectory
from transformer_mt.training.run_facts import facts_of, launcher
from transformer_mt.workflows.hosts import (
    Program,
    _hold,
    _require_same_start,
    another_version,
    newer_than_first,
    program,
    require_torchrun,
    restart_notes,
    unlike_first,
)

NAMES = {0: "a", 4: "b", 8: "c"}
NONE, OTHER = Found(), Found(is_another=True)


@pytest.mark.parametrize(
    ("first", "others", "ahead"),
    [
        (NONE, [NONE, NONE], []),
        (Found("x", 8), [NONE, Found("x", 8)], []),
        (NONE, [Found("x", 8), NONE], [4]),
        (Found("x", 4), [Found("x", 8), Found("x", 6)], [4, 8]),
        (Found("x", 4), [Found("y", 8), NONE], []),  # another run is never taken if the first machine has one
        (NONE, [Found("x", 4), Found("y", 8)], [4, 8]),
        (OTHER, [Found("x", 4), NONE], []),
        (NONE, [OTHER, NONE], []),
    ],
)
def test_only_the_same_run_is_taken_from_another_machine(first: Found, others: list[Found], ahead: list[int]):
    assert list(newer_than_first(dict(zip(NAMES, [first, *others], strict=True)))) == ahead


def test_a_machine_that_lacks_the_run_is_named():
    at_start = unlike_first({0: NONE, 4: NONE, 8: OTHER}, NAMES)
    assert at_start == ["c has another run, which stays as it is; it gets the new state of a"]
    later = unlike_first({0: Found("x", 8), 4: NONE, 8: Found("x", 4)}, NAMES)
    gets = "it gets the state of a, of step 8"
    assert later == [f"b has no checkpoint of this run; {gets}", f"c has only a checkpoint of step 4; {gets}"]
    assert unlike_first({0: Found("x", 8), 4: Found("y", 9)}, NAMES) == [
        f"b has another run, which stays as it is; {gets}"
    ]
    assert unlike_first({0: Found("x", 8), 4: Found("x", 8)}, NAMES) == []


@pytest.mark.parametrize(
    ("starts", "problem"),
    [
        ([("a", 0, False), ("a", 0, False), ("b", 2, False), ("b", 2, False)], ""),
        ([("a", 0, True), ("b", 1, False)], "a process on a has --fresh (in Python: fresh=True), and one on b has not"),
        ([("a", 0, False), ("b", 1, True)], "a process on b has --fresh (in Python: fresh=True), and one on a has not"),
        ([("a", 0, False), ("b", 0, False)], "LOCAL_WORLD_SIZE counts processes of a and b as those of one machine"),
    ],
)
def test_machines_that_do_not_start_alike_are_refused(starts: list[tuple[str, int, bool]], problem: str):
    with pytest.raises(TmtError, match=re.escape(problem)) if problem else nullcontext():
        _require_same_start(starts, World(0, len(starts), 0, 1))


def test_a_run_that_is_being_trained_is_not_copied(tmp_path: Path):
    run, held = RunDirectory(tmp_path), ExitStack()
    run.lock()
    with held, pytest.raises(TmtError, match="another process is training here"):
        _hold(tmp_path, held)
    run.close()
    with held:
        _hold(tmp_path, held)
        with pytest.raises(TmtError, match="another process is training here"):
            run.lock()
    run.lock()
    run.close()


@pytest.mark.parametrize(
    ("variables", "refused"),
    [
        ({"SLURM_STEP_NUM_TASKS": "4"}, True),
        ({"OMPI_COMM_WORLD_SIZE": "2"}, True),
        ({"SLURM_STEP_NUM_TASKS": "4", "RANK": "0"}, False),
        ({"SLURM_STEP_NUM_TASKS": "1"}, False),
    ],
)
def test_tasks_of_a_scheduler_that_would_train_alone_are_refused(monkeypatch, variables: dict[str, str], refused: bool):
    for name in ("SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TmtError, match="only torchrun lets") if refused else nullcontext() as error:
        require_torchrun()
    assert error is None or "torchrun --nproc-per-node auto -m transformer_mt train" in error.value.remedy


def test_another_version_is_told_in_one_line():
    here = program()
    assert another_version([here, here]) == ""
    packages = {**here.packages, "torch": "2.1.0"}
    assert another_version([here, here, Program("c", here.files, packages)]).startswith("c runs torch 2.1.0, and ")
    assert "different source files" in another_version([here, Program("c", "0", here.packages)])
    spacy = {**here.packages, "spacy": "1"}  # matters only if the data differs
    assert another_version([here, Program("c", here.files, spacy)]) == ""


@pytest.mark.parametrize(
    ("restarts", "shares", "noted"), [("3", "True", True), ("3", "False", False), ("0", "True", False)]
)
def test_restarts_that_cannot_work_are_noted(monkeypatch: pytest.MonkeyPatch, restarts: str, shares: str, noted: bool):
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", restarts)
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", shares)
    assert any("export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1" in note for note in restart_notes()) == noted


def test_the_contents_of_prepared_data_do_not_depend_on_where_and_when(numbers: Any, tmp_path: Path):
    values = numbers.values()
    contents = []
    for name, workers in (("one", 1), ("two", 2)):
        values["data"].update(prepared=str(tmp_path / name), workers=workers)
        contents.append(contents_of(prepare(Config.model_validate(values))))
    assert contents[0] == contents[1]
    values["data"].update(prepared=str(tmp_path / "three"), max_length=7)
    other = contents_of(prepare(Config.model_validate(values)))
    settings, *ids = different_parts(contents[0], other)
    assert settings == "settings: data.max_length"
    assert ids[-1].startswith("ids: train/source.ids")


def test_torchrun_is_recognised_when_it_starts_its_processes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert launcher() == ""
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    one = launcher()
    assert launcher() == one != ""
    monkeypatch.setattr(os, "getppid", os.getpid)
    assert launcher() != one, "another parent"
    run = RunDirectory(tmp_path / "run")
    config = Config.model_validate(
        {
            "name": "x",
            "data": {"source": "en", "target": "de", "corpus": {"kind": "phrasebook"}},
            "tokenizer": {"kind": "character"},
            "training": {"max_epochs": 1},
        }
    )
    assert run.found(config) == NONE
    run.open(config, facts_of([], processes=2, launchers=[one]))
    run.close()
    assert run.was_started_by(["other", one])
    assert not run.was_started_by(["other"])
    before = run.found(config)
    assert before.step == -1
    run.open(config, facts_of([], processes=2, launchers=["other"]))
    run.close()
    assert run.found(config) == before, "each start of a run adds facts; the run stays the same"
    assert not run.was_started_by([one])
    other = config.model_copy(update={"seed": 99})
    assert run.found(other) == OTHER
