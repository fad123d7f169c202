"""The sha256 sum of a file: what downloads, prepared data and checkpoints are verified by."""

from __future__ import annotations

import hashlib
from pathlib import Path


def sha256_of(file: Path) -> str:
    """In hexadecimal digits, read piece by piece. Raises OSError."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while piece := opened.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
