"""Signals during training if the program runs in the background or the reader of stderr has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forks import PYTHON
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


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGUSR2", "SIGXCPU"])
def test_the_signals_of_a_cluster_stop_a_training(name: str):
    kind = getattr(signal, name)
    before = signal.signal(kind, signal.SIG_DFL)  # a command in another test may have handled it
    try:
        with StopSignal() as interruption:
            os.kill(os.getpid(), kind)
            assert interruption.requested
        assert signal.getsignal(kind) is signal.SIG_DFL
    finally:
        signal.signal(kind, before)


def test_a_program_that_has_its_own_use_for_such_a_signal_keeps_it():
    got: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda kind, frame: got.append(kind))
    try:
        with StopSignal() as interruption:
            os.kill(os.getpid(), signal.SIGUSR1)
            assert not interruption.requested
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert got == [signal.SIGUSR1]


COMMAND = """
import os, signal
from transformer_mt.reporting.program import interrupt_on_signals
from transformer_mt.training.interruption import StopSignal
interrupt_on_signals()
with StopSignal(notice="") as interruption:
    os.kill(os.getpid(), signal.SIGUSR1)
    print("training", interruption.requested)
try:
    os.kill(os.getpid(), signal.SIGUSR1)
except KeyboardInterrupt:
    print("before and after it")
"""


def test_a_command_ends_by_them_as_by_a_ctrl_c():
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*PYTHON, "-c", COMMAND], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "training True\nbefore and after it\n"), done.stderr
