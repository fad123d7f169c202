"""The sha256 checksum of a file, which verifies downloads, prepared data and checkpoints."""

from __future__ import annotations

import hashlib
from pathlib import Path


def sha256_of(file: Path) -> str:
    """Hexadecimal checksum of a file. Raises OSError."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
