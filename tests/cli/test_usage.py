"""First mistakes on the command line: the message says what to type instead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["train", "quickstart"], "Name the config with --config:  tmt train --config my.yaml"),
        (["prepare", "my.yaml"], "Name the config with --config:  tmt prepare --config my.yaml"),
        (["train", "--config", "c.yaml", "--set", "seed=1", "name=b"], "Give --set before each KEY=VALUE:"),
        (["train", "--config=c.yaml", "seed=2"], "Give --set before each KEY=VALUE:"),
        (["train", "-c", "c.yaml", "d.yaml"], "Error: Got unexpected extra argument(s) (d.yaml)"),
    ],
)
def test_mistakes_get_a_remedy(arguments: list[str], remedy: str) -> None:
    command = [sys.executable, "-m", "transformer_mt.cli.main", *arguments]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 2
    assert remedy in done.stderr.splitlines()[-1]
