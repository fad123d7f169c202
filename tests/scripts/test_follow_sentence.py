"""The ways that docs/architecture.md counts are the ways that the code takes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def test_the_counts_of_the_docs_are_those_of_the_script() -> None:
    command = [sys.executable, ROOT / "scripts" / "follow_sentence.py", "--count"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    counts = dict(re.findall(r"^(.+): (\d+) stops$", told, re.MULTILINE))
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (documented,) = re.findall(
        r"(\d+) functions from the file to the loss, (\d+) from the command line to the translation", text
    )
    assert (counts["file to loss"], counts["command line to translation"]) == documented
