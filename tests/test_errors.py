"""What the operating system refused, told so that a user knows what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from transformer_mt.errors import USER_FAULT, from_os_error


def refused(action) -> str:
    with pytest.raises(OSError) as error:
        action()
    told = from_os_error(error.value, "trying")
    assert told.exit_code == USER_FAULT
    return str(told)


def test_files_and_folders_in_place_of_each_other(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    folder_needed = "a file stands where a folder is needed while trying"
    assert folder_needed in refused(file.mkdir)
    assert folder_needed in refused((file / "inside").read_bytes)
    assert "a folder stands where a file is needed while trying" in refused(tmp_path.read_bytes)
    assert refused((tmp_path / "nothing").read_bytes).startswith(f"{tmp_path / 'nothing'}: no such file or folder")
