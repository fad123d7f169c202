"""Segmentations drawn by other processes: the same ones, whatever happens to the processes, and only for a GPU."""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.data.conftest import Workshop
from transformer_mt.data.batching import Batches
from transformer_mt.data.planning import BatchSize
from transformer_mt.data.prepared import Prepared
from transformer_mt.data.sampling import SegmentationSampler
from transformer_mt.errors import TmtError
from transformer_mt.runtime.device import Machine
from transformer_mt.runtime.distributed import World
from transformer_mt.workflows.batches import sampling_processes

pytestmark = pytest.mark.slow

ASKED = [(pair, f"seed-{pair}") for pair in range(200)]
TOKENIZER = {"kind": "sentencepiece", "algorithm": "bpe", "vocab_size": 60, "sampling": 0.3, "shared": True}


def prepared_by(workshop: Workshop, **tokenizer: Any) -> Prepared:
    corpus = workshop.splits(workshop.numbered(300), languages=["de", "en"])
    directions = ["de-en", "en-de"]
    return workshop.prepare(corpus, tokenizer=TOKENIZER | tokenizer, directions=directions, source=None, target=None)


@pytest.fixture
def prepared(workshop: Workshop) -> Prepared:
    return prepared_by(workshop)


@pytest.mark.parametrize("packing", [False, True])
def test_other_processes_draw_the_same_batches(prepared: Prepared, packing: bool) -> None:
    def batches(processes: int) -> Batches:
        store, sampler = prepared.store("train"), SegmentationSampler(prepared, processes)
        return Batches(store, BatchSize(tokens=2_000), 1, packing=packing, sampler=sampler, max_length=64)

    alone, together = batches(1), batches(2)
    assert alone.sampler is not None
    assert together.sampler is not None
    assert (alone.sampler.together, together.sampler.together) == (1, 128)
    assert len(active_children()) == 2
    for update in range(alone.updates(1)):
        for one, other in zip(alone.update(1, update), together.update(1, update), strict=True):
            assert all(torch.equal(*pair) for pair in zip(one[:4], other[:4], strict=True))
    together.close()
    assert not active_children()
    assert together.update(1, 0)  # new processes
    together.close()


def test_the_processes_do_the_work_without_torch(prepared: Prepared) -> None:
    sampler = SegmentationSampler(prepared, 2)
    sampler(ASKED)
    pids = [child.pid for child in active_children()]
    maps = [Path(f"/proc/{pid}/maps") for pid in pids]
    if not all(file.exists() for file in maps):
        pytest.skip("this system does not show what a process has loaded")
    assert len(maps) == 2
    assert all("sentencepiece" in file.read_text() for file in maps)
    assert not any("libtorch" in file.read_text() for file in maps)
    sampler.close()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal on this system")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_if_processes_are_killed_nothing_is_lost(prepared: Prepared, name: str) -> None:
    said: list[str] = []
    sampler, expected = SegmentationSampler(prepared, 2, said.append), SegmentationSampler(prepared)(ASKED)
    assert sampler(ASKED) == expected
    for child in active_children():
        assert child.pid is not None
        os.kill(child.pid, getattr(signal, name))
    assert sampler(ASKED) == expected
    assert sampler(ASKED) == expected
    (line,) = said
    assert "was killed" in line
    assert not active_children()


@pytest.mark.parametrize("name", ["SIGHUP", "SIGUSR1", "SIGUSR2", "SIGXCPU"])
def test_signals_that_a_cluster_sends_to_all_processes_are_left_to_the_parent(prepared: Prepared, name: str) -> None:
    if not hasattr(signal, name):
        pytest.skip("no such signal on this system")
    said: list[str] = []
    sampler = SegmentationSampler(prepared, 2, said.append)
    expected = sampler(ASKED)
    for child in active_children():
        assert child.pid is not None
        os.kill(child.pid, getattr(signal, name))
    assert sampler(ASKED) == expected
    assert said == []
    sampler.close()


def test_a_thread_may_draw_and_the_working_directory_may_change(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(prepared.folder.parent)
    sampler, drawn = SegmentationSampler(Prepared.open(Path(prepared.folder.name)), 2), list[Any]()
    monkeypatch.chdir("/")
    thread = threading.Thread(target=lambda: drawn.append(sampler(ASKED)))
    thread.start()
    thread.join()
    sampler.close()
    assert drawn == [SegmentationSampler(prepared)(ASKED)]


def test_data_prepared_again_with_other_tokenizers_are_refused(workshop: Workshop) -> None:
    prepared = prepared_by(workshop)
    sampler = SegmentationSampler(prepared, 2)
    prepared_by(workshop, vocab_size=70)
    with pytest.raises(TmtError, match="prepared again while a training uses it"):
        sampler(ASKED)
    sampler.close()


def test_a_gpu_gets_processes_and_a_cpu_keeps_its_cores(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    def number(device: str, local_size: int = 1, workers: int = 0) -> int:
        config = workshop.config(workshop.splits(workshop.numbered(3)), workers=workers)
        world = World(size=local_size, local_size=local_size)
        return sampling_processes(config, Machine(torch.device(device), torch.float32, world))

    monkeypatch.setattr("transformer_mt.workflows.batches.cores", lambda wanted: wanted or 48)
    assert number("cpu") == number("cpu", workers=6) == 1
    assert number("cuda") == 16
    assert number("cuda", local_size=4) == 12
    assert number("cuda", workers=6) == 6
    assert number("cuda", workers=40) == 40
    assert number("cuda", local_size=4, workers=6) == number("cuda", workers=1) == 1
