"""Measures how an epoch of a large corpus begins: time to its first batch, memory, and padding.

    python scripts/bench_epoch.py [--pairs 1000000 5000000 20000000] [--batch-tokens 4096] [--packing] [--whole]

Writes a store of random sentences for each size, of `synthetic.py`'s lengths (20 million pairs take 4.5 GB in
--folder; they are removed at the end), and opens it in a new process for each measurement. `first` is the time from
the opened store to the first batch of an epoch, `processor` the processor time of this; `memory` is the growth of the
largest resident size up to that batch, and `own` what of it is not a part of mapped files. `padding` is that of one
window, and of the whole epoch with --whole. `resumed` is the time to the batch in the middle of the epoch, in another
new process.

Each size is measured twice: in windows, and planned as a whole epoch, as versions before windows did.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from synthetic import LONGEST, MEDIAN, SPREAD

MIB = 1024  # KiB, in which /proc counts
CHUNK = 1 << 20  # pairs that are written at once


def main() -> None:
    options = parse()
    if options.measure:
        print(json.dumps(measure(json.loads(options.measure))))
        return
    print(
        f"{'pairs':>11}  {'plan':<7}  {'first s':>8}  {'processor s':>11}  {'memory MiB':>10}  {'own MiB':>8}"
        f"  {'resumed s':>9}  {'padding':>8}"
    )
    for pairs in options.pairs:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            write_store(Path(name), pairs)
            for plan in options.plans:
                settings = {
                    "folder": name,
                    "tokens": options.batch_tokens,
                    "packing": options.packing,
                    "window": 1 << 60 if plan == "whole" else None,
                    "all": options.whole,
                }
                row, resumed = (in_new_process({**settings, "resumed": resumed}) for resumed in (False, True))
                print(
                    f"{pairs:11,}  {plan:<7}  {row['first']:8.2f}  {row['processor']:11.2f}  {row['memory']:10.0f}"
                    f"  {row['own']:8.0f}  {resumed['first']:9.2f}  {row['padding']:8.2%}",
                    flush=True,
                )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000, 5_000_000, 20_000_000])
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--packing", action="store_true", help="streams instead of padded batches")
    parser.add_argument("--plans", nargs="+", choices=["windows", "whole"], default=["windows", "whole"])
    parser.add_argument("--whole", action="store_true", help="padding of all windows; takes a minute at 20 million")
    parser.add_argument("--folder", type=Path, help="for the stores; default: the system's for temporary files")
    parser.add_argument("--measure", help=argparse.SUPPRESS)  # settings, in the measured process
    return parser.parse_args()


def write_store(folder: Path, pairs: int) -> None:
    """A store of random sentences. It is written in chunks, and then is in the page cache, like one just prepared."""
    random = np.random.default_rng(1)
    ends = {"source": 0, "target": 0}
    for side in ends:
        (folder / f"{side}.offsets").write_bytes(bytes(8))
    for start in range(0, pairs, CHUNK):
        number = min(CHUNK, pairs - start)
        drawn = MEDIAN * np.exp(random.normal(0, SPREAD, number))
        longer = np.exp(random.normal(0, 0.15, number))
        for side, values in (("source", drawn), ("target", drawn * longer)):
            offsets = ends[side] + np.clip(values.round(), 2, LONGEST).astype(np.int64).cumsum()
            ids = random.integers(4, 32_000, int(offsets[-1]) - ends[side], dtype=np.int32)
            ends[side] = int(offsets[-1])
            for part, array, kind in (("offsets", offsets, "<i8"), ("ids", ids, "<i4")):
                with (folder / f"{side}.{part}").open("ab") as file:
                    file.write(array.astype(kind).tobytes())


def in_new_process(settings: dict[str, Any]) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", json.dumps(settings)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("bench_epoch: the measured process failed")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(settings: dict[str, Any]) -> dict[str, float]:
    """The first batch of epoch 2, or one in the middle, by a process that has planned nothing before."""
    from transformer_mt.data.batching import Batches
    from transformer_mt.data.planning import BatchSize, Cursor
    from transformer_mt.data.store import Store

    window = {} if settings["window"] is None else {"window": settings["window"]}
    store = Store(Path(settings["folder"]))
    before, started, processor = status(), time.perf_counter(), time.process_time()
    batches = Batches(store, BatchSize(tokens=settings["tokens"]), 1, packing=settings["packing"], **window)
    middle = Cursor(2, batches.windows // 2, 1) if batches.windows > 1 else Cursor(2, 0, len(store) // 1000)
    batches.at(middle if settings["resumed"] else Cursor(2))
    seconds, processor, after = time.perf_counter() - started, time.process_time() - processor, status()
    windows = range(batches.windows) if settings["all"] else [0]
    return {
        "first": seconds,
        "processor": processor,
        "memory": after["VmHWM"] - before["VmHWM"],
        "own": after["RssAnon"] - before["RssAnon"],
        "padding": float(np.mean([batches.padding(2, window) for window in windows])),
    }


def status() -> dict[str, float]:
    """Sizes of this process in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return {line.split(":")[0]: int(line.split()[1]) / MIB for line in lines if line.endswith(" kB")}


if __name__ == "__main__":
    main()
