"""Processes that train together, and a single process."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.distributed import DistBackendError

from transformer_mt.errors import TmtError
from transformer_mt.runtime import joining
from transformer_mt.runtime.distributed import World
from transformer_mt.runtime.joining import join_world

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_a_single_process_does_not_communicate(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with join_world() as world:
        assert world == World(0, 1, 0)
        assert world.is_main
        assert world.sums([1, 2.5]) == [1, 2.5]
        assert world.gather("x") == ["x"]
        assert world.from_main(lambda: 7) == 7
        assert world.split_work([3, 1, 2], lambda items: [-item for item in items]) == [-3, -1, -2]
        module = torch.nn.Linear(2, 2)
        assert world.parallel(module, torch.device("cpu")) is module
        with pytest.raises(TmtError):
            world.exit_all(TmtError("stop"))


def test_local_ranks_are_read_from_the_environment(monkeypatch):
    for name, value in {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(joining, "_join", lambda world: None)
    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: None)
    with join_world() as world:
        assert world == World(rank=5, size=8, local_rank=1, local_size=4)


def two_processes(rank: int) -> dict[str, str]:
    """The environment variables of one of two processes on a machine."""
    return {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2"}


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"WORLD_SIZE": "two"}, "the environment variable WORLD_SIZE must be a whole number, not 'two'"),
        ({"RANK": ""}, "the environment variable RANK must be a whole number, not ''"),
        ({"LOCAL_WORLD_SIZE": ""}, "LOCAL_WORLD_SIZE must be a whole number"),  # else machines could count as one
        ({}, "torchrun sets is missing or wrong: .* MASTER_ADDR expected, but not set"),
        ({"MASTER_ADDR": "nowhere.invalid", "MASTER_PORT": "1"}, "does not find the machine 'nowhere.invalid'"),
    ],
)
def test_half_an_environment_of_torchrun_is_refused(monkeypatch, variables: dict[str, str], message: str):
    monkeypatch.delenv("MASTER_PORT", raising=False)
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    for name, value in (two_processes(0) | variables).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TmtError, match=message), join_world():
        pass


def test_a_script_with_its_own_process_group_is_told(monkeypatch):
    for name, value in two_processes(0).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    with pytest.raises(TmtError, match="this script has a process group already"), join_world():
        pass


def test_a_process_that_waits_long_for_the_others_says_so(monkeypatch, capsys):
    def nobody_comes(*_: object, **__: object) -> None:
        time.sleep(0.5)
        raise RuntimeError("nobody came")

    for name, value in (two_processes(0) | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29555"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(joining, "rendezvous", nobody_comes)
    monkeypatch.setattr(joining, "PATIENCE", 0.05)
    with (
        pytest.raises(TmtError, match=r"process 0 of 2 on .* cannot connect with the others: nobody came"),
        join_world(),
    ):
        pass
    assert capsys.readouterr().err == "process 0 of 2 waits for the others, at 127.0.0.1:29555\n"


def test_nccl_waits_longer_than_gloo_which_says_what_it_waited_for(monkeypatch):
    timeouts: list[timedelta] = []
    for name, value in (two_processes(1) | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29555"}).items():
        monkeypatch.setenv(name, value)
    group = SimpleNamespace(_get_backend=lambda device: SimpleNamespace(_set_default_timeout=timeouts.append))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(joining, "_store", lambda *_: torch.distributed.HashStore())
    monkeypatch.setattr(torch.distributed, "group", SimpleNamespace(WORLD=group))
    monkeypatch.setattr(torch.distributed, "init_process_group", lambda _, timeout, **__: timeouts.append(timeout))
    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: None)
    with join_world():
        of_gloo, of_nccl = timeouts
    assert of_gloo < of_nccl


def test_a_script_can_join_several_times(tmp_path: Path):
    script = tmp_path / "several.py"
    script.write_text(
        "from transformer_mt.runtime.joining import join_world\n"
        "for number in range(12):\n"
        "    with join_world() as world:\n"
        "        assert world.sums([number]) == [2 * number]\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
    command += ["--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1", str(script)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("killed", [0, 1])
def test_processes_that_torchrun_has_started_again_find_each_other(tmp_path: Path, killed: int):
    script = tmp_path / "restarted.py"
    script.write_text(
        "import os, signal\n"
        "from transformer_mt.runtime.joining import join_world\n"
        "for number in range(3):\n"
        "    with join_world() as world:\n"
        f"        if number == 1 and world.rank == {killed} and os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        assert world.sums([number]) == [2 * number]\n"
        "os.write(1, b'attempt ' + os.environ['TORCHELASTIC_RESTART_COUNT'].encode() + b' ')\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
    command += ["--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1", "--max-restarts", "1", str(script)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.split() == ["attempt", "1"] * 2, done.stderr[-3000:]


def test_errors_survive_pickling():
    error = pickle.loads(pickle.dumps(TmtError("what", place="where", remedy="how", exit_code=130)))
    assert (str(error), error.exit_code) == (str(TmtError("what", place="where", remedy="how")), 130)


@pytest.mark.parametrize("failing", ["alone", "together", ""])
def test_a_gpu_process_that_fails_alone_does_not_wait(monkeypatch, failing: str):
    """NCCL waits until all processes leave the group, but the others may be waiting for this one elsewhere."""
    ended: list[bool] = []
    for name, value in two_processes(1).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(joining, "_join", lambda world: None)
    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: ended.append(True))
    with ExitStack() as stack:
        if failing:
            stack.enter_context(pytest.raises((TmtError, SystemExit)))
        with join_world() as world:
            if failing == "alone":
                raise TmtError("no memory")
            if failing:
                world.exit_all(TmtError("interrupted"))
    assert ended == ([] if failing == "alone" else [True])


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("lost", [True, False])
def test_a_signal_during_the_handling_of_a_lost_connection_does_not_hide_it(monkeypatch, lost: bool, rank: int):
    """torchrun sends SIGTERM to the others as soon as one process has ended."""
    for name, value in two_processes(rank).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(joining, "_join", lambda world: None)
    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def train() -> None:
        with join_world() as world:
            try:
                try:
                    if lost:
                        raise RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:38")
                finally:
                    raise KeyboardInterrupt
            except KeyboardInterrupt:
                world.exit_all(TmtError("interrupted", exit_code=130))

    with pytest.raises((TmtError, SystemExit)) as caught:
        train()
    if lost:
        assert f"interrupted; process {rank} of 2 has lost the others: one of them has ended" in str(caught.value)
        assert isinstance(caught.value, TmtError)
        assert caught.value.exit_code == 130
    else:
        assert "interrupted" in str(caught.value) if rank == 0 else isinstance(caught.value, SystemExit)


NCCL = (
    "NCCL error in: NCCLUtils.cpp:94, {} (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.5\nLast error:\n{}"
)
FULL = "Error while creating shared memory segment /dev/shm/nccl-SrwH0c (size 9637888), error: No space left on device"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (DistBackendError(NCCL.format("unhandled system error", FULL)), f"process 1 of 2 cannot .* NCCL: {FULL[:40]}"),
        (DistBackendError(NCCL.format("remote process exited or", "Connection closed")), "has lost the others"),
        (RuntimeError("CUDA error: the launch timed out and was terminated"), "^CUDA error: the launch timed out"),
    ],
)
def test_what_a_gpu_says_is_not_taken_for_a_lost_connection(monkeypatch, error: RuntimeError, message: str):
    for name, value in two_processes(1).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(joining, "_join", lambda world: None)
    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises((TmtError, RuntimeError), match=message), join_world():
        raise error


WORKER = """
import gc
from contextlib import suppress
from glob import glob
from pathlib import Path

import torch
from transformer_mt.errors import TmtError
from transformer_mt.runtime import transfer
from transformer_mt.runtime.joining import join_world

def fail():
    raise TmtError("no", exit_code=130)

def train(world):
    weights = world.parallel(torch.nn.Linear(1, 1, bias=False), torch.device("cpu"))
    torch.optim.Adam(weights.parameters())  # the first one imports a module that keeps the frames importing it
    weights(torch.tensor([[2.0 * world.rank]])).sum().backward()
    assert weights.module.weight.grad.item() == 1  # the mean of 0 and 2
    if FAILING:
        world.exit_all(TmtError("stop"))

def threads():  # on Linux; elsewhere none are found
    for file in glob("/proc/self/task/*/comm"):
        with suppress(OSError):  # it has ended in the meantime
            yield Path(file).read_text().strip()

def communicate(world):
    assert world.size == 2 and world.is_main == (world.rank == 0)
    assert world.sums([world.rank + 1, 10]) == [3, 20]
    assert world.gather(f"rank {world.rank}") == ["rank 0", "rank 1"]
    assert world.from_main(lambda: {"from": world.rank}) == {"from": 0}
    for count in range(4):  # fewer items than processes, the same number, uneven shares
        done = world.split_work(list(range(count)), lambda own: [(item, world.rank) for item in own])
        assert done == [(item, item % 2) for item in range(count)]
    outcomes = []
    for failing in (
        lambda: world.from_main(fail),
        lambda: world.exit_all(TmtError("no", exit_code=130)),
        lambda: world.split_work(range(2), lambda own: [fail() if item == 0 else item for item in own]),
    ):
        try:
            failing()
        except TmtError as error:
            outcomes.append((0, str(error)))
        except SystemExit as error:
            outcomes.append((1, error.code))
    assert outcomes == [(0, "no")] * 3 if world.is_main else [(1, 130)] * 3, outcomes

def copy(world):
    '''Folders of the two processes stand for the disks of two machines.'''
    folder = Path(FOLDER, str(world.rank), "copied")
    big = bytes(range(256)) * 10
    transfer.BLOCK = 1000  # so that a file has several blocks

    def copied():
        transfer.copy_folder(world, folder, 1, [0], "the copy")
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    folder.mkdir(parents=True)
    if world.rank == 1:
        (folder / "in").mkdir()
        for name, content in {"big": big, "in/.hidden": b"x", "in/empty": b"", ".lock": b"no"}.items():
            (folder / name).write_bytes(content)
    else:
        (folder / "old").write_bytes(b"old")
    expected = {"big": big, "in/.hidden": b"x", "in/empty": b""}
    found = copied()
    assert found == expected if world.is_main else found == {**expected, ".lock": b"no"}
    for failing, works in ((1, "_blocks"), (0, "_lengths")):
        kept = getattr(transfer, works)
        def full(*_):
            raise OSError(28, "No space left on device")
            yield
        if failing == 1 and world.rank == 1:
            transfer._blocks = full  # the giver cannot read
        if failing == 0 and world.rank == 0:
            written, open_ = [], Path.open  # the taker cannot write the second block
            def limited(self, mode="r", *others, **more):
                if mode == "ab" and self.name == "big":
                    written.append(self)
                    if len(written) == 2:
                        raise OSError(28, "No space left on device", str(self))
                return open_(self, mode, *others, **more)
            Path.open = limited
        try:
            copied()
            raise AssertionError("it should fail")
        except TmtError as error:
            assert world.rank == failing and "the disk is full while copying" in str(error), str(error)
        except SystemExit as error:
            assert world.rank != failing and error.code == 2
        if failing == 0 and world.rank == 0:
            Path.open = open_
        setattr(transfer, works, kept)
        if world.is_main:
            kept_files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
            assert kept_files == set(expected), kept_files
            assert [path.name for path in folder.parent.iterdir()] == ["copied"]

gc.disable()  # it could hide an error, because it does not always collect in time
kept = None
try:
    with join_world() as world:
        communicate(world)
        copy(world)
        gc.collect()  # the errors that it caught are in cycles with their frames
        train(world)
except (TmtError, SystemExit) as error:
    kept = error  # with its traceback
assert (kept is not None) == FAILING
assert not [name for name in threads() if "gloo" in name]  # a thread that outlives Python aborts
print("done", flush=True)
"""


@pytest.mark.parametrize("failing", [False, True])
def test_two_processes_communicate_and_end_cleanly(failing: bool, tmp_path: Path):
    """Started by environment variables, as torchrun does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    environments = [{**os.environ, **group, **two_processes(rank), "PYTHONPATH": str(ROOT)} for rank in (0, 1)]
    with ExitStack() as stack:
        command = [sys.executable, "-c", f"FAILING, FOLDER = {failing}, {str(tmp_path)!r}\n{WORKER}"]
        piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        processes = [stack.enter_context(subprocess.Popen(command, env=env, **piped)) for env in environments]
        stack.callback(lambda: [process.kill() for process in processes])
        for process in processes:
            out, err = process.communicate(timeout=120)
            assert (process.returncode, out) == (0, "done\n"), err[-2000:]
