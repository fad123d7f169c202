"""The lines of a text file, plain or compressed (.gz, .xz, .zst). Errors name file and line.

Lines end only at `\\n` or `\\r\\n`. The other line breaks of Unicode are part of a sentence.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformer_mt.errors import TmtError, at, from_os_error

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ZSTD_WINDOW = 1 << 31  # bytes; `zstd --long=31` needs this much, and libraries allow only 2**27 by default
_PAGES = (b"<!doctype html", b"<html")
_NOT_TEXT = (  # the first bytes of files that are not plain text, what they are, and what to do
    (b"\x1f\x8b", "is compressed with gzip", "Name it .gz, or unpack it with `gunzip`."),
    (b"\xfd7zXZ\x00", "is compressed with xz", "Name it .xz, or unpack it with `unxz`."),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd", "Name it .zst, or unpack it with `unzstd`."),
    (b"PK\x03\x04", "is a ZIP archive or a spreadsheet, not text", "Unpack it, or save the sheet as text in UTF-8."),
    (b"\xff\xfe", "is UTF-16, not UTF-8", "Convert it:  iconv -f UTF-16 -t UTF-8 OLD > NEW"),
    (b"\xfe\xff", "is UTF-16, not UTF-8", "Convert it:  iconv -f UTF-16 -t UTF-8 OLD > NEW"),
    (b"version https://git-lfs", "is a Git LFS pointer, not the data", "Fetch the data with `git lfs pull`."),
)


def path_of(given: str | Path) -> Path:
    """A path in a config or command: `~` and `~name` at its beginning are home folders if they exist."""
    try:
        return Path(given).expanduser()
    except RuntimeError:  # no such user: it may be the name of a file
        return Path(given)


def printable(argument: str | Path) -> str:
    """A file name or argument as text; bytes that are not UTF-8 become U+FFFD."""
    return os.fsencode(argument).decode("utf-8", "replace")


def read_lines(file: str | Path, encoding: str = "utf-8", any_text: bool = False) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of each line, without its line break, in constant memory.

    any_text: the file may be empty or a web page, because it is not part of a corpus
    Raises TmtError if the file is missing, empty, incomplete, damaged, a web page or not in this encoding.
    """
    path, number = Path(file), 0
    check_exists(path)
    if path.is_file() and not any_text:  # a pipe can be read only once
        check_head(path)
    for number, raw in enumerate(_raw_lines(path), start=1):
        if number == 1:
            raw = raw.removeprefix(BYTE_ORDER_MARK)
            if not any_text:
                _check_first(raw, path)
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError as error:
            if number == 1:
                _check_first(raw, path)  # its message is more specific
            bad = raw[error.start : error.start + 1].hex()
            raise TmtError(
                f"the line is not {encoding.upper()}: byte 0x{bad} at position {error.start + 1}",
                place=at(path, number),
                remedy="If only a few lines are wrong, correct them. Otherwise convert the file from its encoding,"
                " such as CP1252 (Western Windows) or CP949 (Korean):  iconv -f CP1252 -t UTF-8 OLD > NEW",
            ) from None
        yield number, text.removesuffix("\n").removesuffix("\r")
    if not number and not any_text:
        raise _empty(path)


def lines_of(file: str | Path) -> list[str]:
    """All lines at once. Raises TmtError as `read_lines` does."""
    return [text for _, text in read_lines(file)]


def check_exists(file: Path) -> None:
    """Raises TmtError if `file` does not exist or is a folder."""
    if file.is_dir():
        raise TmtError("this is a folder, not a file", place=file, remedy="Give the file inside it.")
    if not file.exists():
        remedy = f"Check the name:  ls {file.parent}"
        if not file.parent.is_dir():
            remedy = f"The folder {file.parent} does not exist either. Paths start at the folder where you run tmt."
        raise TmtError("no such file", place=file, remedy=remedy)


def check_head(file: Path) -> None:
    """Raises TmtError if a file is missing, empty, or a web page, which some servers send instead of the data."""
    check_exists(file)
    try:
        with file.open("rb") as stream:
            head = stream.read(512)
    except OSError as error:
        raise from_os_error(error, "reading a text file") from None
    if not head:
        raise _empty(file)
    if is_web_page(head):
        raise web_page(file)


def is_web_page(head: bytes) -> bool:
    """Whether the first bytes of a file are those of an HTML page."""
    return head.removeprefix(BYTE_ORDER_MARK).lstrip().lower().startswith(_PAGES)


def web_page(place: str | Path, remedy: str = "Download the data file itself, and replace this file.") -> TmtError:
    """The error for a web page that came instead of a file, from `place`."""
    message = "this is a web page, not data: a server answered with a page (a login, a notice or an error)"
    return TmtError(message, place=place, remedy=remedy)


def _empty(file: Path) -> TmtError:
    return TmtError("the file is empty", place=file, remedy="Download or copy it again.")


def _check_first(line: bytes, path: Path) -> None:
    if is_web_page(line[:512]):
        raise web_page(path)
    if line[257:262] == b"ustar":
        raise TmtError(
            "the file is a tar archive", place=path, remedy="Unpack it with `tar -xf`, and give the file inside it."
        )
    for magic, what, remedy in _NOT_TEXT:
        if line.startswith(magic):
            raise TmtError(f"the file {what}", place=path, remedy=remedy)


def _raw_lines(path: Path) -> Iterator[bytes]:
    """Lines with their line breaks. Errors of the decompressors become a TmtError with the number of the line."""
    number = 0
    try:
        with _open(path) as stream:
            for number, line in enumerate(stream, start=1):  # noqa: B007 (used below)
                yield line
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        damaged = f"damaged, or not a {path.suffix} file ({error})"
        problem = "incomplete: its end is missing" if isinstance(error, EOFError) else damaged
        place = at(path, number + 1)
        raise TmtError(f"the file is {problem}", place=place, remedy="Download or copy it again.") from None
    except OSError as error:
        raise from_os_error(error, "reading a text file") from None


def _open(path: Path) -> io.BufferedIOBase:
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return gzip.open(path, "rb")
    if suffix == ".xz":
        return lzma.open(path, "rb")
    if suffix in (".zst", ".zstd"):
        return io.BufferedReader(_ZstdFile(path), buffer_size=1 << 17)
    return path.open("rb")


class _ZstdFile(io.RawIOBase):
    """Decompressed bytes of a .zst file of one or more frames.

    Unlike the reader of zstandard, it raises EOFError if the last frame is incomplete.
    """

    _file: Any = None

    def __init__(self, path: Path) -> None:
        try:
            import zstandard
        except ImportError:
            remedy = "Run  pip install zstandard  or unpack the file with `unzstd`."
            raise TmtError("reading .zst files needs the package zstandard", place=path, remedy=remedy) from None
        self._zstd: Any = zstandard
        self._file = path.open("rb")
        self._frame: Any = None
        self._compressed, self._ready = b"", b""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        if self._file is not None:  # __init__ may have failed before it opened the file
            self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        while not self._ready and self._decompress():
            pass
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _decompress(self) -> bool:
        """Decompress the next block of the file. False at its end."""
        block = self._compressed or self._file.read(1 << 14)
        if not block:
            if self._frame is not None:
                raise EOFError
            return False
        self._frame = self._frame or self._zstd.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        try:
            self._ready = self._frame.decompress(block)
        except self._zstd.ZstdError as error:
            raise zlib.error(str(error)) from None
        self._compressed = self._frame.unused_data
        if self._frame.eof:
            self._frame = None
        return True
