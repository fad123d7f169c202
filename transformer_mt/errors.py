"""The one exception a user may see: what went wrong, where, and what to do next.

Everything the user can cause (a typo in a config, a truncated download, a full disk) is raised as a
`TmtError`; the command line prints it without a traceback. Everything else is a defect of ours and keeps
its traceback. This module knows nothing of the rest of the package.
"""

from __future__ import annotations

import errno
from pathlib import Path

USER_FAULT = 2
INTERRUPTED = 130


class TmtError(Exception):
    """A mistake or mishap the user can mend.

    message: what is wrong, in one sentence.
    place:   where: a file, or file and line (see `at`); empty when there is none.
    remedy:  the next move; may hold several lines.
    """

    def __init__(self, message: str, *, place: str | Path = "", remedy: str = "", exit_code: int = USER_FAULT) -> None:
        super().__init__(message)
        self.message = message
        self.place = str(place)
        self.remedy = remedy
        self.exit_code = exit_code

    def __str__(self) -> str:
        head = f"{self.place}: {self.message}" if self.place else self.message
        return f"{head}\n  {self.remedy}" if self.remedy else head


def at(file: str | Path, line: int) -> str:
    """A place as editors understand it: `file:line`, lines counted from 1."""
    return f"{file}:{line}"


_KINDS = {
    errno.EISDIR: "a folder stands where a file is needed",
    errno.EEXIST: "a file stands where a folder is needed",
    errno.ENOTDIR: "a file stands where a folder is needed",
}


def from_os_error(error: OSError, doing: str) -> TmtError:
    """Turn what the operating system refused into a message with a remedy."""
    file = error.filename or ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return TmtError(
            f"the disk is full while {doing}",
            place=file,
            remedy="Free some space and run the same command again; what was saved before is intact.",
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return TmtError(
            f"no permission while {doing}",
            place=file,
            remedy="Check who owns the file or choose another folder.",
        )
    if error.errno == errno.ENOENT:
        return TmtError(f"no such file or folder while {doing}", place=file, remedy="Check the path.")
    if error.errno in _KINDS:
        return TmtError(f"{_KINDS[error.errno]} while {doing}", place=file, remedy="Choose another path.")
    return TmtError(f"{error.strerror or error} while {doing}", place=file)
