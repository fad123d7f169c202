"""Kills between file-system operations: nothing is lost. `scripts/torture` kills after each, and does more."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="forks processes that use torch")]

SCRIPT = Path(__file__).parents[2] / "scripts" / "torture.py"


def test_killed_trainings_end_with_the_same_checkpoints_and_model_and_lose_nothing() -> None:
    command = [sys.executable, SCRIPT, "--only", "kills", "--every", "97"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170)
    rows = re.findall(r"^\| (kill: .+?) \| (\d+) \| (\d+) \| 0 \| \d+ operations \|$", done.stdout, re.MULTILINE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(rows) == 3
    assert all(int(injected) == int(survived) > 0 for _, injected, survived in rows)
