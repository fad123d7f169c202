"""Starts Python programs for tests without importing PyTorch each time, which takes a processor two seconds.

One process, the server, imports PyTorch, other packages and ours once, and forks for each program.
Tests write `PYTHON` in a command where they would write `sys.executable`:

    subprocess.run([*PYTHON, "-m", "transformer_mt", "translate", "hello"])

The program has the arguments, folder, environment, stdin, stdout and stderr of this command. It gets the signals of the
command, and the command ends as it does. If the command is killed, so is the program. A command with other variables
that Python reads when it starts, such as `PYTHONHASHSEED`, gets a new Python. A test names `sys.executable` if it is
about imports, the start or the end of Python itself, limits, groups of processes, or the moment at which a killed one
is gone. Strings have the same hashes in all forks.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import threading
import types
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import NoReturn, TextIO

PYTHON = (sys.executable, "-IS", __file__)  # without `site`, this file starts in 20 ms
ROOT = Path(__file__).resolve().parents[1]
_FOLDER = "TMT_TEST_FORKS"  # the variable that names the folder of the server's socket and environment
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_READ_AT_START = ("PYTHON", "OMP_", "MKL_", "MPL", "COV", "LD_")  # beginnings of names
_PACKAGES = ("torch._dynamo", "torch.distributed.nn", "torch.nn.attention.flex_attention", "safetensors.torch")
_PACKAGES += ("matplotlib.pyplot", "pydantic.main", "regex", "sacrebleu", "sentencex", "tabulate", "tqdm", "yaml")
_PROGRAMS = ("transformer_mt.__main__", "transformer_mt.cli.main")  # these must not be imported before they run
_DIFFERENT = {"PYTHON_EXEC", "OMP_WAIT_POLICY", "MPLBACKEND"}  # these may differ


def set_up() -> None:
    """Lets commands of this process and its children use a server. It starts with the first one, and ends with us."""
    if _FOLDER not in os.environ and sys.platform == "linux":
        folder = tempfile.mkdtemp(prefix="forks-")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "PASSIVE"}  # as `tmt` sets it
        (Path(folder) / "server.json").write_text(json.dumps([os.getpid(), environment]), encoding="utf-8")
        program = Path(folder) / "python"
        program.write_text(f'#!/bin/sh\nexec {shlex.join(PYTHON)} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        os.environ[_FOLDER] = folder


def tear_down() -> None:
    """Removes what `set_up` has made."""
    folder = Path(os.environ.get(_FOLDER, ""))
    if (folder / "server.json").is_file() and json.loads((folder / "server.json").read_text())[0] == os.getpid():
        shutil.rmtree(folder)
        del os.environ[_FOLDER]


def executable() -> str:
    """The path of a program that does the same, for a search path and for `PYTHON_EXEC` of torchrun."""
    return str(Path(os.environ[_FOLDER]) / "python") if _FOLDER in os.environ else sys.executable


# ---- the command: a small process that stands for the program ----


def _command(arguments: list[str]) -> NoReturn:
    """Has the arguments run by a fork of the server, or becomes a new Python with them."""
    folder = os.environ.get(_FOLDER)
    if folder and (arguments[1:2] if arguments[:1] == ["-u"] else arguments[:1]) in (["-m"], ["-c"]):
        parent, environment = json.loads((Path(folder) / "server.json").read_text(encoding="utf-8"))
        if _is_usual(environment):
            with _connected(Path(folder), parent, environment) as server:
                signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)  # until they can be forwarded
                with contextlib.suppress(OSError, EOFError):  # there is no server any more
                    _stand_for(server, _started(server, arguments))
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    os.execv(sys.executable, [sys.executable, *arguments])


def _is_usual(server: dict[str, str]) -> bool:
    """Whether a new Python would start here with the settings of the server."""
    here = {"PYTHONPATH": str(ROOT), **os.environ}
    names = {name for name in (*server, *here) if name.startswith(_READ_AT_START)} - _DIFFERENT
    is_a_copy = Path.cwd() != ROOT and Path("transformer_mt").exists()
    is_equal = all(server.get(name) == here.get(name) for name in names)
    return is_equal and not is_a_copy and _encoding(server) == _encoding(here)


def _encoding(environment: dict[str, str]) -> str:
    """The encoding of the environment's locale, as in C.UTF-8, which Python takes if none is named."""
    locale = next(filter(None, map(environment.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "C.UTF-8")
    return locale.rpartition(".")[2].lower()


def _connected(folder: Path, parent: int, environment: dict[str, str]) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    with (folder / "lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if (folder / "socket").exists():
            with contextlib.suppress(ConnectionRefusedError):  # writing to it fails then
                server.connect(str(folder / "socket"))
        else:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(folder / "socket"))
                listener.listen(64)
                started = os.fork()
                if not started:
                    os.setsid()
                    os.dup2(listener.fileno(), 0)
                    for stream in (1, 2):
                        os.dup2(os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
                    os.closerange(3, 1024)
                    os.execve(sys.executable, [sys.executable, __file__, "--serve", str(parent)], environment)
            server.connect(str(folder / "socket"))
    return server


def _started(server: socket.socket, arguments: list[str]) -> int:
    """Starts a program; returns its process number. Raises ConnectionError or EOFError if the server has ended."""
    request = json.dumps([arguments, str(Path.cwd()), dict(os.environ)]).encode()
    socket.send_fds(server, [len(request).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(request)
    return int.from_bytes(_received(server, 4), "big")


def _stand_for(server: socket.socket, program: int) -> NoReturn:
    def forward(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(program, number)

    for number in _FORWARDED:
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    try:
        _end(int.from_bytes(_received(server, 4), "big", signed=True))
    except (ConnectionError, EOFError):
        sys.exit("the server that runs the programs of the tests has ended")


def _end(code: int) -> NoReturn:
    """Ends this process with an exit code, or by the signal whose number is -`code`."""
    if code < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


# ---- the server ----


def _serve(parent: int) -> None:
    """Forks a keeper for each connection until `parent` has ended. Stdin is the socket where they arrive."""
    listener = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _import_packages()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a keeper
    tests = os.pidfd_open(parent)
    while _first_of(listener.fileno(), tests) == listener.fileno():
        connection, _ = listener.accept()
        if not os.fork():
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _keep(connection)
        connection.close()


def _import_packages() -> None:
    import importlib

    own = (file.relative_to(ROOT).with_suffix("").parts for file in sorted((ROOT / "transformer_mt").rglob("*.py")))
    names = (".".join(parts).removesuffix(".__init__") for parts in own)
    for name in (*_PACKAGES, *(name for name in names if name not in _PROGRAMS)):
        with contextlib.suppress(Exception):  # not installed; or broken, which the program then says itself
            importlib.import_module(name)


def _first_of(*descriptors: int) -> int:
    """The first of these that can be read, or is closed; a process can be read when it has ended."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return poll.poll()[0][0]


def _keep(connection: socket.socket) -> NoReturn:
    """Starts the program of a connection, and tells how it ends; kills it if the command ends before."""
    size, descriptors, _, _ = socket.recv_fds(connection, 4, 3)
    request = json.loads(_received(connection, int.from_bytes(size, "big")))
    program = os.fork()
    if not program:
        connection.close()
        _become(descriptors, *request)
    for descriptor in descriptors:
        os.close(descriptor)
    with contextlib.suppress(OSError):  # the command has ended
        connection.sendall(program.to_bytes(4, "big"))
    if _first_of(os.pidfd_open(program), connection.fileno()) == connection.fileno():
        os.kill(program, signal.SIGKILL)
    _, status = os.waitpid(program, 0)
    with contextlib.suppress(OSError):
        connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
    os._exit(0)


def _become(descriptors: list[int], arguments: list[str], folder: str, environment: dict[str, str]) -> NoReturn:
    """Runs the program in this process, which it finds nearly as it would find a new Python, to its end."""
    import numpy as np

    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if at_once := arguments[0] == "-u":  # torchrun starts its processes so
        arguments = arguments[1:]
    at_once |= bool(environment.get("PYTHONUNBUFFERED"))
    read = open(0, encoding=sys.stdin.encoding, errors=sys.stdin.errors, newline="\n", closefd=False)  # noqa: SIM115
    sys.stdin = sys.__stdin__ = read
    sys.stdout = sys.__stdout__ = _written(1, sys.stdout, at_once, os.isatty(1))
    sys.stderr = sys.__stderr__ = _written(2, sys.stderr, at_once, lines=True)
    tempfile.tempdir = None
    np.random.seed()
    code = _run(arguments)
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as Python does before it ends
    atexit._run_exitfuncs()
    try:
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except OSError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        code = 120  # as Python ends then
    _end(code)


def _written(number: int, like: TextIO, at_once: bool, lines: bool) -> TextIO:
    """The standard stream of a descriptor."""
    stream = open(number, "wb", 0 if at_once else -1, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(stream, like.encoding, like.errors, "\n", line_buffering=lines, write_through=at_once)


def _run(arguments: list[str]) -> int:
    """The exit code of a program, or the negative number of the signal that ends it."""
    kind, what, *rest = arguments
    sys.path[0] = str(Path.cwd()) if kind == "-m" else ""
    sys.argv = [kind, *rest]
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    try:
        if kind == "-m":
            runpy._run_module_as_main(what)  # type: ignore[attr-defined]  # it is what `python -m` does
        else:
            exec(compile(what, "<string>", "exec", dont_inherit=True), main.__dict__)
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            return (leaving.code or 0) & 0xFF
        print(leaving.code, file=sys.stderr)
        return 1
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        _serve(int(sys.argv[2]))
    else:
        _command(sys.argv[1:])
