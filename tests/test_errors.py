"""Errors of the operating system have a message with a remedy."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

import pytest

from transformer_mt.errors import USER_FAULT, TmtError, from_os_error


def message_of(action) -> str:
    with pytest.raises(OSError) as raised:
        action()
    error = from_os_error(raised.value, "trying")
    assert error.exit_code == USER_FAULT
    assert error.remedy
    return str(error)


def test_a_file_instead_of_a_folder_and_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    folder_needed = "found a file instead of a folder while trying"
    assert folder_needed in message_of(file.mkdir)
    assert folder_needed in message_of((file / "inside").read_bytes)
    assert "found a folder instead of a file while trying" in message_of(tmp_path.read_bytes)
    assert message_of((tmp_path / "nothing").read_bytes).startswith(f"{tmp_path / 'nothing'}: no such file or folder")


def test_a_link_to_nothing_and_a_read_only_disk_are_called_that(tmp_path: Path) -> None:
    link = tmp_path / "runs"
    link.symlink_to(tmp_path / "gone")
    assert f"{link}: found a link to nothing while trying" in message_of(link.mkdir)
    error = OSError(errno.EROFS, "Read-only file system", "runs")
    assert "the file system is read-only while trying" in str(from_os_error(error, "trying"))


def test_without_a_folder_for_temporary_files_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])
    for action in (tempfile.gettempdir, tempfile.mkdtemp):
        said = message_of(action)
        assert said.startswith("no folder for temporary files can be written while trying")
        assert "Set TMPDIR" in said


def test_a_strangers_file_cannot_control_the_terminal_through_a_message() -> None:
    said = str(TmtError("unknown key '\x1b[2J\x9b'", place="a\x07.yaml", remedy="One.\n\tTwo."))
    assert said == "a\\x07.yaml: unknown key '\\x1b[2J\\x9b'\n  One.\n\tTwo."
