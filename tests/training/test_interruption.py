"""Signals during training if the program runs in the background or the reader of stderr has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from transformer_mt.training.interruption import StopSignal

ROOT = Path(__file__).parents[2]
CLOSED_STDERR = """
import os, signal
from transformer_mt.training.interruption import StopSignal
reading, writing = os.pipe()
os.close(reading)
os.dup2(writing, 2)
with StopSignal() as interruption:
    os.kill(os.getpid(), signal.SIGINT)
    print("requested", interruption.requested)
"""


def test_a_ctrl_c_is_handled_if_the_reader_of_stderr_has_ended():
    command = [sys.executable, "-c", CLOSED_STDERR]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "requested True\n")


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell script starts a background job
    try:
        with StopSignal() as interruption:
            os.kill(os.getpid(), signal.SIGINT)
            assert not interruption.requested
            os.kill(os.getpid(), signal.SIGTERM)
            assert interruption.requested
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_lost_connection_stops_a_training():
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup would have it ignored
    try:
        with StopSignal() as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interruption.requested
    finally:
        signal.signal(signal.SIGHUP, before)
