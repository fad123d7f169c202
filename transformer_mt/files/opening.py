"""Files as bytes: plain, compressed (.gz, .xz, .zst), or inside a .zip, which is read in place and never unpacked.

A file inside an archive is named as in a folder: `corpus.zip/corpus.de`.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePath
from typing import Any, BinaryIO, TypeVar, cast

from transformer_mt.errors import TmtError, from_os_error, reason
from transformer_mt.files.address import Address
from transformer_mt.files.folder import is_hidden
from transformer_mt.files.remote import open_address

AnyPath = TypeVar("AnyPath", bound=PurePath)
COMPRESSED = (".gz", ".xz", ".zst", ".zstd")
_TO_UNPACK = (".xlsx", ".xls", ".parquet", ".zip")  # not read inside an archive
_LANGUAGE = re.compile(r"\.(?!txt|pdf|hwp|doc|png|jpg|gif|xml|htm|log|md|py|sh)[a-z]{2,3}")  # as of `corpus.de`
LFS_POINTER = b"version https://git-lfs"
_BUFFER = 1 << 17  # bytes
_TERMINALS = ("/dev/stdin", "/dev/tty", "/dev/null")  # character devices that end
_ZSTD_WINDOW = 1 << 31  # bytes; `zstd --long=31` needs this much, and libraries allow only 2**27 by default
# What the decompressors raise. RuntimeError: a password is missing; NotImplementedError: an unknown method (both .zip).
_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile)
DAMAGED = (*_DAMAGED, RuntimeError, NotImplementedError)


def archive_of(path: Path) -> Path | None:
    """The .zip archive that contains `path`, or None; always None for an address."""
    zips = (folder for folder in path.parents if folder.suffix.lower() == ".zip")
    return next((folder for folder in zips if folder.is_file()), None)


def plain_path(file: AnyPath) -> AnyPath:
    """The path without the ending of a compression."""
    return file.with_suffix("") if file.suffix.lower() in COMPRESSED else file


def members(archive: Path) -> dict[str, tuple[int, int]]:
    """The files in a .zip archive, sorted by name, with the unpacked size and the CRC-32 of each.

    Raises TmtError if it is damaged.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            found = [(one.filename, (one.file_size, one.CRC)) for one in opened.infolist() if not one.is_dir()]
            return dict(sorted(found))
    except _DAMAGED as error:
        raise damaged(error, archive, archive) from None


def with_archived(files: Sequence[Path], suffixes: Collection[str]) -> list[Path]:
    """The files; instead of a .zip archive, those inside it with these suffixes, each content once.

    An archive stays beside them if it has tables that must be unpacked, or files named by languages; and alone if it is
    damaged or has no tables.
    """
    found, plain = list[Path](), dict[tuple[str, int], list[Path]]()
    for file in files:
        plain.setdefault((file.name, file.stat().st_size), []).append(file)
    seen: set[tuple[str, int, int]] = set()
    for file in files:
        if file.suffix.lower() != ".zip":
            found.append(file)
            continue
        try:
            inside = {PurePath(name): one for name, one in members(file).items() if not name.startswith("__MACOSX/")}
        except TmtError:
            found.append(file)
            continue
        tables = [path for path in inside if path.suffix.lower() in (*suffixes, *_TO_UNPACK) and not is_hidden(path)]
        missing = list[PurePath]()
        for path in tables:
            size, crc = inside[path]
            same = plain.get((path.name, size), [])
            if (path.name, size, crc) not in seen and not any(_crc_of(one) == crc for one in same):
                missing.append(path)
            seen.add((path.name, size, crc))
        found += [file / path for path in missing if path.suffix.lower() in suffixes]
        others = [path for path in inside if _LANGUAGE.fullmatch(path.suffix) and path not in tables]
        if not tables or others or any(path.suffix.lower() in _TO_UNPACK for path in missing):
            found.append(file)
    return found


def _crc_of(file: Path) -> int:
    found = 0
    with readable(file, "reading a file"), file.open("rb") as stream:
        while block := stream.read(1 << 20):
            found = zlib.crc32(block, found)
    return found


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """The content of a file, decompressed while it is read. Reading raises `DAMAGED` or OSError."""
    with ExitStack() as stack:
        stream: Any = stack.enter_context(open_stored(path))
        suffix = path.suffix.lower()
        if suffix == ".gz":
            stream = stack.enter_context(gzip.GzipFile(fileobj=stream))
        elif suffix == ".xz":
            stream = stack.enter_context(lzma.LZMAFile(stream))
        elif suffix in (".zst", ".zstd"):
            stream = stack.enter_context(io.BufferedReader(_ZstdFile(stream, path), buffer_size=_BUFFER))
        yield stream


@contextmanager
def open_stored(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, or of a member of an archive, without decompressing .gz, .xz and .zst."""
    if isinstance(path, Address):
        with open_address(path) as remote:
            yield remote
        return
    archive = archive_of(path)
    if archive is None:
        with path.open("rb", buffering=0) as stored:
            raw = cast(io.RawIOBase, stored)
            status = os.fstat(stored.fileno())
            if stat.S_ISREG(status.st_mode):
                stored.seek(0)  # macOS opens /dev/stdin where it was read last
                raw = _UpTo(raw, status.st_size)
            yield cast(BinaryIO, io.BufferedReader(raw, buffer_size=_BUFFER))
        return
    name = path.relative_to(archive).as_posix()
    with zipfile.ZipFile(archive) as opened, opened.open(name) as member:
        yield cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, member), buffer_size=_BUFFER))


def require_unpacked(path: Path) -> None:
    """Raises TmtError for a file inside an archive, if it has a format that is read at several places."""
    if archive := archive_of(path):
        remedy = f"Unpack {archive} first, and give the file that was inside it."
        raise TmtError("this is inside an archive, where only text can be read in place", place=path, remedy=remedy)


@contextmanager
def open_seekable(path: Path) -> Iterator[BinaryIO]:
    """A file of a format that is read at several places, such as a workbook.

    Raises OSError, and TmtError if it is inside an archive.
    """
    require_unpacked(path)
    with open_address(path) if isinstance(path, Address) else path.open("rb") as stream:
        yield stream


def read_small(file: Path, most: int) -> bytes:
    """The content of a file that has at most `most` bytes.

    Raises OSError, and ValueError if the file is larger or not a regular file: a device may never end.
    """
    with open(file, "rb", opener=_without_waiting) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise ValueError(f"{file.name} is not a regular file")
        content = stream.read(most + 1)
    if len(content) > most:
        raise ValueError(f"{file.name} is larger than {most >> 20} MiB")
    return content


def _without_waiting(name: str, flags: int) -> int:
    """Open a file; a named pipe would wait for a program that writes to it."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def is_endless(file: Path) -> bool:
    """Whether reading this file may never end: a device, such as /dev/zero, but not a terminal."""
    try:
        mode = file.stat().st_mode
    except OSError:
        return False
    return stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and str(file) not in _TERMINALS)


def is_named_pipe(file: Path) -> bool:
    """Whether the file is a pipe with a name (`mkfifo`), and not one that the shell made for this command, `<(...)`."""
    return file.is_fifo() and not file.is_relative_to("/dev/fd") and not file.is_relative_to("/proc")


@contextmanager
def readable(path: Path, doing: str) -> Iterator[None]:
    """Errors of reading a file in the body become a TmtError that names it."""
    try:
        yield
    except DAMAGED as error:
        raise damaged(error, path, path) from None
    except OSError as error:
        raise from_os_error(error, doing, path) from None


def require_fetched(file: Path, content: str) -> None:
    """Raises TmtError if Git LFS left a pointer in place of the file, as in a copy of a repository without it."""
    try:
        with open(file, "rb", opener=_without_waiting) as stream:
            head = stream.read(len(LFS_POINTER))
    except OSError:
        return
    if head == LFS_POINTER:
        problem = f"a Git LFS pointer, not the {content}"
        raise TmtError(problem, place=file, remedy="Fetch it:  git lfs install; git lfs pull")


def read_head(path: Path, size: int) -> bytes:
    """The first bytes of a file, decompressed. Raises TmtError if it is damaged or unreadable."""
    with readable(path, "reading a file"), open_bytes(path) as stream:
        return stream.read(size)


def damaged(error: Exception, path: Path, place: str | Path) -> TmtError:
    """The TmtError for one of `DAMAGED`, raised at `place`."""
    again = "Download or copy it again."
    if isinstance(error, EOFError):
        return TmtError("the file is incomplete: its end is missing", place=place, remedy=again)
    if isinstance(error, _DAMAGED):
        suffix = ".zip" if isinstance(error, zipfile.BadZipFile) else path.suffix
        return TmtError(f"the file is damaged, or not a {suffix} file ({reason(error)})", place=place, remedy=again)
    remedy = "Unpack it, and give the files inside it."
    return TmtError(f"this archive cannot be read in place ({reason(error)})", place=place, remedy=remedy)


class _UpTo(io.RawIOBase):
    """The first bytes of an open file: those it had when it was opened. A file that grows would never end."""

    def __init__(self, stream: io.RawIOBase, size: int) -> None:
        self._stream, self._left = stream, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n_read = self._stream.readinto(memoryview(buffer)[: self._left]) or 0
        self._left -= n_read
        return n_read


class _ZstdFile(io.RawIOBase):
    """Decompressed bytes of a .zst file of one or more frames.

    Unlike the reader of zstandard, it raises EOFError if the last frame is incomplete.
    """

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        try:
            import zstandard
        except ImportError:
            remedy = "Run  pip install zstandard  or unpack the file with `unzstd`."
            raise TmtError("reading .zst files needs the package zstandard", place=path, remedy=remedy) from None
        self._zstd: Any = zstandard
        self._file = stream
        self._frame: Any = None
        self._compressed, self._ready = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

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
            self._ready = memoryview(self._frame.decompress(block))  # a part of it is no copy of the rest
        except self._zstd.ZstdError as error:
            raise zlib.error(str(error)) from None
        self._compressed = self._frame.unused_data
        if self._frame.eof:
            self._frame = None
        return True
