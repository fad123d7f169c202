"""The bytes at an address as a stream, which goes on where a connection was lost."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast

from transformer_mt.errors import TmtError
from transformer_mt.files.address import Address, filesystem, patiently
from transformer_mt.files.web_page import empty_file, is_web_page, web_page

_BUFFER = 1 << 17  # bytes
_HEAD = 512  # bytes


@contextmanager
def open_address(file: Address) -> Iterator[BinaryIO]:
    """The bytes of a file, at any position.

    Raises TmtError while it is read if the connection is lost for good, the file is empty or a web page; and at its end
    if its sha256 differs or it was changed in the meantime.
    """
    stream = RemoteStream(file)
    with cast(BinaryIO, io.BufferedReader(stream, buffer_size=_BUFFER)) as buffered:
        yield buffered
        stream.verify()
    file.require_unchanged()


class RemoteStream(io.RawIOBase):
    """Reads a file at an address. A lost connection is opened again at the same position."""

    def __init__(self, file: Address) -> None:
        self._file, self._position = file, 0
        self._opened: Any = None
        self._place = 0  # of what is opened
        self._sends_whole = False  # whether the server cannot send a part of the file
        self._digest: Any = hashlib.sha256()
        self._digested = 0  # bytes; another number than the position after a seek

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.status.size is not None

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        size = self._file.status.size
        if size is None:
            raise io.UnsupportedOperation("the server does not say the size of the file")
        self._position = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: size}[whence] + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        block = patiently(self._file, lambda: self._read(len(buffer)))
        if self._position == 0:
            if not block:
                raise empty_file(self._file)
            if is_web_page(block[:_HEAD]):
                raise web_page(self._file)
        if self._position == self._digested:
            self._digest.update(block)
            self._digested += len(block)
        self._position += len(block)
        buffer[: len(block)] = block
        return len(block)

    def verify(self) -> None:
        """Raises TmtError if the file has another sha256 than it must have. Reads what was not read, or all again."""
        if self._file.sha256 is None:
            return
        if self._position != self._digested:
            self._position = self._digested = 0
            self._digest = hashlib.sha256()
        while self.read(_BUFFER):
            pass
        found = self._digest.hexdigest()
        if found != self._file.sha256:
            raise wrong_checksum(self._file, found)

    def close(self) -> None:
        self._drop()
        super().close()

    def _read(self, size: int) -> bytes:
        try:
            block = self._read_once(size)
        except ValueError:  # fsspec says so if the server sends only whole files
            self._drop()
            if self._sends_whole:
                raise
            self._sends_whole = True
            block = self._read_once(size)
        except BaseException:
            self._drop()
            raise
        total = self._file.status.size
        if not block and total is not None and self._position < total:
            self._drop()
            self._file.require_unchanged()
            raise ConnectionError(f"only {self._position:,} of {total:,} bytes arrived")
        return block

    def _read_once(self, size: int) -> bytes:
        system, path = filesystem(self._file.address)
        if self._sends_whole and self._place != self._position:
            self._drop()
        if self._opened is None:
            self._opened, self._place = system.open(path, "rb", **({"block_size": 0} if self._sends_whole else {})), 0
        if not self._sends_whole:
            self._opened.seek(self._position)
        while self._sends_whole and self._place < self._position:
            skipped = len(self._opened.read(min(self._position - self._place, _BUFFER)))
            if not skipped:
                raise ConnectionError(f"only {self._place:,} bytes arrived")
            self._place += skipped
        block: bytes = self._opened.read(size)
        self._place = self._position + len(block)
        return block

    def _drop(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            with suppress(Exception):  # it is broken already
                opened.close()


def wrong_checksum(place: Any, found: str) -> TmtError:
    """The error for a file of a corpus with another sha256 than the config says."""
    remedy = "The file is damaged or of another version. Fetch it again, or correct sha256 in data.corpus."
    return TmtError(f"its sha256 is {found}, not the one in the config", place=place, remedy=remedy)
