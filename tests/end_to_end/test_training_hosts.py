"""`tmt train` on two machines that share no folder: two network namespaces, each with a disk in memory of its own.

The machines are node-a, which is the first one, and node-b. Nothing that is made here outlives the tests: the
namespaces have no names, and the disks are mounted only in them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from transformer_mt.cli.train import train
from transformer_mt.files.checksum import sha256_of
from transformer_mt.reporting.history import points, read_history

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
# Imports everything once; then each line that it reads is a process to fork, which enters the namespaces of a machine.
FORKS = """
import ctypes, json, os, sys
import sacrebleu, tabulate, torch, torch._dynamo, torch.distributed.nn
import transformer_mt.workflows.train, transformer_mt.cli.train
from transformer_mt.cli.main import run
from transformer_mt.reporting import events
from transformer_mt.workflows import prepare

prepare.plot_data = events.draw_curves = lambda *_, **__: None  # plots would take a third of the time

def child(namespaces, disk, error, environment, arguments, code):
    libc = ctypes.CDLL(None, use_errno=True)
    for name in ("net", "uts", "mnt"):
        with open(f"/proc/{namespaces}/ns/{name}") as file:
            assert libc.setns(file.fileno(), 0) == 0
    os.dup2(os.open(error, os.O_WRONLY | os.O_APPEND), 2)
    os.dup2(2, 1)
    os.chdir(disk)
    os.environ.update(environment)
    sys.argv[1:] = arguments
    exec(code, {})
    run()

for line in sys.stdin:
    started = os.fork()
    if not started:
        try:
            child(**json.loads(line))
            code = 0
        except SystemExit as leaving:
            code = leaving.code
        except BaseException:
            import traceback
            traceback.print_exc()
            code = 99
        os._exit(code or 0)
    print(started, flush=True)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""


class Machine:
    """A machine: a network, a host name and a disk of its own. `folder` is its disk, as it is seen from outside."""

    def __init__(self, name: str, disk: Path, stack: ExitStack) -> None:
        self.name, self.disk = name, disk
        command = ["unshare", "--net", "--uts", "--mount", "sh", "-c", STARTS_A_MACHINE.format(name=name, disk=disk)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        holder = stack.enter_context(subprocess.Popen(command, text=True, **pipes))
        stack.callback(holder.kill)
        assert holder.stdout is not None
        if holder.stdout.readline() != "ready\n":
            pytest.skip(f"namespaces are not allowed here: {holder.communicate()[1].strip()}")
        self.pid = holder.pid
        self.folder = Path(f"/proc/{self.pid}/root{disk}")
        self.data = self.folder / "data" / "prepared" / "numbers"

    def inside(self, *command: str) -> list[str]:
        there = ["nsenter", "--target", str(self.pid), "--net", "--uts", "--mount"]
        return [*there, "sh", "-c", f'cd {self.disk} && exec "$@"', "sh", *command]

    def do(self, *command: str) -> None:
        subprocess.run(self.inside(*command), check=True, capture_output=True)

    def torchrun(self, error: Path, *arguments: str) -> subprocess.Popen[bytes]:
        """`torchrun` here, as one of two machines. If the process is killed, so are all that it has started."""
        launch = ["--nnodes", "2", "--nproc-per-node", "1", "--max-restarts", "3", "--monitor-interval", "0.1"]
        meet = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"node-a:{PORT}", "--rdzv-conf", "keep_alive_interval=1"]
        command = [sys.executable, "-m", "torch.distributed.run", *launch, *meet, "-m", "transformer_mt", *arguments]
        alone = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
        with error.open("a") as file:
            return subprocess.Popen(self.inside(*alone, *command), env=environment(), stdout=file, stderr=file)


def environment() -> dict[str, str]:
    own = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0"}
    return {**os.environ, **own, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


class Ended(NamedTuple):
    """How the processes of a machine ended: their exit codes, and what they printed together."""

    codes: list[int]
    printed: str


class Machines:
    """Both machines, joined by a cable."""

    def __init__(self, disk: Path, stack: ExitStack) -> None:
        self.a, self.b = both = [Machine(name, disk, stack) for name in ADDRESSES]
        self.a.do("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", str(self.b.pid))
        for machine in both:
            machine.do("ip", "address", "add", f"{ADDRESSES[machine.name]}/24", "dev", "eth0")
            machine.do("ip", "link", "set", "eth0", "up")
        self._errors = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._forks = stack.enter_context(subprocess.Popen([sys.executable, "-c", FORKS], env=environment(), **pipes))
        stack.callback(self._forks.stdin.close)  # type: ignore[union-attr]
        self._ports = iter(range(PORT + 1, PORT + 999))

    def new(self, numbers: Any, **training: Any) -> None:
        """Empty both disks; then write the config and the corpus to them."""
        settings = {"max_epochs": 3, "batch_tokens": 98, "checkpoint_every": 4, "keep_last": 2, "bleu_sentences": 20}
        values = numbers.values(**{**settings, **training})
        values["data"].update(prepared="data/prepared")
        values["data"]["corpus"]["files"] = "numbers.tsv"
        values["runtime"]["threads"] = 1
        for machine in (self.a, self.b):
            empty(machine)
            (machine.folder / "c.yaml").write_text(json.dumps(values), encoding="utf-8")
            shutil.copy(numbers.table, machine.folder / "numbers.tsv")

    def train(self, *settings: str, on_a: str = "", on_b: str = "", code: str = "", each: int = 1) -> list[Ended]:
        """`tmt train` on both, with `each` processes. on_a, on_b: settings or options of one; code: run before."""
        there = [
            (machine, each, local, own) for machine, own in ((self.a, on_a), (self.b, on_b)) for local in range(each)
        ]
        return self._run(there, settings, code)

    def train_on_a(self, processes: int, *settings: str) -> Ended:
        """`tmt train` on one machine."""
        return self._run([(self.a, processes, local, "") for local in range(processes)], settings, "")[0]

    def _run(self, there: list[tuple[Machine, int, int, str]], settings: tuple[str, ...], code: str) -> list[Ended]:
        """there: machine, processes on it, number of the process on it and own settings, of each process."""
        assert self._forks.stdin is not None
        assert self._forks.stdout is not None
        group = {"MASTER_ADDR": "node-a", "MASTER_PORT": str(next(self._ports)), "WORLD_SIZE": str(len(there))}
        started: list[tuple[int, Machine]] = []
        errors: dict[str, Path] = {}
        for rank, (machine, size, local, own) in enumerate(there):
            ranks = {"RANK": str(rank), "LOCAL_RANK": str(local), "LOCAL_WORLD_SIZE": str(size)}
            error = errors.setdefault(machine.name, Path(tempfile.mkstemp(dir=self._errors)[1]))
            asked = [part for one in settings for part in ("--set", one)]
            fork = {"namespaces": machine.pid, "disk": str(machine.disk), "error": str(error)}
            command = ["train", "--config", "c.yaml", "--run-dir", "run", *asked, *own.split()]
            job = {**fork, "environment": {**group, **ranks}, "arguments": command, "code": code}
            print(json.dumps(job), file=self._forks.stdin, flush=True)
            started.append((int(self._forks.stdout.readline()), machine))
        codes = {name: [ended(pid) for pid, machine in started if machine.name == name] for name in errors}
        return [Ended(codes[name], without_torch(error.read_text(encoding="utf-8"))) for name, error in errors.items()]


def without_torch(printed: str) -> str:
    """What tmt printed: torch warns that addresses have no names here."""
    return "".join(line for line in printed.splitlines(keepends=True) if not line.startswith("[W"))


def ended(pid: int) -> int:
    """The exit code of a process that is not a child of this one, but of FORKS, which does not wait for it."""
    deadline = time.monotonic() + 60
    while (state := Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split())[0] != "Z":
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    return os.waitstatus_to_exitcode(int(state[49]))


def empty(machine: Machine) -> None:
    """Remove everything from the disk."""
    for path in machine.folder.iterdir():
        if path.name != ".hosts":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    if sys.platform != "linux" or os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
        pytest.skip("needs Linux, root, and the programs unshare, nsenter and ip")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        yield Machines(Path(folder), stack)


def weights(run: Path) -> dict[str, str]:
    """Checksums of the weights of all checkpoints and of the final model."""
    return {file.relative_to(run).as_posix(): sha256_of(file) for file in sorted(run.rglob("model.safetensors"))}


def files(folder: Path) -> dict[str, str]:
    """Checksums of the ids of prepared data."""
    return {file.relative_to(folder).as_posix(): sha256_of(file) for file in sorted(folder.rglob("*.*s"))}


class Expected(NamedTuple):
    """What two processes on one machine end with. whole: the folder with the run and all else that was on its disk."""

    weights: dict[str, str]
    losses: Any
    ids: dict[str, str]
    whole: Path


@pytest.fixture(scope="module")
def expected(machines: Machines, numbers: Any, tmp_path_factory: pytest.TempPathFactory) -> Expected:
    machines.new(numbers)
    alone = machines.train_on_a(2)
    assert alone.codes == [0, 0], alone.printed
    whole = tmp_path_factory.mktemp("expected") / "disk"
    shutil.copytree(machines.a.folder, whole)
    return Expected(weights(whole / "run"), losses(whole / "run"), files(machines.a.data), whole)


def losses(run: Path) -> Any:
    return points(read_history(run / "metrics.jsonl"), "step", "loss")


SMALL_LETTERS = "note       460 pairs without capital letters in the source: kept"  # of preparing the numbers


def notes_of(machine: Any) -> list[str]:
    """The notes that are not about the length of these trainings."""
    notes = [line for line in machine.printed.splitlines() if line.startswith("note")]
    return [line for line in notes if "updates in all" not in line]


def test_two_machines_end_with_the_model_of_one(machines: Machines, numbers: Any, expected: Expected):
    """They prepare with different numbers of workers. Only the first one has a run."""
    machines.new(numbers)
    a, b = machines.train(on_a="--set data.workers=1", on_b="--set data.workers=2")
    assert a.codes == b.codes == [0], a.printed + b.printed
    run = machines.a.folder / "run"
    assert weights(run) == expected.weights
    assert losses(run) == expected.losses
    assert files(machines.a.data) == files(machines.b.data) == expected.ids
    assert not (machines.b.folder / "run").exists()
    assert notes_of(a) == [SMALL_LETTERS]
    assert b.printed == "node-b trains with node-a, which prints and writes all\n"


def test_a_machine_with_an_empty_disk_gets_everything_from_the_first(
    machines: Machines, numbers: Any, expected: Expected
):
    """The data is prepared for longer than a process waits for an answer: the others get signs of life."""
    machines.new(numbers)
    empty(machines.b)
    a, b = machines.train("training.max_steps=20", code=SLOW)
    assert a.codes == b.codes == [0], a.printed + b.printed
    assert "note       node-b uses the config of node-a: c.yaml: no such config file" in a.printed
    assert "note       node-b has got the prepared data of node-a: numbers.tsv: no such file" in a.printed
    assert files(machines.b.data) == expected.ids
    empty(machines.b)
    a, b = machines.train()
    assert a.codes == b.codes == [0], a.printed + b.printed
    assert "note       node-b has no checkpoint of this run; it gets the state of node-a, of step 20" in a.printed
    assert "resumed at step 20" in a.printed
    assert weights(machines.a.folder / "run") == expected.weights
    assert losses(machines.a.folder / "run") == expected.losses


SLOW = """
import time
from datetime import timedelta
from transformer_mt.runtime import distributed
from transformer_mt.workflows import hosts
distributed.TIMEOUT, distributed.BEAT = timedelta(seconds=2), 0.5
prepare = hosts.prepare_with
hosts.prepare_with = lambda *arguments, **named: (time.sleep(4), prepare(*arguments, **named))[1]
"""


def test_the_first_machine_gets_the_run_of_one_that_is_ahead(machines: Machines, numbers: Any, expected: Expected):
    """For example, because the machines have changed places. Its own older state is kept."""
    machines.new(numbers)
    for machine in (machines.a, machines.b):
        shutil.copytree(expected.whole / "run", machine.folder / "run")
    steps = sorted((machines.a.folder / "run" / "checkpoints").iterdir())
    shutil.rmtree(steps[-1])
    newest = int(steps[-1].name.removeprefix("step-"))
    a, b = machines.train("training.max_epochs=4", f"training.max_steps={newest + 2}")
    assert a.codes == b.codes == [0], a.printed + b.printed
    assert f"note       node-a has got the run of node-b, up to step {newest}, and writes it from now on" in a.printed
    assert "note       the older state of node-a moved to run.1" in a.printed
    assert f"resumed at step {newest}" in a.printed
    assert (machines.a.folder / "run.1" / "checkpoints" / steps[0].name).is_dir()
    assert weights(machines.b.folder / "run") == expected.weights


def test_with_a_shared_folder_nothing_is_done_twice(machines: Machines, numbers: Any, tmp_path: Path):
    machines.new(numbers)
    (machines.b.folder / "numbers.tsv").unlink()
    shared = f"data.prepared={tmp_path / 'data'}"
    run = f"--run-dir {tmp_path / 'run'}"
    for steps, notes in ((4, [SMALL_LETTERS]), (6, [])):
        a, b = machines.train(shared, f"training.max_steps={steps}", on_a=run, on_b=run, code=PREPARES_ON_A)
        assert a.codes == b.codes == [0], a.printed + b.printed
        assert notes_of(a) == notes
    assert "resumed at step 4" in a.printed
    assert not (machines.b.folder / "data").exists()
    assert not list((tmp_path / "data").glob(".*.shared"))


PREPARES_ON_A = """
import socket
from transformer_mt.workflows import hosts
if socket.gethostname() == "node-b":
    hosts.prepare_with = None
"""


def test_only_the_first_machine_needs_the_parent(machines: Machines, numbers: Any, expected: Expected):
    """The new run begins with its weights on both, and with new tokens."""
    machines.new(numbers)
    shutil.copytree(expected.whole / "run", machines.a.folder / "parent")
    corpus = machines.a.folder / "numbers.tsv"
    corpus.write_text(corpus.read_text(encoding="utf-8").replace("seven", "nine"), encoding="utf-8")
    settings = ["training.start_from=parent", "name=new", "training.max_steps=6", "tokenizer.extend=1"]
    a, b = machines.train(*settings, code=SAME_WEIGHTS)
    assert a.codes == b.codes == [0], a.printed + b.printed
    assert "note       node-b has got the prepared data of node-a: " in a.printed
    two = weights(machines.a.folder / "run")
    shutil.rmtree(machines.a.folder / "run")
    alone = machines.train_on_a(2, *settings)
    assert alone.codes == [0, 0], alone.printed
    assert weights(machines.a.folder / "run") == two


SAME_WEIGHTS = """
from transformer_mt.training.trainer import Trainer
train = Trainer.train
def checked(self):
    sums = self.world.gather([float(one.detach().double().sum()) for one in self.model.parameters()])
    assert sums[0] == sums[1]
    return train(self)
Trainer.train = checked
"""


@pytest.mark.parametrize("different", ["corpus", "config", "program", "version", "device"])
def test_what_differs_between_machines_ends_all_with_one_message_on_each(
    machines: Machines, numbers: Any, different: str
):
    machines.new(numbers)
    code, settings = "", {}
    if different == "corpus":
        corpus = machines.b.folder / "numbers.tsv"
        corpus.write_text(corpus.read_text(encoding="utf-8").replace("seven", "nine", 1), encoding="utf-8")
        expected = ["the prepared data of node-b differs from that of node-a in", "files: numbers.tsv", "tokenizers: "]
        expected += ["ids: train/", "Copy the corpus of node-a to node-b, or remove it"]
    elif different == "config":
        settings = {"on_b": "--set model.d_ff=64 --set runtime.threads=2"}
        expected = ["the config of node-b differs from that of node-a in these keys (node-a | node-b)"]
        expected += ["model.d_ff: 32 | 64\n  Use the same config on all machines."]
    elif different == "device":
        settings = {"on_b": "--set runtime.device=cpu"}
        code = "import socket\nfrom transformer_mt.workflows import train\nfrom transformer_mt.errors import TmtError\n"
        code += "def fails(*_):\n    raise TmtError('no device', remedy='Buy one.')\n"
        code += "if socket.gethostname() == 'node-b':\n    train.set_up = fails\n"
        expected = ["host node-b: no device"]
    else:
        code = "import socket, torch\nfrom transformer_mt.workflows import hosts\n"
        code += "if socket.gethostname() == 'node-b':\n    "
        if different == "version":
            code += "torch.__version__ = '2.1.0'"
            expected = ["node-b runs torch 2.1.0, and node-a runs torch 2."]
        else:
            code += "hosts.__file__ = '/no/such/file'"
            expected = ["node-b and node-a both run transformer_mt", "but with different source files"]
    for end in machines.train(each=2, code=code, **settings):
        assert end.codes == [2, 2], end.printed
        assert end.printed.count("tmt: ") == 1
        for part in expected:
            assert part in end.printed
        assert "Traceback" not in end.printed
    assert not (machines.a.folder / "run").exists()


def test_a_full_disk_is_told_with_the_name_of_the_machine(machines: Machines, numbers: Any):
    for full in (machines.b, machines.a):
        machines.new(numbers)
        if full is machines.b:
            (machines.b.folder / "numbers.tsv").unlink()
        else:
            assert machines.train_on_a(1, "training.max_steps=4").codes == [0]
            saved = weights(machines.a.folder / "run")
        full.do("sh", "-c", "dd if=/dev/zero of=fill bs=4k || true")
        both = machines.train(each=2)
        (full.folder / "fill").unlink()
        for end in both:
            assert end.codes == [2, 2], end.printed
            assert end.printed.count(f"tmt: host {full.name}: ") == 1
            assert "the disk is full while" in end.printed
        if full is machines.b:
            assert not machines.b.data.exists()
        else:
            assert weights(machines.a.folder / "run") == saved


def test_a_machine_that_does_not_answer_is_waited_for_only_so_long(machines: Machines, numbers: Any):
    machines.new(numbers)
    a, _ = machines.train(code=SILENT)
    assert a.codes == [2], a.printed
    assert (
        "process 0 of 2 on node-a got no answer for 2 seconds; it waited for the training step of the others"
        in a.printed
    )
    assert "Traceback" not in a.printed


SILENT = """
import socket, time
from datetime import timedelta
from transformer_mt.runtime import distributed
from transformer_mt.training.state import TrainState
distributed.TIMEOUT, distributed.BEAT = timedelta(seconds=2), 0.5
advance = TrainState.advance
def silent(self, *arguments):
    advance(self, *arguments)
    if self.step == 6 and socket.gethostname() == "node-b":
        time.sleep(5)
TrainState.advance = silent
"""


def test_two_folders_of_one_machine_are_like_two_machines(
    numbers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """This needs no namespaces. The second process begins with an empty folder; it gets the data and the checkpoint."""
    folders = a, b = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        folder.mkdir()
    values = numbers.values(checkpoint_every=2, max_epochs=None, max_steps=4)
    values["data"].update(prepared="data", workers=1)
    values["data"]["corpus"]["files"] = "numbers.tsv"
    (a / "c.yaml").write_text(json.dumps(values), encoding="utf-8")
    shutil.copy(numbers.table, a)
    monkeypatch.chdir(a)
    train("c.yaml", run_dir="run")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(probe.getsockname()[1]), "WORLD_SIZE": "2"}
    command = [sys.executable, "-m", "transformer_mt", "train", "--config", "c.yaml", "--run-dir", "run"]
    command += ["--set", "training.max_steps=6"]
    with ExitStack() as stack:
        own = {**os.environ, **group, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "PYTHONPATH": str(ROOT)}
        piped: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        jobs = [
            stack.enter_context(subprocess.Popen(command, cwd=folder, env={**own, "RANK": str(rank)}, **piped))
            for rank, folder in enumerate(folders)
        ]
        stack.callback(lambda: [job.kill() for job in jobs])
        printed = [job.communicate(timeout=100)[1] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], printed
    assert "has no checkpoint of this run; it gets the state of" in printed[0]
    assert "resumed at step 4" in printed[0]
    assert files(a / "data" / "numbers") == files(b / "data" / "numbers") != {}
    assert not (b / "run").exists()


def test_a_killed_machine_comes_back_with_an_empty_disk(
    machines: Machines, numbers: Any, expected: Expected, tmp_path: Path
):
    """torchrun on the other machine starts its processes again, and waits for it. --fresh counts only once."""
    machines.new(numbers)
    errors = {machine: tmp_path / machine.name for machine in (machines.a, machines.b)}
    command = ["train", "--config", "c.yaml", "--run-dir", "run", "--fresh"]
    with ExitStack() as stack:

        def start(machine: Machine) -> subprocess.Popen[bytes]:
            job = stack.enter_context(machine.torchrun(errors[machine], *command))
            stack.callback(job.kill)
            return job

        a, b = start(machines.a), start(machines.b)
        checkpoints = machines.a.folder / "run" / "checkpoints"
        wait_for(lambda: any(checkpoints.glob("step-*")), a, errors[machines.a])
        b.kill()
        b.wait(timeout=20)
        empty(machines.b)
        (machines.b.folder / "c.yaml").write_bytes((machines.a.folder / "c.yaml").read_bytes())
        b = start(machines.b)
        codes = a.wait(timeout=100), b.wait(timeout=20)
    printed = errors[machines.a].read_text(encoding="utf-8")
    assert codes == (0, 0), printed + errors[machines.b].read_text(encoding="utf-8")
    assert "process 0 of 2 on node-a has lost the others: one of them has ended" in printed
    assert "--fresh does not count again" in printed
    assert "note       node-b has no checkpoint of this run; it gets the state of node-a, of step" in printed
    assert weights(machines.a.folder / "run") == expected.weights
    assert losses(machines.a.folder / "run") == expected.losses


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes], error: Path) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, error.read_text(encoding="utf-8")
        assert time.monotonic() < deadline
        time.sleep(0.01)
