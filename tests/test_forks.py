"""Programs that a server forks end, read and write as those do that a new Python runs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.forks import PYTHON, executable

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="forks processes that use torch")]
ROOT = Path(__file__).resolve().parents[1]
WAITS = "import os, sys, time; print(os.getpid(), flush=True); time.sleep(100)"


@pytest.mark.parametrize(
    "program",
    [
        "import sys; print(sys.stdin.read(), sys.argv, __name__)",
        "import sys; print('said', file=sys.stderr); sys.exit(3)",
        "import sys; sys.exit('what went wrong')",
        "import atexit, threading; atexit.register(print, 'last'); threading.Timer(0.1, print, ['thread']).start()",
        "1 / 0",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import os; print(os.getcwd(), os.environ['WORD'].encode(errors='surrogateescape'))",
        "import sys; sys.exit(-1)",
        "import sys; sys.stdout.close()",
        "import sys; print(sys.stdout is sys.__stdout__, 'Path' in vars(), repr(sys.stdin.read()))",
        "def f(x: Undefined): pass",
        "import os; print('lost'); os.close(1)",
    ],
)
def test_it_ends_and_writes_as_a_new_python_does(program: str, tmp_path: Path) -> None:
    ended = []
    for python in (PYTHON, [sys.executable], [executable(), "-u"]):
        command = [*python, "-c", program, "first", "the second"]
        environment = {**os.environ, "WORD": "wörd\udcff"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, input="te\rxt\n", capture_output=True, text=True)
        ended.append((done.returncode, done.stdout, done.stderr.splitlines()[-1:]))
    assert ended[0] == ended[1] == ended[2]


def test_it_is_a_fork_unless_its_environment_asks_for_a_new_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    program = "import sys; print('torch' in sys.modules, __import__('transformer_mt').__file__)"

    def run(folder: Path = tmp_path, **environment: str) -> str:
        command = [*PYTHON, "-c", program]
        return subprocess.run(
            command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=True
        ).stdout

    assert run().startswith("True")
    assert run(COLUMNS="99").startswith("True")
    assert run(PYTHONHASHSEED="3").startswith("False")
    (tmp_path / "copy" / "transformer_mt").mkdir(parents=True)
    (tmp_path / "copy" / "transformer_mt" / "__init__.py").touch()
    assert run(tmp_path / "copy") == f"False {tmp_path / 'copy' / 'transformer_mt' / '__init__.py'}\n"


def test_it_has_imported_the_package_but_no_program_of_it() -> None:
    names = ("workflows.train", "serving.app", "cli.translate", "cli.main", "__main__")
    program = f"import sys; print(*('transformer_mt.' + name in sys.modules for name in {names}))"
    done = subprocess.run([*PYTHON, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 3 + ["False"] * 2


def test_without_its_server_it_is_a_new_python() -> None:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as gone:
        gone.bind(f"{folder}/socket")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "PASSIVE"}
        Path(folder, "server.json").write_text(json.dumps([os.getpid(), environment]), encoding="utf-8")
        command = [*PYTHON, "-c", "import sys; print('torch' in sys.modules)"]
        environment = {**os.environ, "TMT_TEST_FORKS": folder}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_for_the_command_reach_the_program(number: int) -> None:
    with subprocess.Popen([*PYTHON, "-c", WAITS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        program = int(process.stdout.readline())
        process.send_signal(number)
        assert process.wait(30) == -number
        assert program != process.pid, "no fork"
        deadline = time.monotonic() + 30
        while Path(f"/proc/{program}").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
