"""The measurements of gpu_check.py: functions from a `Run` to rows of a table, each called in a new process.

To measure a change of the training step, add one line to `VARIANTS`.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import shutil
import signal
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch._dynamo  # each process would import it again
import torch.nn.functional as F
from flops import matrix_peak, tokens_and_flops, wait_for
from synthetic import MEDIAN, RandomStore, Setting, SyntheticTraining, machine_of, random_model
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.batches import search
from transformer_mt.decoding.request import Request
from transformer_mt.kernels.build import parts_for
from transformer_mt.runtime.device import Machine, peak_memory, random_states, restore_random_states

Row = dict[str, Any]
PEAK = "bfloat16 matrix peak, TFLOP/s"
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
TOP = 20  # kernels of a profile


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
        return replace(given, size="toy", vocabulary=200, batch_tokens=300, updates=4, threads=1, backend="eager")


class Part(NamedTuple):
    """weight: its share of the time, compared with the other parts."""

    title: str
    weight: float


class Case(NamedTuple):
    part: str
    name: str
    measure: Callable[[Run], list[Row]]


PARTS = {
    "machine": Part("what there is", 2),
    "parity": Part("losses of 20 updates on the CPU and on the GPU", 8),
    "train": Part("updates on random sentences; FLOPs of real tokens", 40),
    "attention": Part("forward and backward, and what the first call with a new shape costs", 12),
    "profile": Part("kernels of an update, slowest first", 8),
    "decode": Part("translations of random sentences, as long as their sources", 14),
    "matrices": Part("TFLOP/s of the products of an update, in bfloat16", 6),
    "resume": Part("a training that is killed and continued, beside one that is not", 8),
}


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


def uses_gpu(run: Run) -> list[Row]:
    return [{"value": float(torch.ones(1, device=run.device).sum())}]


def machine(run: Run) -> list[Row]:
    device = machine_of(run.setting()).device
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


def datasheet(device: torch.device) -> float | None:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    return next((peak for part, peak in DATASHEET.items() if part in name), None)


@dataclass(frozen=True)
class Variant:
    """A way to train. before: sets switches of PyTorch, after the project has set its own."""

    name: str
    setting: dict[str, Any]
    before: Callable[[], object] | None = None


CUDNN_ON, CUDNN_OFF = (partial(torch.backends.cuda.enable_cudnn_sdp, on) for on in (True, False))


VARIANTS = [
    Variant("base", {}),
    Variant("base, compiled", {"compile": True}),
    Variant("base, cuDNN attention off", {}, CUDNN_OFF),
    Variant("base, cuDNN attention on", {}, CUDNN_ON),
    Variant("base, cuDNN attention on, one shape", {"shapes": "fixed"}, CUDNN_ON),
    Variant("base, cuDNN attention off, one shape", {"shapes": "fixed"}, CUDNN_OFF),
    Variant("big", {"size": "big"}),
    Variant("big, compiled", {"size": "big", "compile": True}),
    Variant("base, muon", {"optimizer": "muon"}),
    Variant("base, batches of 4,096", {"batch_tokens": 4096}),
    Variant("base, batches of 65,536", {"batch_tokens": 65_536}),
    Variant("base, float32 (TF32)", {"precision": "float32"}),
]


def train(run: Run, variant: Variant) -> list[Row]:
    """Speed and memory. The first updates, which compile and allocate, are not in the speed."""
    warm_up, most = (1, 3) if run.toy else (10, 90)
    training = SyntheticTraining(run.setting(**variant.setting))
    if variant.before is not None:
        variant.before()
    device, marks = training.machine.device, []
    started = now(device)
    training.update(0)
    first = now(device) - started
    for number in range(1, most):
        if number == warm_up:
            started = now(device)
        training.update(number)
        if number >= warm_up:
            marks.append(mark(device))
        if number % 10 == 9 and number > warm_up and now(device) - started > run.seconds:
            break
    seconds = now(device) - started
    gaps = [between(*pair) for pair in pairwise(marks)]
    setting = training.setting
    tokens, flops = tokens_and_flops(training.batches, range(warm_up, number + 1), setting.model, setting.vocabulary)
    peak = run.peak or matrix_peak(device)
    official = datasheet(device)
    return [
        {
            "variant": variant.name,
            "tokens/s": tokens / seconds,
            "ms": 1000 * seconds / len(marks),
            "slowest ms": 1000 * max(gaps),
            "first s": first,
            "TFLOP/s": flops / seconds / 1e12,
            "of measured peak %": 100 * flops / seconds / peak,
            "MFU %": 100 * flops / seconds / official / 1e12 if official else None,
            "GiB": peak_memory(device) / 2**30,
            "graphs": torch._dynamo.utils.counters["stats"]["unique_graphs"] if setting.compile else None,
        }
    ]


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


BACKENDS: dict[str, SDPBackend | None] = {
    "as chosen": None,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}


def attention(run: Run, backend: str) -> list[Row]:
    """Times of one kind of attention for each size and mask, and which kernel ran."""
    allowed = BACKENDS[backend]
    setting = run.setting()
    machine_of(setting)  # the project's own switches
    rows = []
    for size in ("base", "big"):
        for mask in ("none", "padding", "causal"):
            row: Row = {"backend": backend, "size": size, "mask": mask}
            try:
                with sdpa_kernel(allowed) if allowed is not None else nullcontext():
                    row |= attention_times(run.setting(size=size), mask, run)
            except RuntimeError as error:
                row["kernel"] = f"not supported ({str(error).splitlines()[0][:40]})"
            rows.append(row)
    return rows


def attention_times(setting: Setting, mask: str, run: Run) -> Row:
    usual, new = (4, range(5, 7)) if run.toy else (MEDIAN + 4, range(MEDIAN + 5, MEDIAN + 17))
    device = machine_of(setting).device
    with Kernels() as kernels:
        attend(setting, usual, mask)()
    seconds = timed(attend(setting, usual, mask), device, run.short)
    costs = []
    for length in new:
        work, times = attend(setting, length, mask), []
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


def attend(setting: Setting, length: int, mask: str) -> Callable[[], None]:
    """Forward and backward of the model's attention on a batch of sentences of this length."""
    model, machine = setting.model, machine_of(setting)
    rows = setting.batch_tokens // length
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
    model, machine = setting.model, machine_of(setting)
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


def profile(run: Run, compiled: bool) -> list[Row]:
    """The kernels of an update: how often, how long, and which share of the time."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    updates, warm_up = (1, 1) if run.toy else (5, 5)
    training = SyntheticTraining(run.setting(compile=compiled))
    device = training.machine.device
    for number in range(warm_up):
        training.update(number)
    started = now(device)
    kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device.type == "cuda" else [])
    with profiler(activities=kinds, acc_events=True) as profiled:
        for number in range(warm_up, warm_up + updates):
            training.update(number)
        wait_for(device)
    seconds = now(device) - started
    found = profiled.key_averages()
    if device.type == "cuda":
        kernels = [one for one in found if one.device_type == DeviceType.CUDA and not one.is_user_annotation]
        rows = [(one.key, one.count, one.self_device_time_total) for one in kernels]
    else:
        rows = [(one.key, one.count, one.self_cpu_time_total) for one in found]
    rows.sort(key=lambda row: -row[2])
    waits = sum(one.count for one in found if "Synchronize" in one.key)
    busy, calls = sum(row[2] for row in rows), sum(row[1] for row in rows)
    kind = "compiled" if compiled else "eager"
    total: Row = {"update": kind, "kernel": f"all; the CPU waited {waits / updates:.1f} times an update"}
    total |= {"calls": calls / updates, "ms": busy / updates / 1e3, "share of time %": busy / seconds / 1e4}
    return [total] + [
        {
            "kernel": name[:90],
            "calls": count / updates,
            "ms": time / updates / 1e3,
            "share of time %": time / seconds / 1e4,
        }
        for name, count, time in rows[:TOP]
    ]


def waiting(run: Run) -> list[Row]:
    """Lines of code that make the CPU wait for the GPU during an update."""
    training = SyntheticTraining(run.setting())
    training.update(0)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        if run.device == "cuda":
            torch.cuda.set_sync_debug_mode("warn")
        for number in (1, 2):
            training.update(number)
    places = [f"{one.filename}:{one.lineno}" for one in found if "synchroniz" in str(one.message)]
    rows = [{"kernel": f"wait at {place}", "calls": places.count(place) / 2} for place in dict.fromkeys(places)]
    return [{"update": "waits", "kernel": "all lines that wait", "calls": len(places) / 2}, *rows]


def decode(run: Run, beam: int, narrow: bool) -> list[Row]:
    """Sentences a second. Random weights rarely choose the end token, so the length limit ends the translations."""
    setting = replace(run.setting(), updates=8)
    device = machine_of(setting).device
    model = random_model(setting, device).eval()
    if narrow:
        model = model.to(torch.bfloat16)
    store = RandomStore(setting)
    requests = [Request(store.source[index]) for index in range(len(store))]
    decoding = DecodingConfig(beam=beam, max_length_ratio=1.0, max_length_offset=1)
    few, count = (4, 8) if run.toy else (256, 1024)
    search([model], requests[:few], decoding)
    while True:
        started = now(device)
        found = search([model], requests[:count], decoding)
        seconds = now(device) - started
        if seconds >= run.seconds / 2 or count >= len(requests):
            break
        count = min(len(requests), int(count * max(2, run.seconds / seconds)))
    tokens = sum(len(results[0].ids) for results in found)
    return [
        {
            "search": f"beam {beam}" if beam > 1 else "greedy",
            "weights": "bfloat16" if narrow else "float32",
            "sentences/s": len(found) / seconds,
            "tokens/s": tokens / seconds,
            "sentences": len(found),
            "tokens a sentence": tokens / len(found),
            "GiB": peak_memory(device) / 2**30,
        }
    ]


def parity(run: Run, precision: str, optimizer: str, allowed: float) -> list[Row]:
    """The same updates from the same weights, on the CPU in float32 and on the device, without dropout."""
    updates, setting = 20, run.setting(size="small", vocabulary=8000, batch_tokens=2048, updates=20)
    setting = replace(setting, optimizer=optimizer, dropout=0.0, tf32=False)
    expected = losses(replace(setting, device="cpu", precision="float32"), updates)
    found = losses(replace(setting, precision=precision), updates)
    difference = largest_difference(found, expected)
    return [
        {
            "optimizer": optimizer,
            "on the GPU": precision,
            "first loss": expected[0],
            "last": expected[-1],
            "last on the GPU": found[-1],
            "largest difference": difference,
            "allowed": allowed,
            "ok": difference <= allowed,
        }
    ]


def losses(setting: Setting, updates: int) -> list[float]:
    """The mean loss of a token in each update."""
    training = SyntheticTraining(setting)
    sums = [training.update(number).nll for number in range(updates)]
    plan, lengths = training.batches.plan(1), training.store.target.lengths
    tokens = [int(lengths[plan[number % len(plan)]].sum()) for number in range(updates)]
    return [float(nll) / count for nll, count in zip(sums, tokens, strict=True)]


def largest_difference(found: list[float], expected: list[float]) -> float:
    """Relative; infinite if one is not a number."""
    gaps = [abs(one - other) / abs(other) for one, other in zip(found, expected, strict=True)]
    return max(gaps) if all(np.isfinite(gaps)) else float("inf")


KEPT, KILLED, LAST = 6, 9, 12  # updates: of the checkpoint, of the kill at the earliest, and in all


def resume(run: Run, optimizer: str) -> list[Row]:
    """Train without interruption; then kill a training with SIGKILL, and continue it in a new process."""
    context = multiprocessing.get_context(run.processes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in ("whole", "killed", "continued"):
            process = context.Process(target=write_losses, args=(run, optimizer, folder, kind))
            process.start()
            while kind == "killed" and process.is_alive() and len(read_losses(folder, kind)) < KILLED:
                time.sleep(0.01)
            if kind == "killed":
                process.kill()
            process.join()
            if process.exitcode != (-signal.SIGKILL if kind == "killed" else 0):
                raise RuntimeError(f"the {kind} training ended with exit code {process.exitcode}")
        whole, killed, continued = (read_losses(folder, kind) for kind in ("whole", "killed", "continued"))
    rows = []
    for check, found, expected in (
        (f"updates 1 to {KEPT} in two processes", killed[:KEPT], whole[:KEPT]),
        (f"updates {KEPT + 1} to {LAST}, continued and not interrupted", continued, whole[KEPT:]),
    ):
        difference = largest_difference(found, expected)
        row: Row = {"optimizer": optimizer, "check": check, "largest difference": difference}
        rows.append(row | {"equal to the bit": str(found == expected), "ok": difference < 1e-4})
    return rows


def write_losses(run: Run, optimizer: str, folder: Path, kind: str) -> None:
    """Train and write each loss to a file. The training to kill keeps a checkpoint and does not end."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(True, warn_only=True)
    training = SyntheticTraining(run.setting(size="small", vocabulary=8000, batch_tokens=2048, optimizer=optimizer))
    device, file, checkpoint, first = training.machine.device, folder / kind, folder / "checkpoint", 0
    if kind == "continued":
        kept = torch.load(checkpoint, weights_only=True)
        training.model.load_state_dict(kept["weights"])
        training.optimizer.load(kept["moments"])
        restore_random_states(kept["random"], device)
        first = KEPT
    with file.open("w") as written:
        for number in range(first, 100_000 if kind == "killed" else LAST):
            print(float(training.update(number).nll).hex(), file=written, flush=True)
            if kind == "killed" and number + 1 == KEPT:
                weights, moments = training.model.state_dict(), training.optimizer.tensors()
                torch.save({"weights": weights, "moments": moments, "random": random_states(device)}, checkpoint)


def read_losses(folder: Path, kind: str) -> list[float]:
    file = folder / kind
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    return [float.fromhex(line) for line in lines if line.endswith("\n")]


CASES = [
    Case("machine", "machine", machine),
    Case("parity", "float32", partial(parity, precision="float32", optimizer="adam", allowed=1e-3)),
    Case("parity", "bfloat16", partial(parity, precision="bfloat16", optimizer="adam", allowed=2e-2)),
    Case("parity", "float32, muon", partial(parity, precision="float32", optimizer="muon", allowed=1e-2)),
    *(Case("train", one.name, partial(train, variant=one)) for one in VARIANTS),
    *(Case("attention", name, partial(attention, backend=name)) for name in BACKENDS),
    Case("profile", "base", partial(profile, compiled=False)),
    Case("profile", "base, compiled", partial(profile, compiled=True)),
    Case("profile", "waits", waiting),
    Case("decode", "greedy, float32", partial(decode, beam=1, narrow=False)),
    Case("decode", "beam 5, float32", partial(decode, beam=5, narrow=False)),
    Case("decode", "greedy, bfloat16", partial(decode, beam=1, narrow=True)),
    Case("decode", "beam 5, bfloat16", partial(decode, beam=5, narrow=True)),
    *(Case("matrices", size, partial(matrices, size=size)) for size in ("base", "big")),
    *(Case("resume", kind, partial(resume, optimizer=kind)) for kind in ("adam", "muon")),
]
