"""Compares three ways to find repeated keys that do not fit into memory: numpy on partitions, DuckDB and Polars.

    pip install duckdb polars pyarrow
    python scripts/bench_duplicates.py [--keys 4000000 16000000]

Random 64-bit keys are in a file; one in ten repeats one of the first million. Each way writes the places of all but
the first of equal keys to the disk, on one core, in a new process. `prepare` uses the first way (data/partitions.py).
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 20  # keys
LIMIT = "256MB"  # of DuckDB; it needs more than that for the result


def write_keys(file: Path, count: int) -> None:
    random = np.random.default_rng(1)
    first = random.integers(0, 2**64, size=BLOCK, dtype=np.uint64)
    with file.open("wb") as opened:
        for start in range(0, count, BLOCK):
            new = random.integers(0, 2**64, size=BLOCK, dtype=np.uint64) if start else first
            repeats = random.random(BLOCK) < (0.1 if start else 0.0)
            opened.write(np.where(repeats, first, new)[: count - start].tobytes())


def _blocks(file: Path) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
    """Keys and their places."""
    start = 0
    with file.open("rb") as opened:
        while len(keys := np.fromfile(opened, "<u8", BLOCK)):
            yield keys, np.arange(start, start + len(keys), dtype=np.uint64)
            start += len(keys)


def with_numpy(file: Path, folder: Path) -> int:
    from transformer_mt.data.partitions import Partitions, partitions_for, repeated

    found, count = 0, partitions_for(file.stat().st_size // 8)
    with Partitions(folder, "keys", count) as parts:
        for keys, places in _blocks(file):
            parts.add(keys, places)
    with (folder / "found").open("wb") as output:
        for number in range(count):
            places = repeated(parts.read(number))
            output.write(places.tobytes())
            found += len(places)
    return found


def with_duckdb(file: Path, folder: Path) -> int:
    import duckdb
    import pyarrow

    base: Any = duckdb.connect(str(folder / "keys.db"))
    base.execute(f"SET memory_limit='{LIMIT}'; SET threads=1; SET temp_directory='{folder / 'spilled'}'")
    base.execute("SET preserve_insertion_order=false; CREATE TABLE pairs(key UBIGINT, place UBIGINT)")
    for keys, places in _blocks(file):
        block = pyarrow.table({"key": keys, "place": places})  # noqa: F841 (DuckDB finds it by its name)
        base.execute("INSERT INTO pairs SELECT * FROM block")
    first = "SELECT key, min(place) AS first FROM pairs GROUP BY key HAVING count(*) > 1"
    rest = f"SELECT place FROM pairs JOIN ({first}) known ON pairs.key = known.key WHERE place > first"
    base.execute(f"COPY ({rest}) TO '{folder / 'found.parquet'}'")
    return int(base.execute(f"SELECT count(*) FROM '{folder / 'found.parquet'}'").fetchone()[0])


def with_polars(file: Path, folder: Path) -> int:
    os.environ["POLARS_MAX_THREADS"] = "1"
    import polars

    for number, (keys, places) in enumerate(_blocks(file)):
        polars.DataFrame({"key": keys, "place": places}).write_parquet(folder / f"keys-{number:04}.parquet")
    pairs, place = polars.scan_parquet(folder / "keys-*.parquet"), polars.col("place")
    first = pairs.group_by("key").agg(place.min().alias("first"), polars.len().alias("n")).filter(polars.col("n") > 1)
    rest = pairs.join(first, on="key").filter(place > polars.col("first")).select("place")
    rest.sink_parquet(folder / "found.parquet")
    return int(polars.scan_parquet(folder / "found.parquet").select(polars.len()).collect().item())


WAYS: dict[str, Callable[[Path, Path], int]] = {"numpy": with_numpy, "duckdb": with_duckdb, "polars": with_polars}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, nargs="+", default=[4_000_000, 16_000_000])
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)  # in the measured process
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            found = WAYS[options.way](options.file, Path(folder))
            seconds, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
        cpu, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
        print(f"{options.way:7} {found:10,} repeated  {seconds:6.1f} s  {cpu:6.1f} s cpu  {memory:6,.0f} MiB")
        return
    for count in options.keys:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "keys"
            write_keys(file, count)
            print(f"{count:,} keys", flush=True)
            for way in WAYS:
                subprocess.run([sys.executable, __file__, "--way", way, "--file", str(file)], check=True)


if __name__ == "__main__":
    main()
