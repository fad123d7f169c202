"""The exception for all that a user can fix: what is wrong, where, and what to do next.

Examples are a typing error in a config, a truncated download and a full disk. The command line prints a `TmtError`
without its traceback. Every other exception is a bug in this package and keeps its traceback.
"""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path

USER_FAULT = 2
INTERRUPTED = 130
# Signals that end a command as SIGTERM does: the terminal was closed, or the time of a job is nearly over.
JOB_SIGNALS = tuple(getattr(signal, name) for name in ("SIGUSR1", "SIGUSR2", "SIGXCPU") if hasattr(signal, name))
ENDING_SIGNALS = (*((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()), *JOB_SIGNALS)
LONGEST_REASON = 300
# C0 and C1 without tab and line feed: a terminal acts on them.
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class TmtError(Exception):
    """A problem that the user can fix.

    message: what is wrong, in one sentence
    place:   where: a file, `file:line` (see `at`), a config key or an option; may be empty
    remedy:  what to do next; may have several lines
    """

    def __init__(self, message: str, *, place: str | Path = "", remedy: str = "", exit_code: int = USER_FAULT) -> None:
        super().__init__(message)
        self.message = message
        self.place = str(place)
        self.remedy = remedy
        self.exit_code = exit_code

    def __str__(self) -> str:
        """What the user reads. Half a surrogate pair, which no output can encode, is written as `\\ud800`; a control
        character, on which a terminal acts, as `\\x1b`. Addresses are written without passwords."""
        head = f"{self.place}: {self.message}" if self.place else self.message
        text = f"{head}\n  {self.remedy}" if self.remedy else head
        return without_credentials(visible(text.encode("utf-8", "backslashreplace").decode("utf-8")))

    def _render_traceback_(self) -> list[str]:
        """What IPython and notebooks show of the error: as the command line, without a traceback."""
        return [f"{type(self).__name__}: {self}"]


class MachineError(TmtError):
    """A problem of the machine, such as a full disk: another config would not help."""


class InterruptionError(TmtError):
    """The user has stopped the work, with Ctrl-C or a signal. What can be saved is saved."""

    def __init__(self, message: str, *, place: str | Path = "", remedy: str = "") -> None:
        super().__init__(message, place=place, remedy=remedy, exit_code=INTERRUPTED)


_USER = re.compile(r"(?<=://)[^/@\s]+@")  # user:password
_QUERY = re.compile(r"(://[^\s?'\"]*\?)[\w.%-]+=[^\s'\"]*")  # may contain a key or a signature


def without_credentials(text: str) -> str:
    """The text with `***` for users, passwords and queries in addresses."""
    return _QUERY.sub(r"\1***", _USER.sub("***@", text))


def first_line(error: BaseException) -> str:
    """The first line of an error's text that is not empty, with the next if it ends with a colon; else its class."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]


def visible(text: str) -> str:
    """The text with `\\x1b` for a control character; tabs and line breaks stay."""
    return CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def reason(error: BaseException) -> str:
    """What a library says, at most LONGEST_REASON characters: some libraries quote a whole file."""
    said = str(error) or type(error).__name__
    return said if len(said) <= LONGEST_REASON else said[: LONGEST_REASON - 3] + "..."


def number_of(number: int, what: str) -> str:
    """A number of things, for a message: `1 pair`, `2,000 pairs`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def first_of(names: Sequence[object], most: int) -> str:
    """At most so many names, and the number of the others, for a message: `a, b and 3 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def named(value: object) -> str:
    """A value of the wrong type, in a message: None, or its type."""
    return "None" if value is None else f"a value of type {type(value).__name__}"


def check_type(value: object, kind: type, name: str, example: str) -> None:
    """Raises TmtError if the value has another type: callers in Python may give any.

    kind: such as `Mapping`; example: what may be given as `name`
    """
    if not isinstance(value, kind):
        kinds = {"Real": "a number", "Mapping": "a dict", "Iterable": "a list", "str": "text"}
        wanted = kinds.get(kind.__name__, kind.__name__)
        problem = f"{named(value)} was given, but {wanted} is needed"
        raise TmtError(problem, place=name, remedy=f"For example:  {name}={example}")


def checked_number(value: object, name: str, least: int = 1) -> int:
    """The whole number. Raises TmtError for another value: callers in Python may give any."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise TmtError(
            f"{name} must be a whole number of {least} or more, not {value!r}",
            remedy=f"For example:  {name}={least + 1}",
        )
    return int(value)


def checked_path(given: str | Path) -> Path:
    """The path. Raises TmtError for what is neither text nor a path: callers in Python may give None."""
    if not isinstance(given, (str, os.PathLike)):
        remedy = "Give a file or folder as str or Path."
        if hasattr(given, "to_csv"):  # of pandas or datasets
            remedy = 'Write it to a file, and give that:  table.to_csv("pairs.csv", index=False)'
        raise TmtError(f"{named(given)} is not a path", remedy=remedy)
    if "\0" in str(given):
        raise TmtError("a path has no zero character", place=given, remedy="Check where the path comes from.")
    if given == "":  # Path("") would be the current folder
        raise TmtError(
            "a path is empty",
            remedy='Give a file or folder, or a dot for the current folder. In a config, look for "".',
        )
    return Path(given)


def at(file: str | Path, line: int) -> str:
    """`file:line`, which editors can open; lines are counted from 1."""
    return f"{file}:{line}"


_KINDS = {
    errno.EISDIR: "found a folder instead of a file",
    errno.EEXIST: "found a file instead of a folder",
    errno.ENOTDIR: "found a file instead of a folder",
}


DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def from_os_error(error: OSError, doing: str, place: str | Path = "") -> MachineError:
    """The error for an error of the operating system.

    doing: what failed, such as `writing the plots`
    place: the file that the user named, if the error has another one, such as a temporary file
    """
    file = place or error.filename or ""
    if error.errno in DISK_FULL:
        return MachineError(
            f"the disk is full while {doing}",
            place=file,
            remedy="Free some space and run the same command again. What was saved before is complete.",
        )
    if error.errno == errno.EROFS:
        remedy = "Choose a folder on another disk, or mount this one for writing."
        return MachineError(f"the file system is read-only while {doing}", place=file, remedy=remedy)
    if error.errno in (errno.EACCES, errno.EPERM):
        return MachineError(
            f"no permission while {doing}",
            place=file,
            remedy="Check the permissions of the file and of its folder, or choose another folder.",
        )
    if error.errno == errno.ENOENT and "temporary directory" in (error.strerror or ""):  # of Python's tempfile
        return MachineError(
            f"no folder for temporary files can be written while {doing}",
            remedy="Set TMPDIR to a folder that can be written and has space. A read-only container needs a volume for"
            " it, such as an emptyDir at /tmp.",
        )
    if error.errno == errno.ENOENT:
        return MachineError(f"no such file or folder while {doing}", place=file, remedy="Check the path.")
    if error.errno == errno.EEXIST and os.path.islink(file) and not os.path.exists(file):  # noqa: PTH110, PTH114
        remedy = "If it leads to another disk, is that disk there? Otherwise remove the link."
        return MachineError(f"found a link to nothing while {doing}", place=file, remedy=remedy)
    if error.errno == errno.EFBIG:
        return MachineError(
            f"the file is too large while {doing}",
            place=file,
            remedy="A limit of this system or disk: see `ulimit -f`, and run the same command again.",
        )
    if error.errno in (errno.EIO, errno.ESTALE):
        return MachineError(
            f"the disk failed while {doing}",
            place=file,
            remedy="Run the same command again when the disk, perhaps a network disk, is back.",
        )
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return MachineError(
            f"too many open files while {doing}",
            place=file,
            remedy="Allow more, such as `ulimit -n 1024`, and run the same command again.",
        )
    if error.errno in _KINDS:
        return MachineError(f"{_KINDS[error.errno]} while {doing}", place=file, remedy="Choose another path.")
    return MachineError(f"{error.strerror or error} while {doing}", place=file)


_OUT_OF_MEMORY = re.compile(
    "allocate memory|not enough memory|out of memory|STATUS_ALLOC_FAILED"
    "|failed to map segment from shared object(?!: Operation not permitted)"
    "|could not create a primitive(?! descriptor)"  # oneDNN; a descriptor fails for wrong shapes
)


def is_out_of_memory(error: Exception) -> bool:
    """Whether memory ran out.

    Python, and PyTorch's allocator for CUDA, have their own class for this error. CPUs, Apple GPUs, oneDNN, cuBLAS and
    cuDNN, which allocate themselves, raise a plain RuntimeError.
    """
    return type(error).__name__ in ("MemoryError", "OutOfMemoryError") or bool(_OUT_OF_MEMORY.search(str(error)))


def is_gpu_failure(error: Exception) -> bool:
    """Whether a CUDA GPU failed. After most of these errors, it does nothing more for this process."""
    return str(error).startswith("CUDA error") and not is_out_of_memory(error)
