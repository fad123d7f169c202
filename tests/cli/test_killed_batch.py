"""A batch job that was killed goes on as docs/translating.md says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.forks import PYTHON

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("bash"), reason="needs bash")
def test_a_killed_job_goes_on_as_the_page_says(tiny_model: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "translating.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"```bash\n(touch .*?)```", page, re.S)
    tmt = tmp_path / "tmt"
    tmt.write_text(f'#!/bin/sh\nexec {shlex.join(PYTHON)} -m transformer_mt "$@"\n')
    tmt.chmod(0o755)
    lines = [f"a cat number {letter}\n" for letter in "abcdefghijkl"]
    (tmp_path / "in.txt").write_text("".join(lines))
    command = [tmt, "translate", "--model", tiny_model]
    whole = subprocess.run(command, input="".join(lines), capture_output=True, text=True, check=True).stdout

    out = tmp_path / "out.txt"
    with out.open("wb") as stream:
        job = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stream, stderr=subprocess.DEVNULL)
        assert job.stdin
        job.stdin.write("".join(lines[:7]).encode())
        job.stdin.flush()
        end = time.monotonic() + 60
        while out.read_bytes().count(b"\n") < 7:
            assert time.monotonic() < end, "nothing is written before the end of the input"
            time.sleep(0.02)
        job.kill()
        job.wait()
        job.stdin.close()
    with out.open("a") as stream_of_kill:
        stream_of_kill.write("half a li")
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    script = recipe.replace("runs/quickstart", shlex.quote(str(tiny_model)))
    subprocess.run(["bash", "-euc", script], cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert out.read_text() == whole
    out.write_text("half a li")  # killed before the end of the first line
    subprocess.run(["bash", "-euc", script], cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert out.read_text() == whole
    assert whole.count("\n") == len(lines)
