"""How this program was called: its name, for messages and the commands that they suggest, its processes and Ctrl-C."""

from __future__ import annotations

import _thread
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any

from transformer_mt.config.cores import launched
from transformer_mt.errors import ENDING_SIGNALS, TmtError

NAMES = ("tmt", "transformer-mt")  # the scripts that an installation makes


def program_name() -> str:
    """tmt, transformer-mt or `python -m transformer_mt`; tmt if another Python program calls this package."""
    *folders, name = re.split(r"[\\/]", sys.argv[0] if sys.argv else "")
    if name == "__main__.py" and folders[-1:] == ["transformer_mt"]:
        return "python -m transformer_mt"
    name = re.sub(r"(-script\.pyw?|\.exe)$", "", name, flags=re.IGNORECASE)
    return name if name in NAMES else NAMES[0]


def as_called(text: str, commands: Iterable[str]) -> str:
    """The text with the commands in it as they work here: another program may own the name tmt."""
    pattern = rf"(?<![\w/.-]){NAMES[0]}(?= (?:{'|'.join(commands)}|--help)\b)"
    return re.sub(pattern, program_name(), text)


def require_one_process(command: str) -> None:
    """Raises TmtError under torchrun with several processes: each would do all the work, and write the same files."""
    if launched("WORLD_SIZE", "1") > 1:
        raise TmtError(
            f"tmt {command} runs in one process", remedy=f"Run tmt {command} without torchrun, which sets WORLD_SIZE."
        )


_SINGLE = (
    *("--config", "--model", "--input", "--output", "--document", "--glossary", "--source", "--target"),
    *("--reference", "--hypothesis", "--baseline", "--split"),
)


def only_once(options: Sequence[Any]) -> None:
    """Raises TmtError if an option for one file or test set is given twice: the first would be left out in silence.

    Of other options, the last one counts, so that a script can add its own to those of its user.
    options: those of a command line, in its order, with `multiple` and their names in `opts`
    """
    for one in options:
        name, times = max(one.opts, key=len), options.count(one)
        if times > 1 and name in _SINGLE and not one.multiple:
            raise TmtError(f"{name} is given {times} times", remedy=f"Give {name} once: it takes one value.")


def quoted(path: object) -> str:
    """A path as one word of a command line."""
    text = str(path)
    if sys.platform != "win32":
        return shlex.quote(text)
    return f'"{text}"' if re.search(r"[\s&()';]", text) else text


_RECENT = 2.0  # seconds
_received: list[float] = []  # when signals came


def interrupt_on_signals() -> None:
    """Let SIGTERM, the end of the terminal and the signals of a cluster end a command like Ctrl-C.

    Temporary files are then removed, and the exit code is 130.
    """
    signal.signal(signal.SIGTERM, interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a program in the background ignores it
        signal.signal(signal.SIGINT, interrupt)
    for kind in ENDING_SIGNALS:
        if signal.getsignal(kind) is signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(kind, interrupt)
    sys.unraisablehook = pass_on_interrupts


def was_interrupted() -> bool:
    """Whether a signal has just come. Some libraries make another error of the exception that it raises."""
    return bool(_received) and time.monotonic() - _received[-1] < _RECENT


def interrupt(received: int, frame: FrameType | None) -> None:
    _received.append(time.monotonic())
    signal.default_int_handler(received, frame)


def pass_on_interrupts(failure: Any) -> None:
    """A Ctrl-C inside a callback of Python's memory management, which cannot raise it, arrives again."""
    if isinstance(failure.exc_value, KeyboardInterrupt):
        threading.Timer(0.05, _thread.interrupt_main).start()  # not at once: this is still the callback
    else:
        sys.__unraisablehook__(failure)
