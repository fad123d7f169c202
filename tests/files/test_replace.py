"""Replacing files and folders: killed at any moment, with a full disk, through links."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from transformer_mt.files import replace
from transformer_mt.files.replace import recover, remove_leftovers, replace_text, replaced_file, replaced_folder

pytestmark = pytest.mark.slow

OLD = {"weights": "old", "notes.txt": "unchanged", "deep/inside": "old too"}
NEW = {"weights": "new", "notes.txt": "unchanged", "deep/inside": "new too"}


def write(folder: Path, content: dict[str, str]) -> None:
    for name, text in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def content_of(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


# A child process does one replacement and is killed at its n-th step: an audit event of Python, such as a system call,
# or a line of the replacing code. It exits with 0 if n is larger than the number of steps.
KILLED = textwrap.dedent(
    """
    import os, pathlib, signal, sys
    from transformer_mt.files import replace

    work, folder, can_exchange = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3] == "exchange"
    new = {"weights": "new", "notes.txt": "unchanged", "deep/inside": "new too"}
    is_child, count, last = False, 0, 0

    def step():
        global count
        count += 1
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(event, arguments):
        if is_child and event.split(".")[0] in ("os", "open", "shutil"):
            step()

    def trace(frame, event, argument):
        if frame.f_code.co_filename in (replace.__file__, os.__file__.replace("os.py", "shutil.py")):
            step()
            return trace

    exchange = replace._exchange
    replace._exchange = lambda one, other: can_exchange and exchange(one, other)
    sys.addaudithook(audit)

    def once():
        if work == "file":
            replace.replace_text(folder / "weights", "new")
            return
        with replace.replaced_folder(folder) as aside:
            for name, text in new.items():
                (aside / name).parent.mkdir(parents=True, exist_ok=True)
                (aside / name).write_text(text)

    old = {"weights": "old", "notes.txt": "unchanged", "deep/inside": "old too"}
    while True:
        last += 1
        child = os.fork()
        if not child:
            is_child = True
            sys.settrace(trace)
            once()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        replace.recover(folder)
        found = {f.relative_to(folder).as_posix(): f.read_text() for f in folder.rglob("*") if f.is_file()}
        found = {name: text for name, text in found.items() if not name.startswith(".")}
        expected = (old, new) if work == "folder" else (old, {**old, "weights": "new"})
        assert found in expected, (last, found)
        replace.remove_leftovers(folder.parent)
        replace.remove_leftovers(folder)
        assert [f.name for f in folder.parent.iterdir()] == [folder.name], list(folder.parent.iterdir())
        for name, text in old.items():
            (folder / name).write_text(text)
        if status == 0:
            break
    print(last)
    """
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("work", "how"), [("file", "exchange"), ("folder", "exchange"), ("folder", "two renames")])
def test_a_kill_at_any_moment_leaves_the_old_or_the_new_state(tmp_path: Path, work: str, how: str) -> None:
    folder = tmp_path / "model"
    write(folder, OLD)
    command = [sys.executable, "-W", "error", "-c", KILLED, work, str(folder), how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > (15 if work == "file" else 60)


def test_a_folder_that_a_killed_process_moved_aside_is_restored(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    write(tmp_path / f".model.{int(ended.stdout)}.old", OLD)
    remove_leftovers(tmp_path)
    recover(tmp_path / "model")
    assert content_of(tmp_path) == {f"model/{name}": text for name, text in OLD.items()}


def test_a_hidden_file_of_the_user_is_not_a_leftover(tmp_path: Path) -> None:
    for name in (".out.txt.new", ".out.txt.old", ".new"):
        (tmp_path / name).write_text("mine", encoding="utf-8")
    replace_text(tmp_path / "out.txt", "text")
    remove_leftovers(tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    for mode in (0o600, 0o640, 0o444):
        file.touch()
        file.chmod(mode)
        replace_text(file, "text")
        assert file.stat().st_mode & 0o777 == mode


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_a_replaced_folder_keeps_its_permissions(tmp_path: Path) -> None:
    """Others may not read a private model."""
    folder = tmp_path / "model"
    folder.mkdir(mode=0o700)
    with replaced_folder(folder) as aside:
        (aside / "config.yaml").touch()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_files_of_a_running_process_are_not_leftovers(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        write(tmp_path / f".model.{other.pid}.old", OLD)
        write(tmp_path / f".model.{other.pid}.new", NEW)
        recover(tmp_path / "model")
        remove_leftovers(tmp_path)
        assert len(list(tmp_path.iterdir())) == 2
        other.communicate(b"\n")


@pytest.mark.parametrize("exchange", [True, False])
def test_a_failure_leaves_the_folder_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool) -> None:
    if not exchange:
        monkeypatch.setattr(replace, "_exchange", lambda one, other: False)
    write(tmp_path / "model", OLD)

    def fail() -> None:
        with replaced_folder(tmp_path / "model") as aside:
            write(aside, NEW)
            raise OSError(errno.ENOSPC, "the disk is full")

    with pytest.raises(OSError, match="disk") as error:
        fail()
    assert error.value.filename == str(tmp_path / "model"), "that of a write names none"
    assert content_of(tmp_path) == {f"model/{name}": text for name, text in OLD.items()}
    with replaced_folder(tmp_path / "model") as aside:
        write(aside, NEW)
    assert content_of(tmp_path) == {f"model/{name}": text for name, text in NEW.items()}


def test_a_refused_second_rename_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replace, "_exchange", lambda one, other: False)
    write(tmp_path / "model", OLD)
    rename = Path.replace

    def refuse(path: Path, target: Path) -> Path:
        if path.name.endswith(".new"):
            raise PermissionError(errno.EACCES, "denied", str(path))
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError), replaced_folder(tmp_path / "model") as aside:
        write(aside, NEW)
    assert content_of(tmp_path) == {f"model/{name}": text for name, text in OLD.items()}


def test_links_are_followed(tmp_path: Path) -> None:
    write(tmp_path / "real", OLD)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").symlink_to(tmp_path / "real" / "weights")
    with replaced_folder(tmp_path / "link") as aside:
        write(aside, NEW)
    replace_text(tmp_path / "file", "newest")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").is_symlink()
    assert content_of(tmp_path / "real") == {**NEW, "weights": "newest"}


def test_content_is_synced_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    sync = replace._sync
    monkeypatch.setattr(replace, "_sync", lambda path: (synced.append(path.name), sync(path)))
    with replaced_file(tmp_path / "file") as aside:
        aside.write_text("content", encoding="utf-8")
    assert [name.split(".")[-1] for name in synced] == ["new", tmp_path.name.split(".")[-1]]
    synced.clear()
    with replaced_folder(tmp_path / "folder") as aside:
        write(aside, NEW)
    assert {"weights", "notes.txt", "inside", "deep"} <= set(synced)
    assert synced[-1] == tmp_path.name


def test_threads_can_replace_the_same_file(tmp_path: Path) -> None:
    texts = [letter * 10_000 for letter in "abcd"]

    def work(text: str) -> None:
        for _ in range(30):
            replace_text(tmp_path / "file", text)

    with ThreadPoolExecutor(len(texts)) as threads:
        list(threads.map(work, texts))
    assert (tmp_path / "file").read_text() in texts
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_errors_name_what_is_replaced_and_not_a_temporary_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        replace_text(tmp_path / "none" / "file", "text")
    assert caught.value.filename == str(tmp_path / "none" / "file")
    with pytest.raises(FileNotFoundError) as caught, replaced_folder(tmp_path / "folder") as aside:
        (aside / "none" / "file").write_text("text")
    assert caught.value.filename == str(tmp_path / "folder" / "none" / "file")
