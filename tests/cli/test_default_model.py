"""Which model a command uses if none is given, and what is said about it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from transformer_mt.decoding.finding import find_model, newest_model
from transformer_mt.errors import TmtError
from transformer_mt.workflows.models import default_model, find_models


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def model_of(run: str, written: float = 1000.0) -> Path:
    """A run with a model; written: when its weights were."""
    weights = Path("runs", run, "model", "model.safetensors")
    weights.parent.mkdir(parents=True, exist_ok=True)
    weights.touch()
    os.utime(weights, (written, written))
    return weights.parent


def record(run: str, finished: float | None) -> None:
    """Write run.json, as a training does. finished: when it ended; None: not yet."""
    start: dict[str, object] = {"started": "2026-11-23 20:00:00"}
    if finished is not None:
        start["finished"] = {"time": finished, "step": 9, "run": run, "model": {}}
    Path("runs", run).mkdir(parents=True, exist_ok=True)
    Path("runs", run, "run.json").write_text(json.dumps([start]), encoding="utf-8")


def test_without_records_the_newest_weights_count():
    """Models that were copied here, without their runs."""
    for name, written in (("first", 100), ("last", 300), ("second", 200)):
        model_of(name, written)
    assert find_model(None) == Path("runs", "last", "model")
    assert find_model(Path("runs", "second")) == Path("runs", "second", "model")


def test_a_run_that_may_not_be_read_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Permissions do not stop an administrator, as whom tests may run."""
    model, closed = model_of("old"), Path("runs", "new")
    (closed / "model").mkdir(parents=True)
    monkeypatch.setattr("transformer_mt.decoding.finding.os.access", lambda path, _: path != closed)
    exists = Path.exists

    def refused(path: Path) -> bool:
        if path.parent == closed:
            raise PermissionError(path)
        return exists(path)

    monkeypatch.setattr(Path, "exists", refused)
    assert default_model() == model
    assert capsys.readouterr().err == "tmt: model runs/old; no permission to read runs/new\n"
    shutil.rmtree("runs/old")
    with pytest.raises(TmtError, match="no permission to read this folder"):
        find_model(None)


def test_the_run_that_finished_last_although_others_were_written_later():
    """`tmt average` and `cp` change the times of files."""
    for name, finished, written in (("first", 1e9, 9e9), ("last", 3e9, 3e9), ("second", 2e9, 8e9)):
        model_of(name, written)
        record(name, finished)
    assert newest_model() == Path("runs", "last", "model")


@pytest.mark.parametrize("recorded", [True, False])
def test_a_copy_is_not_newer_than_its_run(recorded: bool):
    model_of("zebra")
    if recorded:
        record("zebra", 1e9)
    else:  # as older versions wrote it
        metrics = [{"event": "finished", "step": 9, "time": 1e9}, {"event": "test", "step": 9}]
        lines = "".join(json.dumps(one) + "\n" for one in metrics)
        Path("runs", "zebra", "metrics.jsonl").write_text(lines, encoding="utf-8")
    copy = "a-copy" if recorded else "zebra-copy"
    shutil.copytree("runs/zebra", f"runs/{copy}")
    model_of(copy, 5e9)  # as after `tmt average`
    assert newest_model() == Path("runs", "zebra", "model")


def test_a_finished_run_that_is_started_again_does_not_finish_again():
    model_of("old")
    events = [("finished", 9, 1e9), ("test", 9, 1e9), ("finished", 9, 7e9)]
    lines = [json.dumps({"event": event, "step": step, "time": time}) for event, step, time in events]
    Path("runs", "old", "metrics.jsonl").write_text("\n".join([*lines, '{"event": "finished", "st']), encoding="utf-8")
    model_of("new")
    record("new", 2e9)
    assert newest_model() == Path("runs", "new", "model")


def test_a_damaged_record_is_passed_over():
    model_of("one", 1e9)
    record("one", 3e9)
    for damaged in ("{", "5", '[{"finished": 5}]', '[{"finished": {"time": "x"}}]', '["finished"]'):
        model_of("damaged", 9e9)
        Path("runs", "damaged", "run.json").write_text(damaged, encoding="utf-8")
        assert newest_model() == Path("runs", "one", "model")


def test_the_default_is_named_and_a_later_unfinished_run_too(capsys: pytest.CaptureFixture[str]):
    model_of("old")
    record("old", 1e9)
    assert find_models() == [Path("runs/old/model")]
    assert capsys.readouterr().err == "tmt: model runs/old\n"
    record("new", None)
    default_model()
    assert capsys.readouterr().err == "tmt: model runs/old; runs/new has not finished\n"
    assert find_models([Path("runs/old")]) == [Path("runs/old/model")]
    assert capsys.readouterr().err == "", "only a model that was not named is named"


@pytest.mark.parametrize("given", [None, Path("runs/new")])
def test_an_unfinished_run_is_named_with_what_to_do(given: Path | None):
    record("new", None)
    with pytest.raises(TmtError) as failure:
        find_model(given)
    assert failure.value.place == "runs/new"
    assert "config.yaml" not in str(failure.value)
    assert "it has no checkpoint yet" in failure.value.remedy
    Path("runs/new/checkpoints/step-0000007").mkdir(parents=True)
    with pytest.raises(TmtError, match="has") as failure:
        find_model(given)
    assert "finish it, or make a model of what it has learnt so far:  tmt average --run runs/new" in str(failure.value)
    model_of("new")  # by tmt average
    assert find_model(given) == Path("runs/new/model")
    model_of("done")
    record("done", 1e9)
    assert find_model(None) == Path("runs/done/model"), "a finished run comes first"
