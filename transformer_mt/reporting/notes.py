"""What the user should know while a command works, apart from its results."""

from __future__ import annotations

import sys


def note(text: str) -> None:
    """Print one line on stderr, under the program's name."""
    print(f"tmt: {text}", file=sys.stderr, flush=True)
