"""Fixtures that tests of several rooms share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of the real corpora (TMT_CORPORA, else data/); skips the test where there is none."""
    folder = Path(os.environ.get("TMT_CORPORA") or "data")
    if not any((folder / name).is_dir() for name in ("multi30k", "aihub")):
        pytest.skip(f"no real corpora in {folder}; name their folder in TMT_CORPORA")
    return folder
