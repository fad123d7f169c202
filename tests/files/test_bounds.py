"""Files that never end, grow, or have lines of gigabytes: each costs bounded memory and time, and gets a message."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from tests.fuzz.targets import limited
from transformer_mt.config.corpus import SplitConfig
from transformer_mt.corpora import tmx
from transformer_mt.corpora import workbook as corpora_workbook
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


def test_units_that_each_stand_in_an_element_are_not_kept_in_memory(tmp_path: Path) -> None:
    file = tmp_path / "a.tmx.gz"
    with gzip.open(file, "wb", compresslevel=1) as stream:
        stream.write(b"<tmx>")
        for _ in range(300):
            stream.write((b'<a text="' + b"x" * 4_000 + b'"><tu/></a>') * 100)
        stream.write(b"</tmx>")
    with limited(memory=1 << 26):
        assert sum(1 for _ in tmx.read_units(file)) == 30_000


def test_a_unit_with_too_many_variants_is_skipped_and_counted(tmp_path: Path) -> None:
    def unit(variants: int) -> str:
        sides = "".join(f'<tuv xml:lang="{one}"><seg>{one}</seg></tuv>' for one in ("en", "de")) * variants
        return f"<tu>{sides}</tu>"

    file = tmp_path / "a.tmx"
    file.write_text(f"<tmx><body>{unit(1)}{unit(40)}{unit(1)}</body></tmx>", encoding="utf-8")
    corpus = tmx.TmxCorpus(tmx.TmxCorpus.Options(kind="tmx", files=(str(file),)), "en", "de")
    assert [pair[:2] for pair in corpus.read("all")] == [("en", "de")] * 2
    assert [(rows.rows, rows.reason) for rows in corpus.skipped()] == [(1, "more than 1,000 pairs in one")]


SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{}</sheetData></worksheet>'
)


def workbook(file: Path, rows: str) -> Path:
    """A workbook with these rows in its only sheet, which openpyxl would not write."""
    from openpyxl import Workbook

    made = io.BytesIO()
    Workbook().save(made)
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            is_sheet = name.startswith("xl/worksheets/")
            new.writestr(name, SHEET.format(rows) if is_sheet else old.read(name))
    return file


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ('<row r="999999999"><c><v>1</v></c></row>', r"a\.xlsx\[Sheet\]:100001: the sheet has more than 100,000 rows"),
        ('<row><c r="XFD1"/></row>' * 100, r"the sheet has more than 1,000,000 empty cells"),
    ],
    ids=["rows", "columns"],
)
def test_a_workbook_that_claims_to_be_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: str, said: str
) -> None:
    monkeypatch.setattr(corpora_workbook, "MOST_ROWS", 100_000)
    monkeypatch.setattr(corpora_workbook, "MOST_MISSING", 1_000_000)
    file = workbook(tmp_path / "a.xlsx", rows)
    with pytest.raises(TmtError, match=said):
        [list(found) for _, found in open_sheets(file)]


only_linux = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="only Linux limits the memory of a process"
)


def in_new_process(code: str, *arguments: Path) -> None:
    """Run the code in a process without freed memory, which would be taken first."""
    subprocess.run([sys.executable, "-c", code, *map(str, arguments)], check=True, timeout=120)


@only_linux
def test_a_workbook_that_fills_the_memory(tmp_path: Path) -> None:
    file = workbook(tmp_path / "a.xlsx", f'<row><c t="inlineStr"><is><t>{"x" * (1 << 26)}</t></is></c></row>')
    assert file.stat().st_size < 1 << 18
    in_new_process(
        """
import sys
from pathlib import Path
from transformer_mt.corpora import workbook
from transformer_mt.errors import TmtError

workbook.MOST_MEMORY = 1 << 25
try:
    [list(rows) for _, rows in workbook.open_sheets(Path(sys.argv[1]))]
except TmtError as error:
    assert "reading the workbook needs more than" in str(error), error
else:
    raise AssertionError("it was read")
""",
        file,
    )


@only_linux
def test_a_limit_of_memory_ends_with_its_last_block() -> None:
    in_new_process(
        """
import resource
from transformer_mt.files.memory import MemoryLimit

def is_refused():
    try:
        bytearray(1 << 26)
    except MemoryError:
        return True
    return False

before = resource.getrlimit(resource.RLIMIT_AS)
with MemoryLimit(1 << 24):
    with MemoryLimit(1 << 30):
        assert is_refused(), "the first limit holds"
    assert is_refused()
assert resource.getrlimit(resource.RLIMIT_AS) == before
assert len(bytearray(1 << 26)) == 1 << 26
"""
    )
