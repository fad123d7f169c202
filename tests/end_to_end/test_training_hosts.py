"""`tmt train` on two machines that share no folder: two network namespaces, each with a disk in memory of its own.

The machines are node-a, which is the first one and where torchrun's processes meet, and node-b. Everything that is made
here ends with the processes: the namespaces have no names, and the disks are mounted only in them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from transformer_mt.files.checksum import sha256_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ADDRESSES = {"node-a": "10.77.0.1", "node-b": "10.77.0.2"}
PORT = 29517
STARTS_A_MACHINE = """
set -e
echo {name} > /proc/sys/kernel/hostname
mount -t tmpfs -o size=64m tmpfs {disk}
printf '127.0.0.1 localhost\\n10.77.0.1 node-a\\n10.77.0.2 node-b\\n' > {disk}/.hosts
mount --bind {disk}/.hosts /etc/hosts
ip link set lo up
echo ready
exec cat
"""


class Machine:
    """A machine: a network, a host name and a disk of its own. `folder` is its disk, seen from outside."""

    def __init__(self, name: str, disk: Path, stack: ExitStack) -> None:
        self.name, self.disk = name, disk
        script = STARTS_A_MACHINE.format(name=name, disk=disk)
        command = ["unshare", "--net", "--uts", "--mount", "sh", "-c", script]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self._holder = stack.enter_context(subprocess.Popen(command, text=True, **pipes))
        stack.callback(self._holder.kill)
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "ready\n":
            pytest.skip(f"no namespaces here: {self._holder.communicate()[1].strip()}")
        self.pid = self._holder.pid
        self.folder = Path(f"/proc/{self.pid}/root{disk}")

    def inside(self, *command: str) -> list[str]:
        return ["nsenter", "--target", str(self.pid), "--net", "--uts", "--mount", *command]

    def do(self, *command: str) -> None:
        subprocess.run(self.inside(*command), check=True, capture_output=True)

    def start(self, *arguments: str, code: str = "", restarts: int = 0, package: Path = ROOT) -> Job:
        """`torchrun` on this machine, as one of two with two processes each. code: runs in each process before tmt."""
        (self.folder / "tmt.py").write_text(f"{code}\nfrom transformer_mt.cli.main import run\nrun()\n")
        launch = ["--nnodes", "2", "--nproc-per-node", "2", "--max-restarts", str(restarts), "--monitor-interval", "0.1"]
        meet = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"node-a:{PORT}", "--local-addr", self.name]
        torchrun = [sys.executable, "-m", "torch.distributed.run", *launch, *meet, str(self.disk / "tmt.py"), *arguments]
        # If this process is killed, the first one in its namespace is, and with it all others.
        alone = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
        environment = {**os.environ, "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0"}
        error = (self.folder.parent / f"{self.name}.err") if False else Path(tempfile.mkstemp(suffix=".err")[1])
        with error.open("w") as err:
            process = subprocess.Popen(
                self.inside(*alone, *torchrun), env=environment, cwd=self.folder, stdout=err, stderr=err
            )
        return Job(process, error)


class Job:
    """A `torchrun` on one machine, and what it printed."""

    def __init__(self, process: subprocess.Popen[bytes], error: Path) -> None:
        self.process, self._error = process, error

    @property
    def printed(self) -> str:
        return self._error.read_text(encoding="utf-8", errors="replace")

    def ended(self) -> int:
        """The exit code."""
        return self.process.wait(timeout=60)

    def kill(self) -> None:
        """Like a machine without power: everything on it ends at once."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=20)


class Machines:
    """Both machines, joined by a cable."""

    def __init__(self, disk: Path, stack: ExitStack) -> None:
        self.disk = disk
        self.a, self.b = (Machine(name, disk, stack) for name in ADDRESSES)
        self.a.do("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", str(self.b.pid))
        for machine in (self.a, self.b):
            machine.do("ip", "address", "add", f"{ADDRESSES[machine.name]}/24", "dev", "eth0")
            machine.do("ip", "link", "set", "eth0", "up")

    def config(self, numbers: Any, **training: Any) -> None:
        """Write the config and the corpus to both disks."""
        settings = {"max_epochs": 4, "batch_tokens": 98, "checkpoint_every": 4, "keep_last": 2, "bleu_sentences": 20}
        values = numbers.values(**{**settings, **training})
        values["data"].update(prepared="data/prepared")
        values["data"]["corpus"]["files"] = "numbers.tsv"
        for machine in (self.a, self.b):
            (machine.folder / "c.yaml").write_text(json.dumps(values), encoding="utf-8")
            shutil.copy(numbers.table, machine.folder / "numbers.tsv")

    def empty(self) -> None:
        """Remove everything from both disks."""
        for machine in (self.a, self.b):
            for path in machine.folder.iterdir():
                if path.name != ".hosts":
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    @contextmanager
    def training(self, *arguments: str, **options: Any) -> Iterator[tuple[Job, Job]]:
        """`tmt train` on both."""
        jobs: list[Job] = []
        try:
            for machine in (self.a, self.b):
                jobs.append(machine.start("train", "--config", "c.yaml", "--run-dir", "run", *arguments, **options))
            yield jobs[0], jobs[1]
        finally:
            for job in jobs:
                job.kill()

    def train(self, *arguments: str, **options: Any) -> tuple[str, str]:
        """The same until it ends well: what was printed."""
        with self.training(*arguments, **options) as (a, b):
            assert (a.ended(), b.ended()) == (0, 0), a.printed + b.printed
            return a.printed, b.printed


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    if sys.platform != "linux" or os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
        pytest.skip("needs Linux, root, and the programs unshare, nsenter and ip")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        yield Machines(Path(folder), stack)


def wait_for(condition: Callable[[], bool], *jobs: Job) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert all(job.process.poll() is None for job in jobs), "".join(job.printed for job in jobs)
        assert time.monotonic() < deadline, "".join(job.printed for job in jobs)
        time.sleep(0.05)


def weights(run: Path) -> dict[str, str]:
    """Checksums of the weights of all checkpoints and of the final model."""
    return {str(file.relative_to(run)): sha256_of(file) for file in sorted(run.rglob("model.safetensors"))}


def test_two_machines_end_with_the_model_of_one(machines: Machines, numbers: Any):
    machines.config(numbers)
    a, b = machines.train()
    print(a, b)
    assert 0
