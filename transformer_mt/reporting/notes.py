"""What the user should know while a command works, apart from its results."""

from __future__ import annotations

import sys
from collections.abc import Callable

from transformer_mt.errors import visible

MAX_NOTES = 20


def note(text: str) -> None:
    """Print one line on stderr, under the program's name, without control characters."""
    print(f"tmt: {visible(text)}", file=sys.stderr, flush=True)


class LineNotes:
    """Prints what was lost in translated lines: the first ones one by one, and at the end how many more there were."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._printed = 0
        self._omitted = 0

    def add(self, number: int, notes: tuple[str, ...]) -> None:
        if not notes:
            return
        if self._printed < MAX_NOTES:
            self._printed += 1
            self._say(f"tmt: line {number}: {'; '.join(notes)}")
        else:
            self._omitted += 1

    def close(self) -> None:
        if self._omitted:
            self._say(f"tmt: and {self._omitted} more lines with notes; --json shows all of them")
