"""Two processes train together: one of them runs out of memory, gets a signal, or says that the time is up."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.forks import PYTHON
from transformer_mt.data.batching import Batches
from transformer_mt.data.planning import BatchSize, Cursor
from transformer_mt.data.prepare import prepare
from transformer_mt.runtime.distributed import World

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TRAINER = """
import os, signal, sys, time
from pathlib import Path

import torch
from transformer_mt.config.load import load_config
from transformer_mt.data.prepare import prepare
from transformer_mt.errors import TmtError
from transformer_mt.reporting.events import Events
from transformer_mt.runtime.device import set_up
from transformer_mt.runtime.distributed import World
from transformer_mt.runtime.joining import join_world
from transformer_mt.training.run_directory import RunDirectory
from transformer_mt.training.run_facts import facts_of
from transformer_mt.workflows.train import TrainingJob

folder = Path(sys.argv[1])
exchanged = 0

def counted(sums):
    def sums_and_count(self, values):
        global exchanged
        exchanged += 1
        return sums(self, values)
    return sums_and_count

World.sums = counted(World.sums)

def new_trainer(world, name, **settings):
    config = load_config(folder / "numbers.yaml")
    config = config.model_copy(update={"training": config.training.model_copy(update=settings)})
    prepared, directory = world.from_main(lambda: prepare(config)), RunDirectory(folder / name)
    world.from_main(lambda: (directory.open(config, facts_of([])), directory.close()) and None)
    machine = set_up(config.runtime, world)
    return TrainingJob(config, prepared, directory, machine, Events(folder / name, not world.is_main)).trainer()

def fail_above(trainer, most, steps=range(10**6)):
    '''Out of memory for more than `most` source positions in these steps; returns the sizes that fitted.'''
    module = trainer.gradients.step.module
    forward, fitted = module.forward, []
    def limited(source_BS, *others):
        if source_BS.numel() > most and trainer.state.step in steps:
            raise torch.OutOfMemoryError("CUDA out of memory")
        fitted.append(source_BS.numel())
        return forward(source_BS, *others)
    module.forward = limited
    return fitted
"""


def run_two(folder: Path, work: str, timeout: float = 100) -> list[tuple[int, str, str]]:
    """Exit code, stdout and stderr of two processes that run `work(world)`, started as torchrun does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    group = {
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }
    environments = [{**os.environ, **group, "RANK": rank, "LOCAL_RANK": rank, "PYTHONPATH": str(ROOT)} for rank in "01"]
    environments[1]["PYTHONHASHSEED"] = "1"  # an order of sets of its own, as in two new Pythons
    code = f"{TRAINER}\n{work}\nwith join_world() as world:\n    work(world)\n"
    piped: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen([*PYTHON, "-c", code, str(folder)], env=one, **piped))
            for one in environments
        ]
        stack.callback(lambda: [process.kill() for process in processes])
        ended = [process.communicate(timeout=timeout) for process in processes]
    return [(process.returncode, *texts) for process, texts in zip(processes, ended, strict=True)]


def write_config(numbers: Any, folder: Path, **settings: Any) -> None:
    values = numbers.values(**settings)
    values["model"]["dropout"] = 0.0
    (folder / "numbers.yaml").write_text(json.dumps(values), encoding="utf-8")


OUT_OF_MEMORY = """
def work(world):
    whole = new_trainer(world, "whole", max_steps=12)
    whole.train()
    assert not whole.gradients.step.broadcast_buffers
    split = new_trainer(world, "split", max_steps=12)
    largest = max(sentences * source for sentences, source, _ in split.batches.shapes(1))
    fitted = fail_above(split, largest // 3) if world.rank == 1 else []
    split.train()
    for one, other in zip(whole.model.parameters(), split.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
    assert split.gradients.parts == whole.gradients.parts * 4 == 4
    assert max(fitted, default=0) <= largest // 3
    print(sum(float(one.detach().double().sum()) for one in split.model.parameters()))
    for name, steps in (("at once", range(9)), ("later", range(40, 99))):
        trainer = new_trainer(world, name, max_steps=60)
        if world.rank == 1:
            fail_above(trainer, 0, steps)
        try:
            trainer.train()
        except (TmtError, SystemExit) as error:
            print(name, error)
            if name == "later":
                raise
"""


def test_all_processes_split_their_batches_if_one_runs_out_of_memory(numbers: Any, tmp_path: Path):
    """If even a sentence does not fit, all end together. If an update needs more memory than a larger one before it,
    the failing process ends alone, and the other one says so: it was already waiting for the gradients.
    """
    write_config(
        numbers, tmp_path, epsilon=1e-3, accumulate=2, max_epochs=None, max_steps=99
    )  # epsilon: see accumulation
    (code, out, err), (other_code, other_out, other_err) = run_two(tmp_path, OUT_OF_MEMORY)
    assert (code, other_code) == (1, 1), err + other_err
    sums, *ended = out.splitlines()
    other_sums, *other_ended = other_out.splitlines()
    assert sums == other_sums, "both processes have the same weights"
    assert err.count("out of memory: each batch is now computed in 4 parts") >= 1
    assert "each batch is now computed" not in other_err
    assert (ended[0], other_ended[0]) == ("at once out of memory on the device", "at once 2")
    assert other_ended[1] == "later out of memory on the device"
    assert "process 0 of 2 has lost the others" in err


STOPPED = """
def work(world):
    for name, settings in (("clock", {"max_steps": None, "max_minutes": 0.01}), ("signal", {})):
        trainer = new_trainer(world, name, **settings)
        update, before, code = trainer.optimizer.update, exchanged, 0
        def slow(step, rate):
            if name == "signal" and world.rank == 1 and step == 30:
                os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
            update(step, rate)
        trainer.optimizer.update = slow
        try:
            trainer.train()
        except (TmtError, SystemExit) as error:
            code = getattr(error, "exit_code", None) or error.code
        print(code, trainer.state.step, trainer.run.checkpoints.steps()[-1], exchanged - before)
"""


def test_both_processes_stop_after_a_signal_for_one_and_when_the_time_is_up(numbers: Any, tmp_path: Path):
    write_config(numbers, tmp_path, max_steps=400, max_epochs=None, validate_every=10**6)
    done = run_two(tmp_path, STOPPED)
    assert [code for code, _, _ in done] == [0, 0], done
    assert done[0][1] == done[1][1], "both after the same update"
    clock, interrupted = ([int(number) for number in line.split()] for line in done[0][1].splitlines())
    code, step, saved, _ = clock
    assert code == 0
    assert saved == step
    code, step, saved, exchanged = interrupted
    assert code == 130
    assert 30 <= step <= 51, "they ask each other at most 20 updates later"
    assert saved == step
    assert exchanged < step, "they do not wait for each other in each update"


SAVED_BY_THE_CLOCK = """
def work(world):
    import transformer_mt.training.agreement as agreement
    agreement.SAVE_SECONDS = 0.0 if world.is_main else 10.0**6
    trainer = new_trainer(world, "clock", max_steps=60)
    before = exchanged
    trainer.train()
    print(len(trainer.state.interrupted), exchanged - before)
"""


def test_the_clock_of_the_main_process_decides_when_all_save(numbers: Any, tmp_path: Path):
    write_config(numbers, tmp_path, max_steps=60, max_epochs=None)
    (code, out, err), (other_code, other_out, other_err) = run_two(tmp_path, SAVED_BY_THE_CLOCK)
    assert (code, other_code) == (0, 0), err + other_err
    assert out == other_out
    saved, exchanged = (int(number) for number in out.split())
    assert 2 <= saved < 30, "at most one checkpoint for each question"
    assert exchanged < 60 + saved


@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_size_of_an_update_is_the_same_in_all_processes(numbers: Any, accumulate: int):
    """It follows from the plan: the sum over the batches that the processes get."""
    from transformer_mt.config.schema import Config

    store = prepare(Config.model_validate(numbers.values())).store("train")
    ranks = [Batches(store, BatchSize(tokens=98), 1, accumulate=accumulate, rank=rank, world=3) for rank in range(3)]
    for number in range(ranks[0].updates(1)):
        batches = [batch for rank in ranks for batch in rank.update(1, number)]
        cursor = Cursor(1, 0, number * ranks[0].of_update)
        size = ranks[0].at(cursor).size
        assert all(rank.at(cursor).size == size for rank in ranks)
        assert size.tokens == sum(batch.tokens for batch in batches)
        assert size.source == max(batch.source_BS.numel() for batch in batches)
        assert size.target == max(batch.target_out_BT.numel() for batch in batches)


def test_averaging_alone_changes_nothing():
    tensors = [torch.randn(3), torch.randn(2, 2)]
    World().average(tensors)
    assert [tuple(one.shape) for one in tensors] == [(3,), (2, 2)]
