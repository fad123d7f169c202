"""Work in several processes: in order, not far ahead, and no worker outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import transformer_mt
from transformer_mt.data import processes
from transformer_mt.data.parallel import AHEAD, Workers, chunks
from transformer_mt.errors import TmtError


def _square(number: int) -> int:
    return number * number


def _process(number: int) -> int:
    return os.getpid()


def _fail(number: int) -> int:
    if number == 3:
        raise TmtError("three is too many", place="here", remedy="Count again.")
    return number


def _kill(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_chunks_contain_each_item_once() -> None:
    assert list(chunks(range(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(chunks([], 3)) == []


def test_one_worker_or_a_single_item_uses_this_process() -> None:
    with Workers(1) as one, Workers(2) as two:
        assert set(one.map(_process, range(5))) == {os.getpid()}
        assert list(two.map(_process, [1])) == [os.getpid()]
        assert list(two.map(_process, [])) == []


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal on this system")
def test_two_workers_keep_the_order_read_little_ahead_and_pass_errors_on() -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for number in range(40):
            taken = number
            yield number

    with Workers(2) as workers:
        for done, result in enumerate(workers.map(_square, items())):
            assert result == done * done
            assert taken <= done + AHEAD * 2 + 1
        elsewhere = set(workers.map(_process, range(20)))
        assert os.getpid() not in elsewhere
        elsewhere |= set(workers.map(_process, range(20)))
        assert len(elsewhere) <= 2  # the same processes; on a busy machine one may do all the work
        with pytest.raises(TmtError, match="three is too many") as caught:
            list(workers.map(_fail, range(9)))
        assert (caught.value.place, caught.value.remedy) == ("here", "Count again.")
        with pytest.raises(TmtError, match="a worker process was killed"):
            list(workers.map(_kill, range(9)))
    for process in elsewhere:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


SCRIPT = """
import time
from transformer_mt.data.parallel import Workers
from work import work

with Workers(2) as workers:  # a script without a main guard: workers do not run it again
    print(*set(workers.map(work, range(20))), flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_no_worker_outlives_its_parent(tmp_path: Path, how: signal.Signals) -> None:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    (tmp_path / "work.py").write_text("import os\n\ndef work(number):\n    return os.getpid()\n")
    with subprocess.Popen(
        [sys.executable, file],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(transformer_mt.__file__).parents[1])},
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        workers = [int(number) for number in parent.stdout.readline().split()]
        assert workers
        if how == signal.SIGINT:
            os.killpg(parent.pid, how)  # as a terminal does: to the whole process group
        else:
            parent.send_signal(how)
        messages = parent.stderr.read()
    assert messages.count("Traceback") == (how == signal.SIGINT)  # only in the parent
    deadline = time.monotonic() + 20
    while any(_alive(worker) for worker in workers):
        assert time.monotonic() < deadline, "a worker is still running"
        time.sleep(0.02)


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_windows_gets_as_many_processes_as_it_can_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()
    monkeypatch.setattr(processes, "ProcessPoolExecutor", lambda number, *_, **__: asked.append(number))
    for platform in ("win32", "linux"):
        monkeypatch.setattr(sys, "platform", platform)
        assert processes.Processes(100).slots == asked[-1]
    assert asked == [61, 100]
