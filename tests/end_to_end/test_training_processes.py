"""`tmt train` under torchrun: two processes compute the same as one; after a killed process the run resumes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.forks import executable
from transformer_mt.cli.train import train
from transformer_mt.errors import TmtError
from transformer_mt.reporting.history import points, read_history

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DETERMINISTIC = ["model.dropout=0.0", "training.epsilon=1.0e-6"]


def under_torchrun(config: Path, run: Path, *overrides: str) -> list[str]:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    settings = [part for override in (*DETERMINISTIC, *overrides) for part in ("--set", override)]
    return [
        *launch,
        "-m",
        "transformer_mt.cli.main",
        "train",
        "--config",
        str(config),
        "--run-dir",
        str(run),
        *settings,
    ]


@contextmanager
def started(command: list[str], python: str = "") -> Iterator[subprocess.Popen[str]]:
    own = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHON_EXEC": python or executable()}
    environment = {**os.environ, **own}
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT}
    with subprocess.Popen(command, env=environment, start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def finished(command: list[str], *python: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr. python: for the processes of torchrun."""
    with started(command, *python) as process:
        out, err = process.communicate(timeout=160)
    return process.returncode, out, err


def losses(run: Path) -> dict[str, list[float]]:
    history = read_history(run / "metrics.jsonl")
    return {event: points(history, event, "loss")[1] for event in ("step", "validation")}


@pytest.fixture(scope="module")
def together(numbers: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A folder with a run of two processes over 56 steps; stdout and stderr."""
    folder = tmp_path_factory.mktemp("together")
    settings = {"batch_tokens": 98, "accumulate": 1, "max_epochs": 4, "checkpoint_every": 4, "keep_last": 1}
    config = numbers.file(folder, **settings, bleu_sentences=39)
    code, out, err = finished(under_torchrun(config, folder / "two"), sys.executable)
    assert code == 0, err
    return folder, out, err


def test_two_processes_give_the_losses_of_one(together: tuple[Path, str, str]):
    """One process that accumulates two batches computes the same updates. The last update of an epoch is uneven."""
    folder, _, _ = together
    train(folder / "numbers.yaml", [*DETERMINISTIC, "training.accumulate=2"], folder / "one")
    two, one = losses(folder / "two"), losses(folder / "one")
    assert len(one["step"]) == 3, "means over 20 of the 56 updates each, although a checkpoint is saved every 4"
    assert two["step"] == pytest.approx(one["step"], abs=1e-5)
    assert two["validation"] == pytest.approx(one["validation"], abs=1e-5)
    bleu = [points(read_history(folder / name / "metrics.jsonl"), "validation", "bleu")[1] for name in ("two", "one")]
    assert bleu[1][-1] > 1
    assert bleu[0] == pytest.approx(bleu[1], abs=0.5)


def test_the_last_update_of_an_epoch_was_uneven(together: tuple[Path, str, str], numbers: Any):
    from transformer_mt.config.schema import Config
    from transformer_mt.data.batching import Batches
    from transformer_mt.data.planning import BatchSize
    from transformer_mt.data.prepare import prepare

    config = Config.model_validate(numbers.values(batch_tokens=98))
    plans = [
        len(Batches(prepare(config).store("train"), BatchSize(tokens=98), 1).plan(epoch).batches)
        for epoch in range(1, 5)
    ]
    assert any(plan % 2 for plan in plans)


def test_only_one_process_prints_and_writes(together: tuple[Path, str, str]):
    folder, out, err = together
    assert "2 processes" in err
    assert err.count("done       max_epochs 4 reached") == 1
    assert err.count("training pairs") == 1
    assert out.count("BLEU|") == 1
    events = [json.loads(line) for line in (folder / "two" / "metrics.jsonl").read_text("utf-8").splitlines()]
    steps = [event["step"] for event in events if event["event"] == "step"]
    assert steps == sorted(set(steps))
    assert len(json.loads((folder / "two" / "run.json").read_text(encoding="utf-8"))) == 1


def workers_of(parent: int) -> list[int]:
    children = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(pid) for pid in children.read_text(encoding="ascii").split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the processes in /proc")
def test_a_killed_process_ends_the_job_and_the_same_command_resumes(together: tuple[Path, str, str]):
    folder, _, _ = together
    config = folder / "numbers.yaml"
    command = under_torchrun(config, folder / "killed", "training.max_steps=400", "training.max_epochs=99")
    checkpoints = folder / "killed" / "checkpoints"
    with started(command) as process:
        wait_for(lambda: checkpoints.is_dir() and any(checkpoints.glob("step-*")), process)
        os.kill(workers_of(process.pid)[-1], signal.SIGKILL)
        _, err = process.communicate(timeout=100)
    assert process.returncode not in (0, None)
    assert "has lost the others: one of them has ended" in err
    kept = max(int(path.name.removeprefix("step-")) for path in checkpoints.glob("step-*"))
    code, _, err = finished(under_torchrun(config, folder / "killed", f"training.max_steps={kept + 2}"))
    assert code == 0, err
    assert f"resumed at step {kept:,} (epoch" in err
    assert f"max_steps {kept + 2:,} reached" in err


def wait_for(condition: Any, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_one_process_continues_a_run_of_two(together: tuple[Path, str, str], capfd):
    folder, _, _ = together
    train(folder / "numbers.yaml", [*DETERMINISTIC, "training.max_epochs=5"], folder / "two")
    err = capfd.readouterr().err
    assert "now 1 instead of 2 processes: each update takes 0.5 times the data" in err
    assert "times the data; training.accumulate=2 would keep it the same" in err
    assert "resumed at step" in err


def test_one_process_that_accumulates_goes_on_as_two_would(together: tuple[Path, str, str], capfd):
    """The positions in the plan stay: the losses are those of the run that two processes did not stop."""
    folder, _, _ = together
    code, _, err = finished(under_torchrun(folder / "numbers.yaml", folder / "fewer", "training.max_steps=20"))
    assert code == 0, err
    train(folder / "numbers.yaml", [*DETERMINISTIC, "training.accumulate=2"], folder / "fewer")
    err = capfd.readouterr().err
    assert "now 1 instead of 2 processes: each update takes as much data as before" in err
    assert "resumed at step 20 (epoch 2, 6 of 14 updates done)" in err
    one = losses(folder / "fewer")["validation"][-1]
    train(folder / "numbers.yaml", [*DETERMINISTIC, "training.accumulate=2"], folder / "alone")
    assert one == pytest.approx(losses(folder / "alone")["validation"][-1], abs=1e-5)
    with pytest.raises(TmtError, match=r"training.accumulate: 2 \| 3"):
        train(folder / "numbers.yaml", [*DETERMINISTIC, "training.accumulate=3"], folder / "fewer")


def test_an_error_is_printed_once(together: tuple[Path, str, str]):
    folder, _, _ = together
    code, _, err = finished(under_torchrun(folder / "numbers.yaml", folder / "two", "model.d_model=32"))
    assert code == 1  # of torchrun
    assert err.count("this folder contains a run with another config") == 1
    assert "exitcode  : 2" in err
    assert "transformer_mt/runtime" not in err  # no traceback of tmt
