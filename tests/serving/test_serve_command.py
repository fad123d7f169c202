"""`tmt serve` as a process: it starts, is used by programs of others, and ends; its messages."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from libretranslatepy import LibreTranslateAPI

from tests.forks import PYTHON
from transformer_mt.cli.main import main
from transformer_mt.errors import TmtError
from transformer_mt.serving import run as running
from transformer_mt.serving import start

ROOT = Path(__file__).resolve().parents[2]
TMT = [*PYTHON, "-m", "transformer_mt"]


class Serving:
    """A server process; `lines` are what it has printed when it serves."""

    def __init__(self, model: Path, *options: str) -> None:
        command = [*TMT, "serve", "--model", str(model), "--port", "0", "--threads", "1", "--device", "cpu", *options]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("try"):
                break
        found = re.search(r"^page +(http://\S+)$", "\n".join(self.lines), re.MULTILINE)
        assert found, self.process.communicate()
        self.url = found[1]

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Exit code and stderr after a signal."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


@contextmanager
def serving(model: Path, *options: str) -> Iterator[Serving]:
    server = Serving(model, *options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()


@pytest.fixture(scope="module")
def server(tiny_model: Path) -> Iterator[Serving]:
    with serving(tiny_model) as one:
        yield one


def pasted(server: Serving) -> str:
    """What the printed request answers in a shell."""
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    command = server.lines[-1].removeprefix("try").strip()
    found = subprocess.run(["bash", "-c", f"{command} --silent"], capture_output=True, text=True, check=True)
    return found.stdout


def test_the_printed_request_works_as_it_is_pasted(server: Serving) -> None:
    answer = json.loads(pasted(server))
    assert answer["source"] == "en"
    assert answer["translations"][0]["lines"][0]["source"] == "The cat is small."


def test_the_client_of_libretranslate_works_unchanged(server: Serving) -> None:
    client = LibreTranslateAPI(server.url)
    assert client.languages() == [{"code": "en", "name": "English", "targets": ["de"]}]
    assert isinstance(client.translate("a cat", "en", "de"), str)
    assert client.detect("Das Wetter ist heute schön im Garten.")[0]["language"] == "de"


def test_a_second_server_on_the_port_is_refused(
    server: Serving, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = server.url.rpartition(":")[2]
    assert main(["serve", "--model", str(tiny_model), "--port", port]) == 2
    assert f"port {port} is in use" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("platform", "port", "named"), [("darwin", 5000, True), ("darwin", 5001, False), ("linux", 5000, False)]
)
def test_a_mac_holds_the_usual_port_for_airplay(
    platform: str, port: int, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformer_mt.serving.run.sys.platform", platform)
    error = running._refused_socket(OSError(errno.EADDRINUSE, "in use"), "127.0.0.1", port)
    assert ("AirPlay" in error.remedy) == named
    assert f"--port {port + 1}" in error.remedy


def slow_request(url: str) -> Callable[[], int]:
    """Send a request whose body ends later; returns what ends it and gives the status of the answer."""
    body = json.dumps({"text": "a cat"}).encode()
    connection = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=30)
    head = "POST /v1/translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:3])

    def end() -> int:
        with connection:
            connection.sendall(body[3:])
            return int(connection.recv(65_536).split()[1])

    return end


def test_with_few_open_files_there_are_fewer_connections(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise accepting one more fails without end."""
    limits = [256, 256]
    monkeypatch.setattr("resource.getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr("resource.setrlimit", lambda _, wanted: limits.__setitem__(slice(None), wanted))
    assert running.allowed_connections() == 256 - 64
    assert "at most 192 connections at once" in capsys.readouterr().err
    limits[:] = [256, 4096]
    assert running.allowed_connections() == running.CONNECTIONS
    assert limits == [964, 4096]
    limits[:] = [1024, 1024]
    assert running.allowed_connections() == running.CONNECTIONS
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_lets_it_finish_what_is_under_way_and_refuse_what_is_new(tiny_model: Path, number: int) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("these tests run under nohup, which ignores the end of the terminal")
    with serving(tiny_model) as server:
        idle = socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])))
        finish = slow_request(server.url)
        urllib.request.urlopen(f"{server.url}/health", timeout=30).read()  # so the head has arrived
        ended: list[tuple[int, str]] = []
        waiting = threading.Thread(target=lambda: ended.append(server.end(number)))
        waiting.start()
        end = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"{server.url}/health", timeout=30).read()
            except OSError:
                break
            assert time.monotonic() < end
        assert finish() == 200
        waiting.join()
        idle.close()
    assert ended == [(0, "")]


def test_the_printed_request_has_a_key_from_the_file(tiny_model: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("# ours\nfirst\n\nsecond\n", encoding="utf-8")
    keys.chmod(0o600)
    with serving(tiny_model, "--api-key-file", str(keys)) as server:
        assert "translations" in json.loads(pasted(server))
        client = LibreTranslateAPI(server.url, api_key="second")
        assert isinstance(client.translate("a cat", "en", "de"), str)
        assert server.end() == (0, "")


def test_what_is_not_safe_is_noted(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "run", lambda *_: None)
    common = ["serve", "--model", str(tiny_model), "--port", "0"]
    assert main([*common, "--host", "0.0.0.0"]) == 0
    assert "all may use it" in capsys.readouterr().err
    keys = tmp_path / "keys"
    keys.write_text("key\n", encoding="utf-8")
    keys.chmod(0o644)
    assert main([*common, "--host", "0.0.0.0", "--api-key-file", str(keys)]) == 0
    noted = capsys.readouterr().err
    assert "chmod 600" in noted
    assert "all may use it" not in noted
    assert main(common) == 0
    assert capsys.readouterr().err == ""


def problem(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["serve", *options]) == 2
    return capsys.readouterr().err


def test_what_cannot_be_served_has_a_message(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, port = ("--model", str(tiny_model)), ("--port", "0")
    assert "no such model folder" in problem(capsys, *port, "--model", str(tmp_path / "none"))
    assert "two models translate en-de" in problem(capsys, *port, *model, *model)
    assert "unknown engine 'x'" in problem(capsys, *port, *model, "--engine", "x")
    assert "is unknown" in problem(capsys, *port, *model, "--host", "no.such.host.invalid")
    assert "does not have the address" in problem(capsys, *port, *model, "--host", "192.0.2.1")
    assert "65535" in problem(capsys, *model, "--port", "70000")
    assert "'https://a.de/b' is not an origin" in problem(capsys, *port, *model, "--allow-origin", "https://a.de/b")
    for wrong in ("a.de", "http://[::1", "https://*.a.de", "https://a.de:x", "https://a.de#x"):
        assert f"'{wrong}' is not an origin" in problem(capsys, *port, *model, "--allow-origin", wrong)
    assert "'http://a.de' is not the name" in problem(capsys, *port, *model, "--allow-host", "http://a.de")
    assert "'a.de:80' is not the name" in problem(capsys, *port, *model, "--allow-host", "a.de:80")
    assert "--max-queue" in problem(capsys, *port, *model, "--max-queue", "10")
    assert "no such" in problem(capsys, *port, *model, "--api-key-file", str(tmp_path / "none"))
    keys = tmp_path / "keys"
    for text, message in (("", "no key in this file"), ("# a\n", "no key in this file"), ("a\nb c\n", "keys:2")):
        keys.write_text(text, encoding="utf-8")
        assert message in problem(capsys, *port, *model, "--api-key-file", str(keys))


def test_a_port_that_needs_an_administrator_has_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(TmtError, match="ports below 1024 need the rights") as refused:
        running.open_socket("127.0.0.1", 80)
    assert "--port 5000" in refused.value.remedy


def test_a_missing_package_has_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "PACKAGES", ("starlette", "no_such_package"))
    with pytest.raises(TmtError, match="no_such_package") as missing:
        start.serve((), "tmt", start.Computing(), start.Address(), start.Limits(), None)
    assert "pip install starlette uvicorn httptools prometheus-client" in missing.value.remedy


def test_origins_are_as_browsers_write_them() -> None:
    given = "https://A.de/", "http://a.de:80", "https://a.de:443", "https://a.de:8443", "http://[::1]:3000", "*", "null"
    written = ["https://a.de", "http://a.de", "https://a.de", "https://a.de:8443", "http://[::1]:3000", "*", "null"]
    assert start.Address(origins=given).known_origins() == written
