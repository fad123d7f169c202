"""Files that never end, grow, or have lines of gigabytes: each costs bounded memory and time, and gets a message."""

from __future__ import annotations

import gzip
import io
import os
import threading
import zipfile
from pathlib import Path

import pytest

from transformer_mt.config.corpus import SplitConfig
from transformer_mt.corpora import tmx
from transformer_mt.corpora.aihub import AihubCorpus
from transformer_mt.corpora.tables import TsvCorpus
from transformer_mt.corpora.workbook import open_sheets
from transformer_mt.errors import TmtError
from transformer_mt.files.lines import LONGEST_LINE, read_lines
from transformer_mt.files.opening import open_bytes


def test_a_line_may_have_a_mebibyte_and_not_more(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_bytes(b"short\n" + b"x" * (LONGEST_LINE - 1) + b"\n" + b"last\n")
    assert [len(line) for _, line in read_lines(file)] == [5, LONGEST_LINE - 1, 4]
    file.write_bytes(b"short\n" + b"x" * LONGEST_LINE + b"\n")
    with pytest.raises(TmtError, match=r"lines\.txt:2: the line is longer than 1 MiB"):
        list(read_lines(file))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_an_endless_line_in_a_small_archive(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "lines.txt.gz"
    file.write_bytes(gzip.compress(("a\n" + "x" * (8 << 20)).encode(encoding)))
    with pytest.raises(TmtError, match="the line is longer than 1 MiB"):
        list(read_lines(file, encoding))


def test_a_json_file_of_one_line_may_be_longer(tmp_path: Path) -> None:
    import json

    file, pairs = tmp_path / "a.json", [{"ko": f"문장 {n}", "en": f"sentence {n}"} for n in range(30_000)]
    file.write_text(json.dumps({"data": pairs}), encoding="utf-8")
    assert file.stat().st_size > LONGEST_LINE
    options = AihubCorpus.Options(kind="aihub", files=(str(file),), split=SplitConfig())
    assert sum(1 for _ in AihubCorpus(options, "ko", "en").read("all")) == len(pairs)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero here")
def test_a_device_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "pairs.tsv"
    link.symlink_to("/dev/zero")
    for file in (link, Path("/dev/zero")):
        with pytest.raises(TmtError, match="this is a device, not a file"):
            list(read_lines(file))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_no_corpus_and_a_pipe_of_the_shell_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pairs.tsv"
    os.mkfifo(pipe)

    def corpus(file: str | Path) -> TsvCorpus:
        return TsvCorpus(TsvCorpus.Options(kind="tsv", files=(str(file),)), "en", "de")

    with pytest.raises(TmtError, match="this is a named pipe, not a file"):
        corpus(pipe).fetch()
    end, other = os.pipe()
    os.write(other, b"a\tb\n")
    os.close(other)
    from_shell = corpus(f"/dev/fd/{end}")
    from_shell.fetch()
    assert [pair[:2] for pair in from_shell.read("all")] == [("a", "b")]
    os.close(end)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_with_a_writer_is_read_where_one_reading_is_enough(tmp_path: Path) -> None:
    pipe = tmp_path / "lines.txt"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"one\ntwo\n",))
    writer.start()
    assert [line for _, line in read_lines(pipe, any_text=True)] == ["one", "two"]
    writer.join()


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_growing_file_ends_where_it_ended_when_it_was_opened(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"log{suffix}"
    line = b"a line of a log\n"
    written = line * 50_000
    file.write_bytes(written if not suffix else gzip.compress(written))
    with file.open("ab") as writer, open_bytes(file) as stream:
        number = 0
        while found := stream.readline():
            number += 1
            assert found == line
            assert number <= 100_000
            if number % 5_000 == 0:
                writer.write(written if not suffix else gzip.compress(written))
                writer.flush()
    assert number == 50_000


def test_a_workbook_that_unpacks_to_gigabytes(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", b"x")
    claimed = (2 << 30).to_bytes(4, "little")
    content = made.getvalue()
    directory = content.index(b"PK\x01\x02")
    file = tmp_path / "a.xlsx"
    file.write_bytes(content[: directory + 24] + claimed + content[directory + 28 :])  # the size when unpacked
    with pytest.raises(TmtError, match=r"the part xl/sharedStrings\.xml of the workbook has 2,048 MiB"):
        next(open_sheets(file))


def test_a_translation_memory_without_units_is_not_kept_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tmx, "MOST_WITHOUT_UNIT", 1 << 20)
    file = tmp_path / "a.tmx.gz"
    with gzip.open(file, "wb", compresslevel=1) as stream:
        stream.write(b"<tmx><body>")
        stream.write(b"<x/>" * (1 << 19))
    with pytest.raises(TmtError, match="no unit in 1 MiB"):
        list(tmx.read_units(file))
