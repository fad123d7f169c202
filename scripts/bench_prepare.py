"""Measures the time, memory and disk of preparing text of growing size (Linux: memory is read from /proc).

    python scripts/bench_prepare.py [--pairs 1000000 4000000 16000000] [--tokenizer pieces|words] [--model]

A new process prepares each size from two parallel files of Korean and English: phrasebook sentences, a million
different ones, which are repeated with a number. Writing these files is not measured; --folder keeps them.

`main` is the measured process, `worker` its largest worker, `all` the largest sum of all at one moment (memory that
they share is counted for each). `cpu` is the processor time of all processes. Tokenizers learn from a limited sample.

Exits with 1 if from the last but one size to the last one the processor time grows by more than 1.1 times the data, or
the memory of `main` or `all` by more than 10 %.

--model computes from the two largest sizes what more pairs take: the processor time of the main process, and that of
the workers divided by the number of cores. It assumes that the disk is fast enough.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

TOKENIZERS: dict[str, Any] = {
    "pieces": {"kind": "sentencepiece", "vocab_size": 2_000, "training_sentences": 50_000},
    "words": {
        "source": {"kind": "soynlp", "training_sentences": 50_000},
        "target": {"kind": "whitespace", "training_sentences": 50_000},
    },
}
DIFFERENT = 1_000_000  # sentences of the phrasebook
PAUSE = 0.1  # seconds between two measurements
MIB = 1024  # KiB, in which /proc counts
TIME_LIMIT, MEMORY_LIMIT = 1.1, 1.1
LARGE, CORES = (100_000_000, 1_000_000_000), (16, 64)


@dataclass
class Peak:
    """Largest resident sizes, in KiB."""

    main: int = 0
    worker: int = 0
    together: int = 0

    def update(self, main: int) -> None:
        resident, workers = _resident(main), [_resident(child) for child in _children(main)]
        self.main = max(self.main, resident)
        self.worker = max([self.worker, *workers])
        self.together = max(self.together, resident + sum(workers))


@dataclass
class Row:
    """main_cpu, workers_cpu: seconds; scratch, prepared, corpus: bytes on disk; stages: seconds by name"""

    pairs: int
    seconds: float
    peak: Peak
    main_cpu: float
    workers_cpu: float
    scratch: int
    prepared: int
    corpus: int
    stages: dict[str, float] = field(default_factory=dict)


def main() -> int:
    options = _options()
    if options.prepare:
        return _prepare(json.loads(options.prepare))
    if not Path("/proc/self/status").exists():
        print("bench_prepare: needs /proc, which only Linux has", file=sys.stderr)
        return 2
    print(f"parallel files ko-en, {options.tokenizer}, {options.workers} workers")
    print(
        f"{'pairs':>11}  {'seconds':>8}  {'cpu':>8}  {'pairs/s':>8}  {'main MiB':>8}  {'worker MiB':>10}  "
        f"{'all MiB':>8}",
        flush=True,
    )
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for pairs in options.pairs:
            rows.append(_measure(pairs, options.tokenizer, options.workers, folder))
            _print_row(rows[-1])
    _print_stages(rows[-1])
    if options.model and len(rows) > 1:
        _print_model(*rows[-2:])
    return _check_growth(rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000, 4_000_000, 16_000_000])
    parser.add_argument("--tokenizer", choices=TOKENIZERS, default="pieces")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--model", action="store_true")
    parser.add_argument("--folder", help="where the files are written and kept; default: a temporary folder")
    parser.add_argument("--prepare", help=argparse.SUPPRESS)  # the config, in the measured process
    return parser.parse_args()


def _sentences(split: str, pairs: int) -> Iterator[tuple[str, str]]:
    from transformer_mt.phrasebook import generate

    some = list(generate("ko", "en", split, min(pairs, DIFFERENT), 1))
    yield from some
    for number in range(1, -(-pairs // DIFFERENT)):
        for source, target in islice(some, pairs - number * DIFFERENT):
            yield f"{source} {number}", f"{target} {number}"


def _files(folder: Path, split: str, pairs: int) -> dict[str, str]:
    files = {side: folder / f"{split}-{pairs}.{code}" for side, code in (("source", "ko"), ("target", "en"))}
    if not all(file.exists() for file in files.values()):
        with files["source"].open("w") as source, files["target"].open("w") as target:
            for one, other in _sentences(split, pairs):
                source.write(f"{one}\n")
                target.write(f"{other}\n")
    return {side: str(file) for side, file in files.items()}


def _prepare(config: dict[str, Any]) -> int:
    from transformer_mt.config.schema import Config
    from transformer_mt.data.prepare import prepare

    stages, doing, since, scratch = dict[str, float](), "starting", time.perf_counter(), 0

    def progress(now: str, *_: object) -> None:
        nonlocal doing, since, scratch
        if now != doing:
            stages[doing] = stages.get(doing, 0.0) + time.perf_counter() - since
            doing, since = now, time.perf_counter()
            scratch = max(scratch, _size(Path(config["data"]["prepared"])))

    prepared = prepare(Config.model_validate(config), True, progress)
    stages[doing] = time.perf_counter() - since
    main, workers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    figures = {
        "main_cpu": main.ru_utime + main.ru_stime,
        "workers_cpu": workers.ru_utime + workers.ru_stime,
        "scratch": scratch,
        "prepared": _size(prepared.folder),
        "stages": stages,
    }
    print(json.dumps(figures))
    return 0


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _measure(pairs: int, tokenizer: str, workers: int, folder: Path) -> Row:
    files = {split: _files(folder, split, count) for split, count in (("validation", 500), ("test", 1_000))}
    files["train"] = _files(folder, "train", pairs)
    with tempfile.TemporaryDirectory(dir=folder) as prepared:
        config = {
            "name": "bench",
            "data": {
                "source": "ko",
                "target": "en",
                "corpus": {"kind": "text", **files},
                "prepared": prepared,
                "workers": workers,
            },
            "tokenizer": TOKENIZERS[tokenizer],
            "training": {"max_epochs": 1},
        }
        peak, started = Peak(), time.perf_counter()
        command = [sys.executable, __file__, "--prepare", json.dumps(config)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            while process.poll() is None:
                peak.update(process.pid)
                time.sleep(PAUSE)
            assert process.stdout is not None
            output = process.stdout.read()
        seconds = time.perf_counter() - started
        if process.returncode:
            sys.exit(f"preparing {pairs:,} pairs failed")
        corpus = sum(Path(file).stat().st_size for file in files["train"].values())
        return Row(pairs, seconds, peak, corpus=corpus, **json.loads(output.splitlines()[-1]))


def _children(process: int) -> list[int]:
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [int(child) for child in children]


def _resident(process: int) -> int:
    """The resident size of a process in KiB; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


def _print_row(row: Row) -> None:
    main, worker, together = (size / MIB for size in (row.peak.main, row.peak.worker, row.peak.together))
    print(
        f"{row.pairs:11,}  {row.seconds:8.1f}  {row.main_cpu + row.workers_cpu:8.1f}  {row.pairs / row.seconds:8,.0f}"
        f"  {main:8.0f}  {worker:10.0f}  {together:8.0f}",
        flush=True,
    )


def _print_stages(row: Row) -> None:
    print(f"\n{row.pairs:,} pairs, by stage:")
    for stage, seconds in row.stages.items():
        print(f"  {stage:24}  {seconds:8.1f} s  {seconds / row.pairs * 1e6:8.2f} µs/pair")
    for what, seconds in ("main process", row.main_cpu), ("workers together", row.workers_cpu):
        print(f"  {'cpu of the ' + what:24}  {seconds:8.1f} s  {seconds / row.pairs * 1e6:8.2f} µs/pair")
    for what, size in ("corpus", row.corpus), ("while preparing", row.scratch), ("prepared", row.prepared):
        print(f"  {'on disk, ' + what:24}  {size / 1e9:8.2f} GB {size / row.pairs:8.0f} bytes/pair")


def _print_model(before: Row, last: Row) -> None:
    """What a pair costs from one size to the next one: this leaves out the start, and learning the tokenizers."""
    pairs = last.pairs - before.pairs
    main, workers = (last.main_cpu - before.main_cpu) / pairs, (last.workers_cpu - before.workers_cpu) / pairs
    print(f"\na pair costs {main * 1e6:.2f} µs of the main process and {workers * 1e6:.2f} µs of a worker")
    for large in LARGE:
        hours = (f"{cores} cores: {(main + workers / cores) * large / 3600:.2f} h" for cores in CORES)
        scratch, prepared = (size / last.pairs * large / 1e9 for size in (last.scratch, last.prepared))
        disk = f"{scratch:,.0f} GB while preparing, {prepared:,.0f} GB prepared"
        print(f"  {large:13,} pairs: {', '.join(hours)}; {disk}")


def _check_growth(rows: Sequence[Row]) -> int:
    if len(rows) < 2:
        return 0
    before, last = rows[-2:]
    data = last.pairs / before.pairs
    cpu = (last.main_cpu + last.workers_cpu) / (before.main_cpu + before.workers_cpu) / data
    growth = {"main": last.peak.main / before.peak.main, "all": last.peak.together / before.peak.together}
    changes = ", ".join(f"{name} {ratio - 1:+.1%}" for name, ratio in growth.items())
    print(f"\nfrom {before.pairs:,} to {last.pairs:,} pairs: {data:.0f} times the data, {cpu:.2f} times the cpu a pair")
    print(f"peak memory: {changes}")
    return 1 if cpu > TIME_LIMIT or max(growth.values()) > MEMORY_LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
