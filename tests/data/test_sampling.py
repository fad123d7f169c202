"""Segmentations drawn by other processes: the same ones, in processes that start fast, and only for a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.data.conftest import Workshop
from transformer_mt.data.batching import Batches
from transformer_mt.data.parallel import Workers
from transformer_mt.data.planning import BatchSize
from transformer_mt.data.prepared import Prepared
from transformer_mt.data.sampling import Segmentations
from transformer_mt.runtime.device import Machine
from transformer_mt.runtime.distributed import World
from transformer_mt.workflows.batches import batches_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def prepared(workshop: Workshop) -> Prepared:
    tokenizer = {"kind": "sentencepiece", "algorithm": "bpe", "vocab_size": 60, "sampling": 0.3, "shared": True}
    corpus = workshop.splits(workshop.numbered(300), languages=["de", "en"])
    return workshop.prepare(corpus, tokenizer=tokenizer, directions=["de-en", "en-de"], source=None, target=None)


@pytest.mark.parametrize("packing", [False, True])
def test_other_processes_draw_the_same_segmentations(prepared: Prepared, packing: bool) -> None:
    def batches(workers: Workers) -> Batches:
        store, size, sampler = prepared.store("train"), BatchSize(tokens=2_000), Segmentations(prepared)
        return Batches(store, size, 1, packing=packing, sampler=sampler, workers=workers, max_length=64)

    with Workers(2) as workers:
        alone, together = batches(Workers(1)), batches(workers)
        for update in range(alone.updates(1)):
            for one, other in zip(alone.update(1, update), together.update(1, update), strict=True):
                assert all(torch.equal(*pair) for pair in zip(one[:4], other[:4], strict=True))


def test_a_gpu_gets_processes_and_a_cpu_keeps_its_cores(prepared: Prepared, workshop: Workshop) -> None:
    def number(device: str, local_size: int = 1, **data: Any) -> int:
        config = workshop.config(workshop.splits(workshop.numbered(3)), **data)
        world = World(size=local_size, local_size=local_size)
        return batches_of(config, prepared, Machine(torch.device(device), torch.float32, world)).workers.number

    assert number("cpu", workers=6) == 1
    assert number("cuda", workers=6) == 6
    assert number("cuda", local_size=4, workers=6) == 1
    assert number("cuda", local_size=8, workers=6) == 1
    assert number("cuda", workers=64) == 16


def test_a_process_that_draws_does_not_import_torch() -> None:
    code = "import sys, transformer_mt.data.sampling; print('torch' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"
