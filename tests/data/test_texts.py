"""Lines that stay on disk: the same as those of a list, whatever the size of the blocks they are found in."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.data import texts
from transformer_mt.data.texts import Lines
from transformer_mt.errors import TmtError

TEXT = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=8)


@given(lines=st.lists(TEXT, max_size=70), block=st.integers(1, 40), ends=st.booleans())
def test_lines_are_those_of_the_file(lines: list[str], block: int, ends: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "READ_BYTES", block)
        file = Path(folder) / "text.txt"
        if not ends and lines:
            lines[-1] += "."  # an empty last line without an end is no line
        file.write_text("\n".join(lines) + ("\n" if ends and lines else ""), encoding="utf-8", newline="\n")
        found = Lines(file, "Prepare it again.")
        assert len(found) == len(lines)
        assert list(found) == lines
        assert found[1:5:2] == lines[1:5:2]
        with pytest.raises(IndexError):
            found[len(lines)]


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be replaced there")
def test_lines_are_those_of_the_file_that_was_opened(tmp_path: Path) -> None:
    file, other = tmp_path / "text.txt", tmp_path / "other.txt"
    file.write_text("one\ntwo\n", encoding="utf-8")
    found = Lines(file, "Prepare it again.")
    other.write_text("a longer first line\n", encoding="utf-8")
    other.replace(file)
    assert list(found) == ["one", "two"]


def test_damage_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    with pytest.raises(TmtError, match=r"text.txt: a file of the prepared data is missing"):
        Lines(file, "Prepare it again.")
    file.write_bytes(b"good\nbad \xff\n")
    lines = Lines(file, "Prepare it again.")
    assert lines[0] == "good"
    with pytest.raises(TmtError, match=r"(?s)text.txt: .* not UTF-8.*Prepare it again"):
        lines[1]
