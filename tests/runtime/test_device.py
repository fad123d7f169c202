"""Devices, number formats and random generators."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

import transformer_mt.runtime.device as device_module
from transformer_mt.config.training import RuntimeConfig
from transformer_mt.errors import TmtError
from transformer_mt.runtime.device import (
    Machine,
    peak_memory,
    pick_device,
    random_states,
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


def test_precision():
    assert set_up(RuntimeConfig(device="cpu", precision="bfloat16")).dtype is torch.bfloat16
    with pytest.raises(TmtError, match="float16 needs a GPU"):
        set_up(RuntimeConfig(device="cpu", precision="float16"))
    assert set_up(RuntimeConfig(device="cpu", precision="auto")).dtype is torch.float32
    assert Machine(torch.device("cuda"), torch.float16).needs_scaling
    assert not Machine(CPU, torch.bfloat16).needs_scaling


@pytest.mark.parametrize(("instructions", "dtype"), [("avx512_bf16", torch.bfloat16), ("avx2", torch.float32)])
def test_fast_is_bfloat16_if_the_processor_has_it(monkeypatch, instructions: str, dtype: torch.dtype):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {instructions: True, "amx_bf16": False}, raising=False)
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


def test_pytorch_reads_the_settings_of_its_memory_after_its_import():
    """The variable is set when the device is known, long after the import of torch."""
    read = "torch._C._accelerator_getAllocatorSettings()"
    code = f"import os, torch; os.environ['PYTORCH_ALLOC_CONF'] = 'expandable_segments:True'; print({read})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "expandable_segments:True\n"
