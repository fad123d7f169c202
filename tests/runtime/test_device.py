"""Devices, number formats and random generators."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import transformer_mt.runtime.device as device_module
from transformer_mt.config.training import RuntimeConfig
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import TmtError
from transformer_mt.runtime.device import (
    Machine,
    keep_freed_memory,
    peak_memory,
    pick_device,
    process_unchanged,
    random_states,
    restart_peak,
    restore_random_states,
    seed_everything,
    set_up,
)
from transformer_mt.runtime.distributed import World

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
    torch.set_flush_denormal(False)


def test_an_unavailable_device_is_refused_with_the_available_ones(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(TmtError, match="no cuda device on this machine") as failure:
        pick_device("cuda")
    assert failure.value.exit_code == 2
    assert "cpu" in failure.value.remedy
    with pytest.raises(TmtError, match="unknown device 'tpu'"):
        pick_device("tpu")


def test_auto_takes_the_fastest_available_device(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    for available, device in ((True, torch.device("cuda", 1)), (False, CPU)):
        monkeypatch.setattr(torch.cuda, "is_available", lambda available=available: available)
        monkeypatch.setattr(torch.cuda, "device_count", lambda available=available: 2 * available)
        assert pick_device("auto", local_rank=1) == device


def test_a_gpu_has_its_number_and_the_name_of_a_device_is_a_device(monkeypatch):
    """`tmt synthesize` translates on the device of its trainings."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for name, rank, number in (("cuda", 1, 1), ("cuda:0", 1, 0), ("cuda:1", 0, 1)):
        device = pick_device(name, rank)
        assert device == torch.device("cuda", number) == pick_device(str(device))
    assert pick_device(str(pick_device("cpu"))) == CPU
    with pytest.raises(TmtError, match="there is no GPU 2 on this machine: it has 2, counted from 0"):
        pick_device("cuda:2")
    for name in ("cuda:x", "cuda:", "auto:0", "cpu:1", "cuda:-1", "cuda:²"):
        with pytest.raises(TmtError, match=f"unknown device '{name}'"):
            pick_device(name)


@pytest.mark.parametrize(
    ("most", "expected"),
    [(1 << 30, [1 << 30, "trim"]), (32 << 20, [1 << 30, 32 << 20, "trim"]), (0, [1 << 30, 32 << 20])],
)
def test_an_older_c_library_that_refuses_large_thresholds(monkeypatch, most, expected):
    """A trimming threshold alone would turn off the library's own one for large tensors."""
    asked = []

    class Library:
        def mallopt(self, option: int, value: int) -> int:
            asked.append("trim" if option == -1 else value)
            return int(value <= most)

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    keep_freed_memory()
    assert asked == expected


def test_a_peak_that_is_restarted_is_still_reported(monkeypatch):
    device, peaks = torch.device("cuda", 7), [14, 14, 3]
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: peaks[0])
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: peaks.__delitem__(slice(0, 2)))
    restart_peak(device)
    assert torch.cuda.max_memory_allocated(device) == 3
    assert peak_memory(device) == 14


def test_more_processes_than_gpus_are_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(TmtError, match=r"no GPU is left for process 3 on this machine: it has 2") as failure:
        pick_device("auto", local_rank=2)
    assert "--nproc-per-node 2" in failure.value.remedy


def test_threads_are_configured_or_shared_among_processes_on_a_machine(monkeypatch):
    assert set_up(RuntimeConfig(device="cpu", threads=2)) == Machine(CPU, torch.float32)
    assert torch.get_num_threads() == 2
    set_up(RuntimeConfig(device="cpu"))
    assert torch.get_num_threads() == 2  # a single process: unchanged
    monkeypatch.setattr(device_module, "cores", lambda: 6)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    set_up(RuntimeConfig(device="cpu"), World(local_size=2))
    assert torch.get_num_threads() == 2  # the user's setting
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for processes, threads in ((2, 3), (4, 1), (8, 1)):  # torchrun sets OMP_NUM_THREADS to 1
        set_up(RuntimeConfig(device="cpu"), World(local_size=processes))
        assert torch.get_num_threads() == threads


@pytest.mark.parametrize("translates", [False, True])
def test_pytorch_keeps_to_the_limit_of_a_container(translates: bool, tiny_model: Path, monkeypatch: pytest.MonkeyPatch):
    def begin() -> None:
        if translates:
            Translator.load(tiny_model)
        else:
            set_up(RuntimeConfig(device="cpu"))

    before = torch.get_num_threads()
    monkeypatch.setattr(device_module, "cpu_quota", lambda: 1)
    try:
        torch.set_num_threads(2)
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        begin()
        assert torch.get_num_threads() == 2
        monkeypatch.delenv("OMP_NUM_THREADS")
        begin()
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_precision():
    assert set_up(RuntimeConfig(device="cpu", precision="bfloat16")).dtype is torch.bfloat16
    with pytest.raises(TmtError, match="float16 needs a GPU"):
        set_up(RuntimeConfig(device="cpu", precision="float16"))
    assert set_up(RuntimeConfig(device="cpu", precision="auto")).dtype is torch.float32
    assert Machine(torch.device("cuda"), torch.float16).needs_scaling
    assert not Machine(CPU, torch.bfloat16).needs_scaling


@pytest.mark.parametrize(
    ("processor", "instructions", "dtype"),
    [
        ("AMD EPYC", {"avx512_bf16"}, torch.bfloat16),
        ("AMD EPYC", {"avx512_bf16", "avx512_fp16"}, torch.bfloat16),
        ("Intel Xeon", {"avx512_bf16"}, torch.bfloat16),
        ("Intel Xeon", {"avx512_bf16", "avx512_fp16"}, torch.float32),  # at half the speed of float32
        ("Intel Xeon", {"avx512_bf16", "avx512_fp16", "amx_bf16"}, torch.bfloat16),
        ("ARM Neoverse V1", {"bf16"}, torch.bfloat16),
        ("AMD EPYC", {"avx2"}, torch.float32),
    ],
)
def test_fast_is_bfloat16_if_the_processor_is_faster_with_it(monkeypatch, processor, instructions, dtype):
    known = {"cpu_name": processor, "amx_bf16": False, **dict.fromkeys(instructions, True)}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known, raising=False)
    assert set_up(RuntimeConfig(device="cpu", precision="fast")).dtype is dtype
    monkeypatch.delattr(torch.cpu, "get_capabilities")  # an older PyTorch
    assert set_up(RuntimeConfig(device="cpu", precision="fast")).dtype is torch.float32


def test_autocast_changes_only_matrix_products():
    matrix = torch.randn(4, 4)
    with Machine(CPU, torch.bfloat16).autocast():
        assert (matrix @ matrix).dtype is torch.bfloat16
        assert (matrix + matrix).dtype is torch.float32
    with Machine(CPU, torch.float32).autocast():
        assert (matrix @ matrix).dtype is torch.float32


def test_random_states_restore_every_generator():
    seed_everything(3)
    states = random_states(CPU)
    first = torch.randn(5)
    assert not torch.equal(torch.randn(5), first)
    restore_random_states(states, CPU)
    assert torch.equal(torch.randn(5), first)
    seed_everything(3)
    assert torch.equal(torch.randn(5), first)


@pytest.mark.parametrize("flushes", [True, False])
@pytest.mark.parametrize("defaults", ["bfloat16", "float64", "meta"])
def test_tiny_numbers_are_flushed_afterwards_as_before(flushes: bool, defaults: str) -> None:
    """Whatever the program of the user has as default type and device."""
    usual = torch.get_default_dtype()
    torch.set_flush_denormal(flushes)
    try:
        if defaults == "meta":
            with torch.device("meta"), process_unchanged():
                torch.set_flush_denormal(not flushes)
        else:
            torch.set_default_dtype(getattr(torch, defaults))
            with process_unchanged():
                torch.set_flush_denormal(not flushes)
    finally:
        torch.set_default_dtype(usual)
    assert (torch.tensor([1e-42]).mul(1).item() == 0) == flushes


def test_peak_memory_counts_memory_in_use():
    before = peak_memory(CPU)
    size = before + 50_000_000
    block = torch.ones(size // 4)
    assert peak_memory(CPU) >= block.numel() * 4


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch):
    """As on a machine with one NVIDIA GPU, without variables for PyTorch's memory."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.setenv(name, "")  # so that it is restored
        monkeypatch.delenv(name)
    kept = torch.backends.cuda.cudnn_sdp_enabled(), torch.backends.cuda.matmul.allow_tf32
    yield
    torch.backends.cuda.enable_cudnn_sdp(kept[0])
    torch.backends.cuda.matmul.allow_tf32 = kept[1]


@pytest.mark.skipif(sys.platform != "linux", reason="PyTorch supports expandable segments on Linux")
def test_a_gpu_is_prepared_for_batches_of_many_shapes(gpu, monkeypatch):
    for name, value in (("PYTORCH_CUDA_ALLOC_CONF", "backend:native"), ("PYTORCH_ALLOC_CONF", "backend:native")):
        monkeypatch.setenv(name, value)
        set_up(RuntimeConfig(device="cuda"))
        assert os.environ.get("PYTORCH_ALLOC_CONF", value) == value  # the user's own settings win
        monkeypatch.delenv(name)
    torch.backends.cuda.enable_cudnn_sdp(True)
    assert set_up(RuntimeConfig(device="cuda", tf32=False)).dtype is torch.bfloat16
    assert os.environ["PYTORCH_ALLOC_CONF"] == "expandable_segments:True"
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert not torch.backends.cuda.matmul.allow_tf32


def test_on_wsl_pytorch_keeps_the_memory_that_works_there(gpu, monkeypatch):
    monkeypatch.setattr(platform, "release", lambda: "6.6.87.2-microsoft-standard-WSL2")
    set_up(RuntimeConfig(device="cuda"))
    assert "PYTORCH_ALLOC_CONF" not in os.environ


def test_pytorch_reads_the_settings_of_its_memory_after_its_import():
    """The variable is set when the device is known, long after the import of torch."""
    read = "torch._C._accelerator_getAllocatorSettings()"
    code = f"import os, torch; os.environ['PYTORCH_ALLOC_CONF'] = 'expandable_segments:True'; print({read})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "expandable_segments:True\n"
