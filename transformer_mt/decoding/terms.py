"""Terms: what the translation of a line must contain, whatever the model would write."""

from __future__ import annotations

from typing import NamedTuple


class Term(NamedTuple):
    """A span of a line, and the text that the translation must contain exactly once for it.

    source: text of the span, as it is in the line
    target: its translation; equal to `source` for a copy, which is then byte for byte the same
    """

    source: str
    target: str
