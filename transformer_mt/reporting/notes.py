"""What the user should know while a command works, apart from its results."""

from __future__ import annotations

import sys

from transformer_mt.errors import visible


def note(text: str) -> None:
    """Print one line on stderr, under the program's name, without control characters."""
    print(f"tmt: {visible(text)}", file=sys.stderr, flush=True)
