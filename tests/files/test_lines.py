"""Lines of plain and compressed files, and a clear word with file and line for every way a file can be broken."""

from __future__ import annotations

import gc
import gzip
import lzma
import os
import sys
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from transformer_mt.errors import TmtError
from transformer_mt.files.encodings import guessed_encoding
from transformer_mt.files.lines import read_lines

LINES = [f"Zeile {number}: 안녕 \u2028 Grüße" for number in range(5_000)]
TEXT = "".join(f"{line}\n" for line in LINES).encode()

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,  # like the program zstd
}
PACKED = [name for name in PACKERS if name != "plain"]


def _write(folder: Path, content: bytes, name: str = "text.txt") -> Path:
    file = folder / name
    file.write_bytes(content)
    return file


def _error(file: Path, encoding: str = "utf-8") -> TmtError:
    with pytest.raises(TmtError) as caught:
        for _ in read_lines(file, encoding):
            pass
    return caught.value


@pytest.mark.parametrize("packer", PACKERS)
def test_every_compression_gives_the_same_numbered_lines(tmp_path: Path, packer: str) -> None:
    file = _write(tmp_path, PACKERS[packer](TEXT), f"text.{packer}")
    assert list(read_lines(file)) == list(enumerate(LINES, start=1))


@pytest.mark.parametrize("packer", PACKED)
def test_concatenated_compressed_parts_are_one_text(tmp_path: Path, packer: str) -> None:
    half = TEXT.index(b"\n", len(TEXT) // 2) - 3  # in the middle of a line
    pack = PACKERS[packer]
    file = _write(tmp_path, pack(TEXT[:half]) + pack(TEXT[half:]), f"text.{packer}")
    assert [line for _, line in read_lines(file)] == LINES


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    file = _write(tmp_path, "a\x0bb\x0cc\u2028d\u0085e\rf\r\n\ng".encode())
    assert [line for _, line in read_lines(file)] == ["a\x0bb\x0cc\u2028d\u0085e\rf", "", "g"]


def test_a_byte_order_mark_is_not_text(tmp_path: Path) -> None:
    assert list(read_lines(_write(tmp_path, b"\xef\xbb\xbfa\nb\n"))) == [(1, "a"), (2, "b")]


def test_bad_utf8_is_reported_with_file_and_line(tmp_path: Path) -> None:
    file = _write(tmp_path, b"fine\nfine\nnot \xb0\xa1 fine\n")
    error = _error(file)
    assert error.place == f"{file}:3"
    assert "UTF-8" in error.message
    assert "0xb0" in error.message
    assert "iconv" in error.remedy


def test_lines_that_end_with_cr_only_are_not_one_line(tmp_path: Path) -> None:
    error = _error(_write(tmp_path, b"one\ttwo\rthree\tfour\r"))
    assert "CR only" in error.message
    assert "tr '\\r' '\\n'" in error.remedy
    assert (
        list(read_lines(_write(tmp_path, b"one\r\n"))) == list(read_lines(_write(tmp_path, b"one\r"))) == [(1, "one")]
    )


def test_latin_words_are_not_guessed_to_be_cyrillic() -> None:
    """UTF-8 beside cp1252: read as cp1251, `möchte` has Latin and Cyrillic letters."""
    assert guessed_encoding("Ich möchte schöne Äpfel\t".encode() * 9 + "schön".encode("cp1252")) is None
    assert guessed_encoding("Собака спит у окна USB.\n".encode("cp1251") * 9) == "cp1251"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Собака спит у окна.\n" * 9, "koi8_r"),
        ("Собака спит у окна.\n" * 9, "cp1251"),
        ("СОБАКА СПИТ У ОКНА.\n" * 9, "cp1251"),
        ("고양이\tcat\n", "cp949"),
        ("那隻貓在窗邊睡覺。\n" * 9, "big5"),
        ("一人在中文書中看到大字，今天不久之後又來了。\n" * 9, "big5"),
        ("私は昨日、図書館で本を読みました。とても面白かったです。\n" * 9, "euc_jp"),
        ("私は昨日、図書館で本を読みました。とても面白かったです。\n" * 9, "cp932"),
        ("아 배고파 ㅠㅠ 밥 먹자 ㅎㅎ ㅋㅋㅋㅋ 그게 뭐야 ㅠㅠㅠ\n" * 3, "cp949"),
        ("ВНИМАНИЕ! СОВЕЩАНИЕ НАЧНЁТСЯ ЗАВТРА В ДЕСЯТЬ ЧАСОВ УТРА\n", "koi8_r"),
        ("הכלב ישן ליד החלון. המורה קונה ספר.\n" * 9, "cp1255"),
    ],
)
def test_encodings_with_the_same_bytes_are_told_apart(text: str, encoding: str) -> None:
    assert guessed_encoding(text.encode(encoding)) == encoding


@pytest.mark.parametrize("packer", PACKED)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.999])
def test_an_incomplete_file_is_an_error_and_not_a_shorter_corpus(tmp_path: Path, packer: str, share: float) -> None:
    packed = PACKERS[packer](TEXT)
    file = _write(tmp_path, packed[: int(len(packed) * share)], f"text.{packer}")
    error = _error(file)
    assert error.place.startswith(f"{file}:")
    assert "incomplete" in error.message


@pytest.mark.parametrize("packer", PACKED)
def test_damage_inside_a_compressed_file_is_an_error(tmp_path: Path, packer: str) -> None:
    packed = bytearray(PACKERS[packer](TEXT))
    for position in range(len(packed) // 2, len(packed) // 2 + 8):
        packed[position] ^= 0xFF
    file = _write(tmp_path, bytes(packed), f"text.{packer}")
    error = _error(file)
    assert error.place.startswith(str(file))
    assert any(word in error.message for word in ("damaged", "incomplete", "UTF-8"))


@pytest.mark.parametrize("packer", PACKED)
def test_plain_text_with_the_name_of_a_compressed_file_is_an_error(tmp_path: Path, packer: str) -> None:
    error = _error(_write(tmp_path, b"just some text\n" * 10, f"text.{packer}"))
    assert f".{packer}" in error.message


@pytest.mark.parametrize("page", ["<!DOCTYPE html>\n<html></html>", "\n  <HTML><body>moved</body></HTML>"])
@pytest.mark.parametrize("name", ["text.txt", "text.gz", "text.xz", "text.zst"])
def test_a_web_page_is_recognised_under_any_name(tmp_path: Path, page: str, name: str) -> None:
    assert "web page" in _error(_write(tmp_path, page.encode(), name)).message


def test_a_web_page_that_was_compressed_is_recognised(tmp_path: Path) -> None:
    file = _write(tmp_path, gzip.compress(b"<!doctype html><title>404</title>"), "text.gz")
    assert "web page" in _error(file).message


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (gzip.compress(TEXT), "gzip"),
        (lzma.compress(TEXT), "xz"),
        (zstandard.compress(TEXT), "zstd"),
        ("Text".encode("utf-16"), "UTF-16"),
        (b"PK\x03\x04rest", "spreadsheet"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"),
        (b"name.txt".ljust(257, b"\0") + b"ustar\x0000" + bytes(300), "tar archive"),
    ],
)
def test_files_that_are_not_text_are_recognised(tmp_path: Path, content: bytes, what: str) -> None:
    error = _error(_write(tmp_path, content))
    assert what in error.message
    assert error.remedy


def test_missing_empty_and_folder(tmp_path: Path) -> None:
    assert "no such file" in _error(tmp_path / "none.txt").message
    assert str(tmp_path / "nowhere") in _error(tmp_path / "nowhere" / "none.txt").remedy
    assert "empty" in _error(_write(tmp_path, b"")).message
    assert "folder" in _error(tmp_path).message


def test_zst_with_a_large_window_is_read(tmp_path: Path) -> None:
    large = zstandard.ZstdCompressionParameters.from_level(1, window_log=28)
    packed = zstandard.ZstdCompressor(compression_params=large).compressobj()  # does not write the content size
    file = _write(tmp_path, packed.compress(TEXT) + packed.flush(), "text.zst")
    assert [text for _, text in read_lines(file)] == LINES


def test_zst_without_its_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    error = _error(_write(tmp_path, zstandard.compress(TEXT), "text.zst"))
    assert "pip install zstandard" in error.remedy
    del error
    gc.collect()  # closing the half-opened file raises no warning


def test_memory_stays_constant_for_a_large_file(tmp_path: Path) -> None:
    file = _write(tmp_path, gzip.compress((b"x" * 99 + b"\n") * 20_000), "long.gz")
    tracemalloc.start()
    count = sum(1 for _ in read_lines(file))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 20_000
    assert peak < 500_000


@pytest.mark.parametrize("content", [b"a\nb\n", TEXT * 2])
def test_a_pipe_is_read_once_and_whole(tmp_path: Path, content: bytes) -> None:
    pipe = tmp_path / "pipe"  # like <(...) in a shell
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True)
    writer.start()
    assert [line for _, line in read_lines(pipe)] == content.decode().split("\n")[:-1]
    writer.join(10)


def test_a_pipe_without_lines_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"",), daemon=True).start()
    assert "empty" in _error(tmp_path / "pipe").message


def test_stdin_from_a_file_is_read_from_its_beginning_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To open /dev/stdin gives a new place in the file on Linux, and the place of stdin on macOS."""
    (tmp_path / "in").write_bytes(TEXT)
    usual = Path.open
    with (tmp_path / "in").open("rb", buffering=0) as stdin:

        def as_on_macos(path: Path, mode: str = "r", **options: Any) -> Any:
            if path.name == "stdin":
                return os.fdopen(os.dup(stdin.fileno()), mode, **options)
            return usual(path, mode, **options)

        (tmp_path / "stdin").symlink_to("in")
        monkeypatch.setattr(Path, "open", as_on_macos)
        for _ in range(2):
            assert [line for _, line in read_lines(tmp_path / "stdin")] == LINES
