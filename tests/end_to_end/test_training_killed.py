"""A run that is killed at any moment and started again ends with the same model as a run that was never killed.

One program loads everything once and forks a process for each attempt, so that an attempt does not start Python again.
Each attempt reports its updates through a pipe. The parent kills it after a random number of updates and a random time,
or the attempt kills itself at a critical moment.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.forks import PYTHON
from transformer_mt.reporting.history import read_history

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

PROGRAM = """
import json, os, random, signal, sys, time
from pathlib import Path

from transformer_mt.cli import main
import matplotlib.backends.backend_agg, matplotlib.figure, sacrebleu, torch._dynamo  # imported once for all attempts
import transformer_mt.data.prepare, transformer_mt.evaluation.scores, transformer_mt.training.trainer
import transformer_mt.text.vocabulary, transformer_mt.reporting.canvas
import transformer_mt.decoding.model_directory as model_directory
import transformer_mt.training.checkpoint as checkpoint
import transformer_mt.training.run_directory as run_directory
import transformer_mt.training.validation as validation
import transformer_mt.files.replace as replace
import transformer_mt.workflows.candidates as candidates
import transformer_mt.workflows.train
from transformer_mt.training.optimizer import Optimizer

order = json.loads(sys.argv[1])
generator = random.Random(order["seed"])


def die_at(module, name, call):
    # the process kills itself at the n-th call of a function
    own, calls = getattr(module, name), iter(range(1, 10**6))

    def killing(*arguments, **options):
        if next(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return own(*arguments, **options)

    setattr(module, name, killing)


CRITICAL = {
    "when the folder has its first file": (run_directory, "replace_text", 2),
    "between two files of a checkpoint": (replace, "_sync", 4 + 2),  # 4: two files of the run, and their folder
    "before a checkpoint gets its name": (replace, "_sync", 4 + 6),
    "after a checkpoint got its name": (replace, "_sync", 4 + 7),
    "before old checkpoints are removed": (checkpoint.Checkpoints, "keep", 2),
    "while validating": (validation, "mean_nll", 1),
    "while the candidates are compared": (candidates, "load_weights", 2),
    "while the model is written": (model_directory, "save_weights", 1),
}


def attempt(arguments, critical, pipe, log):
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1), os.dup2(output, 2)
    update = Optimizer.update

    def reporting(self, step, rate):
        os.write(pipe, b".")
        update(self, step, rate)

    Optimizer.update = reporting
    if critical:
        die_at(*CRITICAL[critical])
    os._exit(main.main(arguments))


def start(run, critical=None):
    reading, writing = os.pipe()
    arguments = ["train", "--config", order["config"], "--run-dir", str(Path(order["folder"]) / run)]
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        attempt(arguments, critical, writing, os.path.join(order["folder"], f"{run}.output"))
    os.close(writing)
    return pid, reading


def finish(pid, reading):
    while os.read(reading, 4096):
        pass
    os.close(reading)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def hit(kind):
    pid, reading = start("hit")
    updates = generator.randint(1, 10)
    while updates and os.read(reading, 1):
        updates -= 1
    time.sleep(generator.uniform(0.0, 0.04))
    os.kill(pid, kind)
    return finish(pid, reading)


whole = finish(*start("whole"))
killed = []
for critical in [*list(CRITICAL)[:-2], None, None, None, None, None, None, *list(CRITICAL)[-2:]]:
    killed.append(finish(*start("hit", critical)) if critical else hit(signal.SIGKILL))
    if len(killed) == 7:
        interrupted = [hit(signal.SIGTERM), hit(signal.SIGINT)]
resumed = finish(*start("hit"))
print(json.dumps({"whole": whole, "killed": killed, "interrupted": interrupted, "resumed": resumed}))
"""


@pytest.fixture(scope="module")
def runs(numbers: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("killed")
    options = {"max_epochs": 11, "checkpoint_every": 3, "ema_decay": 0.9, "accumulate": 1}
    config = numbers.file(folder, **options, bleu_sentences=4, average="last", average_checkpoints=2)
    order = {"config": str(config), "folder": str(folder), "seed": 11}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [*PYTHON, "-c", PROGRAM, json.dumps(order)],
        env=environment, cwd=ROOT, capture_output=True, text=True, timeout=170,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_it_was_killed_fourteen_times_and_interrupted_twice(runs: tuple[Path, dict[str, Any]]):
    _, codes = runs
    assert (codes["whole"], codes["resumed"]) == (0, 0)
    assert codes["killed"] == [-9] * 14
    assert codes["interrupted"] == [130, 130]


def test_the_model_is_the_same_to_the_bit(runs: tuple[Path, dict[str, Any]]):
    folder, _ = runs
    models = [folder / run / "model" / "model.safetensors" for run in ("whole", "hit")]
    assert len({hashlib.sha256(model.read_bytes()).hexdigest() for model in models}) == 1


def test_metrics_and_log_were_appended_to(runs: tuple[Path, dict[str, Any]]):
    folder, _ = runs
    curves = {}
    for run in ("whole", "hit"):
        history = read_history(folder / run / "metrics.jsonl")
        curves[run] = [(r["step"], r["loss"], r["bleu"]) for r in history if r["event"] == "validation"]
    assert curves["hit"] == curves["whole"]
    assert len(curves["hit"]) == 11
    events = [json.loads(line)["event"] for line in (folder / "hit" / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert events.count("resumed") > 8
    log = (folder / "hit" / "train.log").read_text(encoding="utf-8")
    assert log.count("resumed at step") == events.count("resumed")
    assert len(json.loads((folder / "hit" / "run.json").read_text(encoding="utf-8"))) == 17  # every start


def test_the_same_candidate_is_shipped(runs: tuple[Path, dict[str, Any]]):
    folder, _ = runs
    shipped = {}
    for run in ("whole", "hit"):
        *_, last = json.loads((folder / run / "run.json").read_text(encoding="utf-8"))
        shipped[run] = last["finished"]["model"]
        (event,) = (r for r in read_history(folder / run / "metrics.jsonl") if r["event"] == "finished")
        assert event["shipped"] == shipped[run]
    assert shipped["hit"] == shipped["whole"]
    names = [name for one in shipped["hit"]["compared"] for name in one["names"]]
    assert sorted(names) == ["best", "last", "mean"]


def test_it_reports_what_it_does_and_never_shows_a_traceback(runs: tuple[Path, dict[str, Any]]):
    folder, _ = runs
    output = (folder / "hit.output").read_text(encoding="utf-8")
    assert "Traceback" not in output
    assert output.count("everything is saved in") == 2
    assert output.count("Run the same command to continue from there") == 2
    assert not {"\r", "\x1b"} & set(output)


def test_nothing_half_written_is_left(runs: tuple[Path, dict[str, Any]]):
    folder, _ = runs
    left = [path for path in (folder / "hit").rglob("*") if path.name.endswith((".new", ".old"))]
    assert not left
    assert len(list((folder / "hit" / "checkpoints").iterdir())) == len(
        list((folder / "whole" / "checkpoints").iterdir())
    )
