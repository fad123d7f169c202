"""What differs between systems: files that are replaced, processes, terminals."""

from __future__ import annotations

import errno
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

IS_WINDOWS = sys.platform == "win32"
BINARY = getattr(os, "O_BINARY", 0)  # for os.open: Windows would translate line ends
BUSY_SECONDS = 2.0  # virus scanners and indexers close a file sooner
_QUERY, _STILL_ACTIVE, _ACCESS_DENIED = 0x1000, 259, 5  # constants of Windows


def redraws(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can draw a line again; TERM=dumb says that it cannot."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def rename(old: Path, new: Path) -> None:
    """Give a file or folder another name; an existing file of that name is replaced. Raises OSError.

    Windows refuses that while another program has the file open, so it is tried for BUSY_SECONDS.
    """
    last = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            old.replace(new)
            return
        except PermissionError:
            if not IS_WINDOWS or time.monotonic() > last:
                raise
        time.sleep(0.05)


def sync(path: Path) -> None:
    """Make the system write a file, or the entries of a folder, to the disk now. Raises OSError."""
    is_folder = path.is_dir()
    if path.is_symlink() or (IS_WINDOWS and (is_folder or not os.access(path, os.W_OK))):
        return  # Windows syncs no folders, and no files that are open for reading only
    descriptor = os.open(path, (os.O_RDWR if IS_WINDOWS else os.O_RDONLY) | BINARY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP) or not is_folder:
            raise  # some file systems cannot sync a folder
    finally:
        os.close(descriptor)


def is_running(pid: int) -> bool:
    """Whether a process with this number is running."""
    if IS_WINDOWS:
        return _is_running_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _is_running_on_windows(pid: int) -> bool:
    """`is_running` with the calls of Windows, where os.kill would end the process."""
    import ctypes

    kernel: Any = vars(ctypes)["WinDLL"]("kernel32", use_last_error=True)
    kernel.OpenProcess.restype = ctypes.c_void_p  # a handle has the size of a pointer
    handle = kernel.OpenProcess(_QUERY, False, pid)
    if not handle:
        return bool(vars(ctypes)["get_last_error"]() == _ACCESS_DENIED)
    code = ctypes.c_ulong()
    try:
        known = kernel.GetExitCodeProcess(ctypes.c_void_p(handle), ctypes.byref(code))
        return not known or code.value == _STILL_ACTIVE
    finally:
        kernel.CloseHandle(ctypes.c_void_p(handle))
