"""The device, its number format and threads, and the states of the random generators."""

from __future__ import annotations

import ctypes
import os
import platform
import random
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from transformer_mt.config.cores import cores, cpu_quota
from transformer_mt.config.training import RuntimeConfig
from transformer_mt.errors import TmtError, first_line
from transformer_mt.runtime.distributed import ALONE, World
from transformer_mt.runtime.peak_memory import peak_process_bytes

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Machine:
    """A device, the number format of its matrix products, and the processes that train together."""

    device: torch.device
    dtype: torch.dtype
    world: World = ALONE

    def autocast(self) -> AbstractContextManager[object]:
        """Matrix products in `dtype`; sums, norms and the softmax stay in float32."""
        if self.dtype is torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)

    @property
    def needs_scaling(self) -> bool:
        """Whether the loss must be scaled: float16 gradients would underflow; bfloat16 has the range of float32."""
        return self.dtype is torch.float16

    def describe(self) -> str:
        """One line for the user: device, number format, number of processes."""
        threads = torch.get_num_threads()
        name = f"{threads} {'thread' if threads == 1 else 'threads'}"
        if self.device.type == "cuda":
            name = torch.cuda.get_device_name(self.device)
        processes = f", {self.world.size} processes" if self.world.size > 1 else ""
        return f"{self.device} ({name}), {str(self.dtype).removeprefix('torch.')}{processes}"


def set_up(config: RuntimeConfig, world: World = ALONE) -> Machine:
    """Choose the device and prepare it. Processes on one machine share its cores.

    Raises TmtError if this machine does not have the device, or the device does not support the number format.
    """
    device = pick_device(config.device, world.local_rank)
    if config.threads:
        torch.set_num_threads(config.threads)
    elif world.local_size > 1 and device.type == "cpu" and os.environ.get("OMP_NUM_THREADS", "1") == "1":
        # torchrun sets 1 thread for each process
        torch.set_num_threads(max(1, cores() // world.local_size))
    else:
        keep_to_quota()
    if device.type == "cuda":
        set_up_cuda(device, config.tf32)
    elif device.type == "cpu":
        torch.set_flush_denormal(True)
        keep_freed_memory()
    return Machine(device, _dtype(config.precision, device), world)


def keep_to_quota() -> None:
    """Use no more threads than the CPU limit of the container, which PyTorch does not read; OMP_NUM_THREADS wins."""
    quota = cpu_quota()
    if quota is not None and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(min(quota, torch.get_num_threads()))


def set_up_cuda(device: torch.device, tf32: bool = True) -> None:
    """Prepare PyTorch for batches of many shapes on a GPU. Must be called before the first tensor on it."""
    is_wsl = "microsoft" in platform.release().lower()
    if sys.platform == "linux" and not is_wsl and "PYTORCH_CUDA_ALLOC_CONF" not in os.environ:  # the older name
        # Without it, the memory of batches of many shapes fragments. PyTorch (from 2.11 on) reads it when it makes the
        # first tensor on a GPU. On WSL, that tensor may fail with it (PyTorch issue 192330).
        os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    torch.backends.cuda.enable_cudnn_sdp(False)  # cuDNN's attention makes a new plan for each shape
    torch.cuda.set_device(device)
    allow_tf32(tf32)


def allow_tf32(allowed: bool) -> None:
    """Whether the float32 products of this process are rounded to TF32 on a GPU."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed


def pick_device(name: str, local_rank: int = 0) -> torch.device:
    """The device with this name; `auto` is cuda, else mps, else cpu. Raises TmtError if it is not available.

    local_rank: which GPU, unless the name has it, as in `cuda:1`
    """
    kind, colon, number = name.partition(":")
    if kind == "cuda" and number.isascii() and number.isdigit():
        name, local_rank = kind, int(number)
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if available[kind])
    if not available.get(name, False):
        known = name in available
        raise TmtError(
            f"no {name} device on this machine" if known else f"unknown device '{name}'",
            place="--device",
            remedy=f"Use --device auto, or one of: {', '.join(kind for kind, found in available.items() if found)}.",
        )
    if name != "cuda":
        return torch.device(name)
    if local_rank >= torch.cuda.device_count():
        if colon:
            raise TmtError(
                f"there is no GPU {number} on this machine: it has {torch.cuda.device_count()}, counted from 0",
                place="--device",
                remedy="Use --device cuda, which takes the first one.",
            )
        raise TmtError(
            f"no GPU is left for process {local_rank + 1} on this machine: it has {torch.cuda.device_count()}",
            place="--device",
            remedy=f"Start one process per GPU:  torchrun --nproc-per-node {torch.cuda.device_count()}",
        )
    return torch.device(name, local_rank)


def compiles(config: RuntimeConfig, device: torch.device) -> bool:
    """Whether training is compiled. `auto`: on a CUDA GPU, if a compiler works there."""
    if config.compile == "auto":
        return device.type == "cuda" and not compiler_problem(device)
    return config.compile


@cache
def compiler_problem(device: torch.device) -> str:
    """Why torch.compile fails on a device, in one line; "" if it works. Takes some seconds."""
    try:
        torch.compile(lambda x: x.exp().sum(), dynamic=False)(torch.zeros(64, device=device))
    except Exception as error:  # packages and programs may be missing, too old, or not start
        return first_line(error)
    return ""


def _dtype(precision: str, device: torch.device) -> torch.dtype:
    """The number format for `runtime.precision`. Raises TmtError for float16 on a CPU."""
    if precision in ("auto", "fast"):
        narrow = multiplies_bfloat16(device) and (device.type != "cpu" or precision == "fast")
        return torch.bfloat16 if narrow else torch.float32
    if precision == "float16" and device.type == "cpu":
        raise TmtError("float16 needs a GPU", place="runtime.precision", remedy="Use float32 or bfloat16.")
    return _DTYPES[precision]


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether the device multiplies in bfloat16 faster than in float32; False if PyTorch cannot tell."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    known: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    if known.get("amx_bf16") or known.get("bf16"):
        return True
    # Intel's processors since Sapphire Rapids, which added avx512_fp16, need AMX for it: without, as in many virtual
    # machines, bfloat16 is half as fast as float32.
    needs_amx = known.get("avx512_fp16") and "intel" in str(known.get("cpu_name")).lower()
    return bool(known.get("avx512_bf16") and not needs_amx)


def seed_everything(seed: int) -> None:
    """Seed the random generators of Python, NumPy and PyTorch."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


@contextmanager
def process_unchanged() -> Iterator[None]:
    """After the `with` block, the process has its threads and the states of its random generators on the CPU again.

    Also whether tiny numbers are flushed to zero.
    """
    states, threads = (random.getstate(), np.random.get_state(), torch.get_rng_state()), torch.get_num_threads()
    flushes = not torch.full((1,), 1e-42, dtype=torch.float32, device="cpu").mul(1).any()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(flushes)
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])


def random_states(device: torch.device) -> dict[str, torch.Tensor]:
    """The states of the generators that training uses: `cpu`, and `cuda` or `mps` on a GPU."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    if device.type == "mps":
        states["mps"] = torch.mps.get_rng_state()
    return states


def restore_random_states(states: dict[str, torch.Tensor], device: torch.device) -> None:
    """Restore the states that `random_states` returned."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
    if device.type == "mps" and "mps" in states:
        torch.mps.set_rng_state(states["mps"])


def keep_freed_memory() -> None:
    """Let glibc keep freed memory. By default it returns the memory of each large tensor to the system.

    The system would then map and zero the same pages in each step, which takes a large part of a step's time.
    """
    m_trim_threshold, m_mmap_threshold = -1, -3
    try:
        libc = ctypes.CDLL("libc.so.6")
        # older versions refuse more than 32 MiB; without this threshold, the other one would do harm
        if libc.mallopt(m_mmap_threshold, 1 << 30) or libc.mallopt(m_mmap_threshold, 32 << 20):
            libc.mallopt(m_trim_threshold, 1 << 30)
    except (OSError, AttributeError):  # another C library
        pass


def free_memory(device: torch.device) -> int:
    """Bytes of a CUDA GPU that this process can still use: those that nobody has, and those it keeps for reuse."""
    reusable = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + reusable


def second_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream of a CUDA GPU for work of a second thread, which begins after all that the current stream has to do.

    There is one of a device, because PyTorch keeps freed memory for the stream that it was used on.
    """
    stream = _second_stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    return stream


@cache
def _second_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)


_peaks: dict[torch.device, int] = {}  # before `restart_peak`


def peak_memory(device: torch.device) -> int:
    """The largest number of bytes in use so far: on the device, or by this process on a CPU."""
    if device.type == "cuda":
        return max(_peaks.get(device, 0), torch.cuda.max_memory_allocated(device))
    return peak_process_bytes()


def restart_peak(device: torch.device) -> None:
    """From here on, `torch.cuda.max_memory_allocated` is that of later work; `peak_memory` still knows what was."""
    _peaks[device] = peak_memory(device)
    torch.cuda.reset_peak_memory_stats(device)
