"""Measures how long a training step waits for its batch, with a step that is a stub.

    python scripts/bench_loader.py [--batch-tokens 25000] [--rate 200] [--updates 2000] [--packing]
    python scripts/bench_loader.py --config configs/multi30k-en-de-dropout.yaml --workers 2

A stub takes 1 / --rate seconds: `sleep` leaves Python free, as a step that waits for its GPU does; `launch` keeps
Python busy with small tensor operations, as a step that launches kernels does. Batches come without a thread, from
the loader's thread (`data/loader.py`), or from a process of PyTorch's DataLoader, which has a Python of its own, but
has to hand over its tensors. With a GPU they are pinned and copied to it, as in training. Printed are the mean, the
99th percentile and the longest wait for a batch with its copy, in milliseconds; by how much the stub itself takes
longer than alone; updates and pairs a second; and the processor time for an update, of all threads and DataLoader's
process, without the processes that draw segmentations. The first epoch is not measured.

--config:  the prepared data of a config instead of random ids; with its tokenizer.sampling, segmentations are drawn
--workers: processes that draw them; without `process`, whose copy of this process has no pool of its own
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from bench_epoch import write_store
from flops import wait_for
from torch.utils.data import DataLoader, IterableDataset

from transformer_mt import load_config, prepare
from transformer_mt.data.batching import Batches, Update
from transformer_mt.data.loader import Loader
from transformer_mt.data.planning import BatchSize, Cursor
from transformer_mt.data.prepare import samples_segmentations
from transformer_mt.data.sampling import SegmentationSampler
from transformer_mt.data.store import Store
from transformer_mt.training.trainer import PREFETCH

HOWS = ("none", "thread", "process")


def main() -> None:
    options = parse()
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    torch.set_num_threads(1)
    print(f"{options.batch_tokens:,} tokens a batch, {options.updates:,} updates, {device}, {options.ahead} ahead")
    print(
        f"{'stub':<7} {'batches':<8} {'mean ms':>8} {'p99 ms':>8} {'longest':>8} {'stub':>7} {'updates/s':>10}"
        f" {'pairs/s':>9} {'processor ms':>13}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as name:
        if options.config is None:
            write_store(Path(name), options.pairs)
        for kind in options.stubs:
            stub = STUBS[kind](1 / options.rate)
            alone = seconds_alone(stub, options.updates // 4)
            for how in options.hows:
                print(f"{kind:<7} {how:<8} {measure(options, Path(name), how, stub, alone, device)}", flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch-tokens", type=int, default=25_000)
    parser.add_argument("--rate", type=float, default=200, help="updates a second of the stub")
    parser.add_argument("--updates", type=int, default=2_000)
    parser.add_argument("--pairs", type=int, default=1_000_000, help="of the corpus")
    parser.add_argument("--ahead", type=int, default=PREFETCH)
    parser.add_argument("--packing", action="store_true")
    parser.add_argument("--config")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--stubs", nargs="+", choices=STUBS, default=list(STUBS))
    parser.add_argument("--hows", nargs="+", choices=HOWS, default=list(HOWS))
    options = parser.parse_args()
    if options.workers > 1:
        options.hows = [how for how in options.hows if how != "process"]
    return options


def sleeping(seconds: float) -> Callable[[], object]:
    return lambda: time.sleep(seconds)


def launching(seconds: float) -> Callable[[], object]:
    """So many small operations that they take this long without another thread."""
    values = torch.zeros(16)

    def operate(number: int) -> None:
        for _ in range(number):
            values.add_(1.0)

    operate(10_000)
    best = min(timed(lambda: operate(5_000)) for _ in range(9))
    return lambda: operate(round(5_000 * seconds / best))


STUBS: dict[str, Callable[[float], Callable[[], object]]] = {"sleep": sleeping, "launch": launching}


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def seconds_alone(stub: Callable[[], object], updates: int) -> float:
    return float(np.mean([timed(stub) for _ in range(updates)]))


def measure(
    options: argparse.Namespace,
    folder: Path,
    how: str,
    stub: Callable[[], object],
    alone: float,
    device: torch.device,
) -> str:
    batches = batches_of(options, folder)
    updates, close = source(batches, how, options.ahead, device)
    waits, steps = [], []
    for _ in range(3 * options.ahead):
        next(updates)
        stub()
    wait_for(device)
    started, used = time.perf_counter(), processor_seconds()
    pairs = 0

    def copy() -> None:
        nonlocal pairs
        for batch in next(updates).batches:
            pairs += batch.to(device).pairs

    for _ in range(options.updates):
        waits.append(timed(copy))
        steps.append(timed(stub))
    wait_for(device)
    seconds = time.perf_counter() - started
    close()
    used = processor_seconds() - used
    batches.close()
    mean, p99, longest = (1000 * value for value in (np.mean(waits), np.percentile(waits, 99), max(waits)))
    longer = np.mean(steps) / alone - 1
    return (
        f"{mean:8.2f} {p99:8.2f} {longest:8.1f} {longer:+7.1%} {options.updates / seconds:10.1f}"
        f" {pairs / seconds:9,.0f}"
        f" {1000 * used / options.updates:13.2f}"
    )


def batches_of(options: argparse.Namespace, folder: Path) -> Batches:
    size = BatchSize(tokens=options.batch_tokens)
    if options.config is None:
        return Batches(Store(folder), size, 1, packing=options.packing, max_length=128)
    config = load_config(options.config)
    prepared = prepare(config)
    return Batches(
        prepared.store("train"),
        size,
        config.seed,
        packing=options.packing,
        sampler=SegmentationSampler(prepared, options.workers) if samples_segmentations(config) else None,
        max_length=config.data.max_length,
    )


class Stream(IterableDataset[Update]):
    """All updates, one after the other."""

    def __init__(self, batches: Batches) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Update]:
        cursor = Cursor()
        while True:
            update = self.batches.at(cursor)
            cursor = update.next
            yield update


def source(
    batches: Batches, how: str, ahead: int, device: torch.device
) -> tuple[Iterator[Update], Callable[[], object]]:
    """Updates without end, and what ends their thread or process."""
    if how == "process":
        loader: Any = iter(
            DataLoader(
                Stream(batches),
                batch_size=None,
                num_workers=1,
                prefetch_factor=ahead,
                pin_memory=device.type == "cuda",
                multiprocessing_context="fork",
            )
        )
        return loader, loader._shutdown_workers
    threaded = Loader(batches, ahead if how == "thread" else 0, device)

    def updates() -> Iterator[Update]:
        cursor = Cursor()
        while True:
            update = threaded.next(cursor)
            cursor = update.next
            yield update

    return updates(), threaded.close


def processor_seconds() -> float:
    """Of this process and its children that have ended: those of a process are known only after it has ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


if __name__ == "__main__":
    main()
