"""How the measurements of gpu_check.py run: sizes, times and clocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from flops import wait_for
from synthetic import Setting

Row = dict[str, Any]
DATASHEET = {  # dense bfloat16 TFLOP/s of the vendor's datasheets, by a part of the name; the first that fits
    "B200": 2250.0,
    "H200": 989.0,
    "H100 PCIe": 756.0,
    "H100": 989.0,
    "A100": 312.0,
    "L40S": 362.0,
    "L4": 121.0,
    "RTX 4090": 165.0,
}


@dataclass(frozen=True)
class Run:
    """How to measure.

    device:    cuda or cpu
    toy:       sizes that take no time
    peak:      FLOP/s of a large matrix product, once it is known
    processes: how multiprocessing starts them; fork saves the imports
    """

    device: str
    toy: bool = False
    peak: float | None = None
    processes: str = "fork"

    @property
    def seconds(self) -> float:
        """Time of a measured stretch of updates or translations."""
        return 0.0 if self.toy else 6.0

    @property
    def short(self) -> float:
        """Time of the calls of one kernel."""
        return 0.0 if self.toy else 0.2

    def setting(self, **changes: Any) -> Setting:
        given = replace(Setting(**changes), device=self.device)
        if not self.toy:
            return given
        return replace(given, size="toy", vocabulary=200, batch_tokens=300, updates=25, threads=1, backend="eager")


def timed(work: Callable[[], object], device: torch.device, seconds: float) -> float:
    """Seconds of one call, over as many calls as fit, after two to warm up."""
    for _ in range(2):
        work()
    calls, started = 0, now(device)
    while True:
        for _ in range(calls or 1):  # as many again, without waiting in between
            work()
        calls += calls or 1
        if (passed := now(device) - started) >= seconds:
            return passed / calls


def now(device: torch.device) -> float:
    """The time when the GPU has finished."""
    wait_for(device)
    return time.perf_counter()


def datasheet(device: torch.device) -> float | None:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    return next((peak for part, peak in DATASHEET.items() if part in name), None)


def mark(device: torch.device) -> Any:
    """A point in time on the device, without waiting for it."""
    if device.type != "cuda":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def between(first: Any, second: Any) -> float:
    """Seconds between two marks."""
    return second - first if isinstance(first, float) else first.elapsed_time(second) / 1000
