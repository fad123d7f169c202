"""The largest amount of memory that this process has used."""

from __future__ import annotations

import ctypes
import sys
from typing import Any


def peak_process_bytes() -> int:
    """Peak resident memory of this process in bytes; 0 if the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return _peak_on_windows() if hasattr(ctypes, "WinDLL") else 0
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


class _Counters(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS of psapi.h."""

    _fields_ = (
        ("cb", ctypes.c_uint32),
        ("PageFaultCount", ctypes.c_uint32),
        ("PeakWorkingSetSize", ctypes.c_size_t),
        ("WorkingSetSize", ctypes.c_size_t),
        ("QuotaPeakPagedPoolUsage", ctypes.c_size_t),
        ("QuotaPagedPoolUsage", ctypes.c_size_t),
        ("QuotaPeakNonPagedPoolUsage", ctypes.c_size_t),
        ("QuotaNonPagedPoolUsage", ctypes.c_size_t),
        ("PagefileUsage", ctypes.c_size_t),
        ("PeakPagefileUsage", ctypes.c_size_t),
    )


def _peak_on_windows() -> int:
    kernel: Any = vars(ctypes)["WinDLL"]("kernel32")
    kernel.GetCurrentProcess.restype = ctypes.c_void_p  # a handle has the size of a pointer
    counters = _Counters(cb=ctypes.sizeof(_Counters))
    process = ctypes.c_void_p(kernel.GetCurrentProcess())
    kernel.K32GetProcessMemoryInfo(process, ctypes.byref(counters), counters.cb)
    return int(counters.PeakWorkingSetSize)
