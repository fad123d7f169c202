"""What `scripts/soak` counts as a failure, and a short run of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

SCRIPT = Path(__file__).parents[2] / "scripts" / "soak.py"
JUDGE = """
import sys
sys.path.insert(0, sys.argv[1])
from scripts.soak import Training, report
def of(memory=lambda n: 10**8, files=lambda n: 9, problem="", left=()):
    return [Training(1, problem, list(left), int(memory(n)), files(n)) for n in range(50)]
codes = [
    report(of(), 3, []),
    report(of(memory=lambda n: 10**8 * (1 + n / 300)), 3, []),
    report(of(files=lambda n: 9 + n // 40), 3, []),
    report(of(problem="model.safetensors differs"), 3, []),
    report(of(left=["runs/.model.new"]), 3, []),
    report(of(), 3, ["Traceback"]),
]
print("codes", *codes)
"""


def test_another_result_leftovers_and_growth_are_failures() -> None:
    done = subprocess.run([sys.executable, "-c", JUDGE, SCRIPT.parents[1]], capture_output=True, text=True, timeout=100)
    assert done.stdout.splitlines()[-1] == "codes 0 1 1 1 1 1", done.stdout + done.stderr
    assert "the memory grows" in done.stdout
    assert "the number of open files grows" in done.stdout


def test_killed_workers_continue_each_other() -> None:
    command = [sys.executable, SCRIPT, "--minutes", "0.2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^[1-9]\d* trainings in \d+ processes, each killed; 0 problems$", done.stdout, re.MULTILINE)
