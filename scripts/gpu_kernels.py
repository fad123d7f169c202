"""Measurements of gpu_check.py: the machine, attention, matrix products, and the kernels of an update."""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from flops import matrix_peak, wait_for
from gpu_run import Row, Run, datasheet, now, timed
from synthetic import MEDIAN, Setting, trainer_of, update
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_mt.config.training import RuntimeConfig
from transformer_mt.kernels.build import parts_for
from transformer_mt.runtime.device import Machine, set_up

PEAK = "bfloat16 matrix peak, TFLOP/s"
TOP = 20  # kernels of a profile


def uses_gpu(run: Run) -> list[Row]:
    return [{"value": float(torch.ones(1, device=run.device).sum())}]


def machine(run: Run) -> list[Row]:
    device = set_up(RuntimeConfig(device=run.device)).device
    found: dict[str, Any] = {"Python, torch": f"{platform.python_version()}, {torch.__version__}"}
    if device.type == "cuda":
        own = torch.cuda.get_device_properties(device)
        found |= {
            "GPU": f"{own.name}, compute capability {own.major}.{own.minor}, {own.multi_processor_count} processors",
            "memory, GiB": round(own.total_memory / 2**30, 1),
            "CUDA, cuDNN": f"{torch.version.cuda}, {torch.backends.cudnn.version()}",
            "datasheet bfloat16 peak, TFLOP/s": datasheet(device),
        }
    found |= {"CPU cores": os.cpu_count(), "C compiler": shutil.which("cc") or "none"}
    width = 64 if run.toy else 8192
    found[PEAK] = (matrix_peak(device) if not run.toy else 1e9) / 1e12
    source = torch.empty(width * width * 16, dtype=torch.uint8, device=device)
    target, tiny = torch.empty_like(source), torch.zeros(1, device=device)
    found["copy, read and written, GB/s"] = (
        2 * len(source) / timed(lambda: target.copy_(source), device, run.short) / 1e9
    )
    found["start of a kernel, microseconds"] = timed(lambda: tiny.add_(1), device, run.short) * 1e6
    return [{"what": what, "value": value} for what, value in found.items()]


BACKENDS: dict[str, SDPBackend | None] = {
    "as chosen": None,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}


def attention(run: Run, backend: str) -> list[Row]:
    """Times of one kind of attention for each size and mask, and which kernel ran."""
    allowed, rows = BACKENDS[backend], []
    machine = set_up(RuntimeConfig(device=run.device))  # sets the project's own switches, which `sdpa_kernel` replaces
    for size in ("base", "big"):
        for mask in ("none", "padding", "causal"):
            row: Row = {"backend": backend, "size": size, "mask": mask}
            try:
                with sdpa_kernel(allowed) if allowed is not None else nullcontext():
                    row |= attention_times(run.setting(size=size), machine, mask, run)
            except RuntimeError as error:
                if allowed is None:
                    raise
                row["kernel"] = f"not supported ({str(error).splitlines()[0][:40]})"
            rows.append(row)
    return rows


def attention_times(setting: Setting, machine: Machine, mask: str, run: Run) -> Row:
    usual, new = (4, range(5, 7)) if run.toy else (MEDIAN + 4, range(MEDIAN + 5, MEDIAN + 17))
    device = machine.device
    with Kernels() as kernels:
        attend(setting, machine, usual, mask)()
    seconds = timed(attend(setting, machine, usual, mask), device, run.short)
    costs = []
    for length in new:
        work, times = attend(setting, machine, length, mask), []
        for _ in range(3):
            started = now(device)
            work()
            times.append(now(device) - started)
        costs.append(1000 * (times[0] - min(times[1:])))
    rows = setting.batch_tokens // usual
    flops = 3 * 4 * rows * usual**2 * setting.model.d_model
    return {
        "kernel": kernels.attention,
        "sentences, length": f"{rows}, {usual}",
        "microseconds": 1e6 * seconds,
        "TFLOP/s": flops / seconds / 1e12,
        "new shape ms": statistics.median(costs),
        "worst ms": max(costs),
    }


def attend(setting: Setting, machine: Machine, length: int, mask: str) -> Callable[[], None]:
    """Forward and backward of the model's attention on a batch of sentences of this length."""
    model, rows = setting.model, setting.batch_tokens // length
    kernel = parts_for(model, machine.device).attention
    stacked_BMX = torch.randn(rows, length, 3 * model.d_model, dtype=machine.dtype, device=machine.device)
    stacked_BMX.requires_grad_()
    gradient_BHMK = torch.ones_like(heads(stacked_BMX.detach(), model.n_heads)[0])
    mask_B11M = None
    if mask == "padding":
        real_B1 = torch.randint(length // 2, length + 1, (rows, 1), device=machine.device)
        mask_B11M = (torch.arange(length, device=machine.device) < real_B1)[:, None, None, :]

    def work() -> None:
        context_BHMK = kernel(*heads(stacked_BMX, model.n_heads), mask_B11M, mask == "causal", 0.0)
        torch.autograd.grad(context_BHMK, stacked_BMX, gradient_BHMK)

    return work


def heads(stacked_BMX: Tensor, n_heads: int) -> list[Tensor]:
    """Queries, keys and values as the model's projection leaves them."""
    return [one.unflatten(-1, (n_heads, -1)).transpose(1, 2) for one in stacked_BMX.chunk(3, dim=-1)]


class Kernels(TorchDispatchMode):
    """The operations that run inside, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))

    @property
    def attention(self) -> str:
        """The kernel of attention: flash, efficient, cudnn, ..., or math if it is written out."""
        fused = (name for name in self.names if name.startswith("_scaled_dot_product_") and "backward" not in name)
        return next((name.removeprefix("_scaled_dot_product_").split("_attention")[0] for name in fused), "math")


def matrices(run: Run, size: str) -> list[Row]:
    """Each product of an update, and the two products of its backward pass."""
    setting, vocabulary = run.setting(size=size), run.setting().vocabulary
    model, machine = setting.model, set_up(RuntimeConfig(device=run.device))
    d_model, d_ff, rows = model.d_model, model.d_ff, setting.batch_tokens
    shapes = {
        "queries, keys, values": (rows, d_model, 3 * d_model),
        "output of attention": (rows, d_model, d_model),
        "feed-forward, inner": (rows, d_model, d_ff),
        "feed-forward, outer": (rows, d_ff, d_model),
        "generator, 8,192 rows": (min(8192, rows), d_model, vocabulary),
        "generator, all rows": (rows, d_model, vocabulary),
    }
    return [
        {"size": size, "product": name, **product_speeds(*shape, machine, run.short)} for name, shape in shapes.items()
    ]


def product_speeds(n: int, d: int, e: int, machine: Machine, seconds: float) -> Row:
    options = {"dtype": machine.dtype, "device": machine.device}
    x_ND, w_ED, g_NE = (torch.randn(shape, **options) for shape in ((n, d), (e, d), (n, e)))
    works: dict[str, Callable[[], Tensor]] = {
        "forward": lambda: F.linear(x_ND, w_ED),
        "of the input": lambda: g_NE @ w_ED,
        "of the weight": lambda: g_NE.T @ x_ND,
    }
    speeds = {name: 2 * n * d * e / timed(work, machine.device, seconds) / 1e12 for name, work in works.items()}
    return {"rows": n, "in": d, "out": e, **speeds}


def profile(run: Run, name: str, **setting: Any) -> list[Row]:
    """The kernels of an update: how often, how long, and which share of the time."""
    updates, warm_up = (1, 1) if run.toy else (5, 5)
    trainer = trainer_of(run.setting(**setting))
    for _ in range(warm_up):
        update(trainer)
    return kernels_of(lambda: update(trainer), updates, trainer.machine.device, name)


def kernels_of(work: Callable[[], object], times: int, device: torch.device, name: str) -> list[Row]:
    """How often and how long each kernel runs in a call of `work`, and which share of the time it takes."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device.type == "cuda" else [])
    wait_for(device)
    with profiler(activities=kinds, acc_events=True) as profiled:
        started = time.perf_counter()
        for _ in range(times):
            work()
        wait_for(device)
        seconds = time.perf_counter() - started
    found = profiled.key_averages()
    if device.type == "cuda":
        kernels = [one for one in found if one.device_type == DeviceType.CUDA and not one.is_user_annotation]
        rows = [(one.key, one.count, one.self_device_time_total) for one in kernels]
    else:
        rows = [(one.key, one.count, one.self_cpu_time_total) for one in found]
    rows.sort(key=lambda row: -row[2])
    waits = sum(one.count for one in found if "Synchronize" in one.key) - (device.type == "cuda")  # the one above
    busy, calls = sum(row[2] for row in rows), sum(row[1] for row in rows)
    total: Row = {"profile": name, "kernel": f"all; the CPU waited {waits / times:.1f} times"}
    total |= {"calls": calls / times, "ms": busy / times / 1e3, "share of time %": busy / seconds / 1e4}
    return [total] + [
        {
            "kernel": name[:90],
            "calls": count / times,
            "ms": time / times / 1e3,
            "share of time %": time / seconds / 1e4,
        }
        for name, count, time in rows[:TOP]
    ]


def waiting(run: Run) -> list[Row]:
    """Lines of code that make the CPU wait for the GPU during an update."""
    trainer = trainer_of(run.setting())
    update(trainer)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        if run.device == "cuda":
            torch.cuda.set_sync_debug_mode("warn")
        for _ in range(2):
            update(trainer)
    places = [f"{one.filename}:{one.lineno}" for one in found if "synchroniz" in str(one.message)]
    rows = [{"kernel": f"wait at {place}", "calls": places.count(place) / 2} for place in dict.fromkeys(places)]
    return [{"profile": "waits", "kernel": "all lines that wait", "calls": len(places) / 2}, *rows]
