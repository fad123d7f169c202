"""Signals while training, where whoever started the program or read what it says has gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from transformer_mt.training.interruption import StopSignal

ROOT = Path(__file__).parents[2]
NOBODY_READS = """
import os, signal
from transformer_mt.training.interruption import StopSignal
reading, writing = os.pipe()
os.close(reading)
os.dup2(writing, 2)
with StopSignal() as interruption:
    os.kill(os.getpid(), signal.SIGINT)
    print("requested", interruption.requested)
"""


def test_a_ctrl_c_that_ends_the_reader_of_stderr_too_is_heeded():
    command = [sys.executable, "-c", NOBODY_READS]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "requested True\n")


def test_a_signal_that_is_to_be_ignored_is():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell's script starts what runs behind
    try:
        with StopSignal() as interruption:
            os.kill(os.getpid(), signal.SIGINT)
            assert not interruption.requested
            os.kill(os.getpid(), signal.SIGTERM)
            assert interruption.requested
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
