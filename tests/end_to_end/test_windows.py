"""The commands without what only Unix has: modules, exchange of folders, read-only sync, a UTF-8 stdout."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.forks import PYTHON
from transformer_mt.files import system
from transformer_mt.files.replace import replace_text, replaced_folder
from transformer_mt.runtime import peak_memory
from transformer_mt.training.run_directory import RunDirectory

ROOT = Path(__file__).resolve().parents[2]
SMALL = (
    *("data.corpus.train=600", "data.corpus.validation=50", "data.corpus.test=20", "data.workers=2"),
    *("training.max_steps=6", "training.validate_every=3", "training.bleu_sentences=10", "tokenizer={kind: character}"),
)
LIKE_WINDOWS = """
import concurrent.futures.process, multiprocessing.popen_spawn_posix, multiprocessing.resource_tracker
import matplotlib.pyplot, os, sacrebleu, signal, sys, torch, warnings  # these choose by the system that they find
from importlib.abc import MetaPathFinder

class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in ("resource", "fcntl", "termios", "tty", "pty", "pwd", "grp", "readline"):
            raise ImportError(f"Windows has no {name}")

sys.meta_path.insert(0, Blocked())
for name in ("resource", "fcntl", "termios", "pwd", "grp", "readline"):
    sys.modules.pop(name, None)
for name in [name for name in sys.modules if name.partition(".")[0] in ("transformer_mt", "filelock")]:
    del sys.modules[name]  # a fork of the server of the tests has found another system
for name in ("SIGHUP", "SIGKILL", "SIGALRM", "SIGUSR1", "SIGCHLD"):
    delattr(signal, name)
for name in ("fork", "getuid", "geteuid", "getpgid", "killpg", "mkfifo", "sched_getaffinity", "uname"):
    delattr(os, name)
for stream in (sys.stdin, sys.stdout, sys.stderr):
    stream.reconfigure(encoding="cp1252", errors="backslashreplace" if stream is sys.stderr else "strict")
warnings.filterwarnings("ignore", "only soft file lock")
from transformer_mt.files import replace, system
system.IS_WINDOWS = True
replace._exchange = lambda one, other: False
from transformer_mt.cli.main import run
run()
"""


def tmt(folder: Path, *arguments: str, stdin: str = "", code: int = 0) -> tuple[bytes, str]:
    """Run a command as on Windows with a console of Western Europe; its stdout and stderr."""
    done = subprocess.run(
        [*PYTHON, "-c", LIKE_WINDOWS, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "USERNAME": "me"},
        input=stdin.encode(),
        capture_output=True,
        timeout=150,
        check=False,
    )
    error = done.stderr.decode("cp1252")
    assert done.returncode == code, error
    assert "Traceback" not in error
    return done.stdout, error


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_way_from_a_config_to_a_translation(tmp_path: Path) -> None:
    tmt(tmp_path, "init", "quickstart")
    config = ["--config", "quickstart.yaml", *(word for change in SMALL for word in ("--set", change))]
    scores, said = tmt(tmp_path, "train", *config, "--device", "cpu")
    assert scores.startswith(b"test  BLEU|")
    assert "\\u" in said, "a sample in Hangul, with letters that cp1252 does not have"
    assert "next       tmt translate --model runs" in said
    _, said = tmt(tmp_path, "train", *config, "--device", "cpu", "--fresh")
    assert (tmp_path / "runs" / "quickstart.1" / "model").is_dir()
    korean = "누가 이 책을 읽었습니까?"
    from_pipe, _ = tmt(tmp_path, "translate", stdin=f"{korean}\r\n")
    (tmp_path / "in.txt").write_bytes(f"{korean}\r\n".encode())
    from_file, _ = tmt(tmp_path, "translate", "--input", "in.txt", "--output", "out.txt")
    assert from_pipe == (tmp_path / "out.txt").read_bytes()
    assert from_pipe.count(b"\n") == 1
    assert from_file == b""
    shown, _ = tmt(tmp_path, "evaluate", "--model", "runs/quickstart", "--split", "validation", "--bleu")
    assert b"?" in shown, "Hangul that cp1252 does not have"
    assert "no such model folder" in tmt(tmp_path, "translate", "--model", "nowhere", "x", code=2)[1]


def test_files_and_folders_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "IS_WINDOWS", True)
    monkeypatch.setattr("transformer_mt.files.replace._exchange", lambda one, other: False)
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.write(file, b"") == 0))  # fails if it is read-only
    for text in ("one", "two"):
        replace_text(tmp_path / "file", text)
        with replaced_folder(tmp_path / "folder") as aside:
            (aside / "inside").write_text(text)
    assert (tmp_path / "file").read_text() == (tmp_path / "folder" / "inside").read_text() == "two"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
    assert len(synced) == 4, "Windows syncs only what is open for writing, and no folders"


def test_a_file_that_another_program_reads_is_replaced_when_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "IS_WINDOWS", True)
    refusals = [PermissionError(13, "used by another process")] * 2
    really = Path.replace

    def refused_twice(self: Path, target: Path) -> Path:
        if refusals:
            raise refusals.pop()
        return really(self, target)

    monkeypatch.setattr(Path, "replace", refused_twice)
    replace_text(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "new"
    monkeypatch.setattr(system, "BUSY_SECONDS", 0.1)
    refusals += [PermissionError(13, "used by another process")] * 100
    with pytest.raises(PermissionError):
        replace_text(tmp_path / "file", "newer")
    assert (tmp_path / "file").read_text() == "new"


def test_a_run_is_renamed_while_none_of_its_files_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer_mt.training.run_directory.IS_WINDOWS", True)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("[]")
    run, really = RunDirectory(tmp_path / "run"), Path.rename
    links = Path("/proc/self/fd")

    def as_windows(self: Path, target: Path) -> Path:
        held = [link.resolve() for link in links.iterdir()] if links.exists() else []
        assert self / ".lock" not in held
        return really(self, target)

    monkeypatch.setattr(Path, "rename", as_windows)
    assert run.move_aside() == tmp_path / "run.1"
    run.close()


class Kernel:
    """The calls of kernel32 that the program makes, for processes 1 (runs), 2 (has ended) and 3 (of another user)."""

    def __init__(self) -> None:
        self.OpenProcess: Any = self._function(lambda access, inherit, pid: {1: 10, 2: 20}.get(pid, 0))
        self.GetCurrentProcess: Any = self._function(lambda: 10)
        self.closed: list[int] = []

    def _function(self, work: Any) -> Any:
        class Function(SimpleNamespace):
            def __call__(self, *arguments: Any) -> Any:
                return work(*arguments)

        return Function()

    def GetExitCodeProcess(self, handle: Any, code: Any) -> int:  # noqa: N802
        code._obj.value = 259 if handle.value == 10 else 0
        return 1

    def CloseHandle(self, handle: Any) -> None:  # noqa: N802
        self.closed.append(handle.value)

    def K32GetProcessMemoryInfo(self, process: Any, counters: Any, size: int) -> int:  # noqa: N802
        assert size == counters._obj.cb == ctypes.sizeof(counters._obj)
        counters._obj.PeakWorkingSetSize = 123_456
        return 1


def test_processes_and_memory_are_asked_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, errors = Kernel(), {"last": 5}
    monkeypatch.setattr(system, "IS_WINDOWS", True)
    monkeypatch.setattr(ctypes, "WinDLL", lambda name, **options: kernel, raising=False)
    monkeypatch.setattr(ctypes, "get_last_error", lambda: errors["last"], raising=False)
    assert [system.is_running(pid) for pid in (1, 2, 3)] == [True, False, True]
    errors["last"] = 87  # no such process
    assert not system.is_running(4)
    assert kernel.closed == [10, 20]
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_memory.peak_process_bytes() == 123_456


def test_memory_is_unknown_on_a_system_that_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.delattr(ctypes, "WinDLL", raising=False)
    assert peak_memory.peak_process_bytes() == 0
