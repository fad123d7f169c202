"""Progress bars, on a terminal and in notebooks only."""

from __future__ import annotations

import sys
from typing import Any

from tqdm.auto import tqdm


def is_watched() -> bool:
    """Whether stderr is a terminal, or this process is the kernel of a notebook."""
    return "ipykernel" in sys.modules or sys.stderr.isatty()


def bar(**options: Any) -> tqdm[Any]:
    """A progress bar that disappears when it is done; hidden if stderr is not watched. options: those of tqdm."""
    return tqdm(leave=False, dynamic_ncols=True, disable=not is_watched(), **options)
