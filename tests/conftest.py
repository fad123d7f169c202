"""What tests of several rooms share: the real corpora, and settings that make every run of the suite the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The tests' matrices are small: more threads would only wait for each other. Read when torch is first imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

settings.register_profile("everywhere", deadline=None)  # a busy machine is not a defect
settings.register_profile("gate", deadline=None, derandomize=True)
settings.load_profile("gate" if os.environ.get("CI") else "everywhere")

ROOT = Path(__file__).resolve().parents[1]


class Corpora:
    """The folder of the real corpora: `corpora / "multi30k"` is the path of one, or skips the test without it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __truediv__(self, name: str) -> Path:
        path = self.folder / name
        if not path.exists():
            pytest.skip(f"no {name} in {self.folder}; name the folder of the real corpora in TMT_CORPORA")
        return path

    __call__ = __truediv__


@pytest.fixture(scope="session")
def corpora() -> Corpora:
    return Corpora(Path(os.environ.get("TMT_CORPORA") or ROOT / "data").resolve())
