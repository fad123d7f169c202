"""Two processes train together, and one of them is killed or stands still. `scripts/torture --only ranks` runs this.

The agent of torchrun starts the two as forks of this process, so that nothing is imported again.
"""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from transformer_mt.cli import main as commands
from transformer_mt.runtime import distributed

RANKS = 2
WAIT, BEAT = 10, 2.0  # seconds, in place of `distributed.TIMEOUT` and BEAT, if a process stands still
PATIENCE = 90  # seconds for one command
LOST = re.compile("has lost the others|got no answer for|cannot connect with the others")  # of the other process
TRACEBACK = "Traceback"
CountOperations = Callable[[Callable[[int], None]], Callable[[], int]]


@dataclass(frozen=True)
class Fault:
    """signal: sent to a process of this `rank` before the file-system operation `at` of rank 0."""

    signal: int
    rank: int
    at: int


@dataclass
class Rank:
    """How a process ended. code: None if the agent had to end it."""

    code: int | None
    output: str
    operations: int


def train_together(
    folder: Path, arguments: list[str], logs: Path, count: CountOperations, fault: Fault | None = None
) -> list[Rank] | None:
    """Run a `tmt` command in two processes. Returns what became of each; None if they did not end in time."""
    for old in logs.glob("rank-*"):
        old.unlink()
    agent = os.fork()
    if agent == 0:
        os.setsid()
        code = 1
        try:
            os.chdir(folder)
            redirect(logs / "agent")
            settings = {
                "rdzv_backend": "c10d",
                "rdzv_endpoint": "localhost:0",
                "max_restarts": 0,
                "start_method": "fork",
            }
            launch = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=RANKS, **settings)  # type: ignore[arg-type]
            elastic_launch(launch, _work)(arguments, logs, count, fault)
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    ended = _wait(agent)
    with suppress(ProcessLookupError):
        os.killpg(agent, signal.SIGKILL)  # a process that was stopped
    return [_read(logs, rank) for rank in range(RANKS)] if ended else None


def _wait(agent: int) -> bool:
    last = time.monotonic() + PATIENCE
    while not os.waitpid(agent, os.WNOHANG)[0]:
        if time.monotonic() > last:
            os.killpg(agent, signal.SIGKILL)
            os.waitpid(agent, 0)
            return False
        time.sleep(0.01)
    return True


def redirect(file: Path) -> None:
    """Let stdout and stderr of this process go to a file."""
    output = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)


def _work(arguments: list[str], logs: Path, count: CountOperations, fault: Fault | None) -> None:
    """One of the two processes. It ends without the agent's handling of errors, as `tmt` does."""
    rank = int(os.environ["RANK"])
    signal.signal(
        signal.SIGTERM, signal.SIG_DFL
    )  # as in a process that torchrun starts; a fork has the agent's handler
    signal.signal(signal.SIGINT, signal.default_int_handler)
    redirect(logs / f"rank-{rank}.output")
    (logs / f"rank-{rank}.pid").write_text(str(os.getpid()))
    if fault is not None and fault.signal == signal.SIGSTOP:
        distributed.TIMEOUT, distributed.BEAT = timedelta(seconds=WAIT), BEAT

    def before(operation: int) -> None:
        if fault is not None and operation == fault.at:
            os.kill(_pid(logs / f"rank-{fault.rank}.pid"), fault.signal)

    operations = count(before if rank == 0 else lambda _: None)
    code = 99
    try:
        code = commands.main(arguments)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    (logs / f"rank-{rank}.end").write_text(f"{code} {operations()}")
    if code != 0:
        os._exit(code)


def _pid(file: Path) -> int:
    while not (file.exists() and file.read_text()):
        time.sleep(0.01)
    return int(file.read_text())


def _read(logs: Path, rank: int) -> Rank:
    output, end = logs / f"rank-{rank}.output", logs / f"rank-{rank}.end"
    said = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
    if not end.exists():
        return Rank(None, said, 0)
    code, operations = map(int, end.read_text().split())
    return Rank(code, said, operations)


def verdict(fault: Fault, ranks: list[Rank] | None) -> str:
    """What is wrong with how the two ended, or an empty text."""
    if ranks is None:
        return f"no end within {PATIENCE} seconds"
    if all(one.code == 0 for one in ranks):
        return ""  # the fault came after the last exchange
    if any(TRACEBACK in one.output for one in ranks):
        return f"a traceback: {' | '.join(one.output[-400:] for one in ranks)}"
    survivor = ranks[1 - fault.rank]
    if survivor.code is None:
        return ""  # torchrun was faster, and has said which process died
    if survivor.code not in (0, 2) or (survivor.code == 2 and len(LOST.findall(survivor.output)) != 1):
        return f"the other process ended with {survivor.code}: {survivor.output[-300:]}"
    return ""


def moments(operations: int, count: int, seed: int) -> list[int]:
    """So many moments of a training, spread over it."""
    generator = random.Random(seed)
    width = operations / count
    return [1 + int(width * (number + generator.random())) for number in range(count)]
