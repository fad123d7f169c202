"""docs/architecture.md has the counts that scripts/follow_sentence.py prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def test_the_counts_in_the_docs_are_up_to_date() -> None:
    command = [sys.executable, ROOT / "scripts" / "follow_sentence.py", "--count"]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    counts = dict(re.findall(r"^(.+): (\d+) stops$", output, re.MULTILINE))
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (documented,) = re.findall(
        r"(\d+) functions from the file to the loss, (\d+) from the command line to the translation", text
    )
    assert (counts["file to loss"], counts["command line to translation"]) == documented
