"""Measures the time and peak memory of preparing phrasebook text of growing size (Linux: memory is read from /proc).

    python scripts/bench_prepare.py [--pairs 100000 1000000 4000000] [--tokenizer pieces|words] [--limit 1.2]

A new process prepares each size: phrasebook Korean to English, generated while it is read. `main` is that process,
`worker` its largest worker, `all` the largest sum of all at one moment (shared memory is counted for each of them).
Tokenizers learn from a limited sample (`training_sentences`). Exits with 1 if the peak of the largest size is above
--limit times the peak of the size before it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOKENIZERS: dict[str, Any] = {
    "pieces": {"kind": "sentencepiece", "vocab_size": 2_000, "training_sentences": 50_000},
    "words": {
        "source": {"kind": "soynlp", "training_sentences": 50_000},
        "target": {"kind": "whitespace", "training_sentences": 50_000},
    },
}
PAUSE = 0.1  # seconds between two measurements
MIB = 1024  # KiB, in which /proc counts


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
    pairs: int
    seconds: float
    peak: Peak


def main() -> int:
    options = _options()
    if options.prepare:
        return _prepare(json.loads(options.prepare))
    if not Path("/proc/self/status").exists():
        print("bench_prepare: needs /proc, which only Linux has", file=sys.stderr)
        return 2
    print(f"phrasebook ko-en, {options.tokenizer}, {options.workers} workers")
    print(
        f"{'pairs':>10}  {'seconds':>8}  {'pairs/s':>8}  {'main MiB':>8}  {'worker MiB':>10}  {'all MiB':>8}",
        flush=True,
    )
    rows = []
    for pairs in options.pairs:
        rows.append(_measure(pairs, options.tokenizer, options.workers))
        _print_row(rows[-1])
    return _check_growth(rows, options.limit)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[100_000, 1_000_000, 4_000_000])
    parser.add_argument("--tokenizer", choices=TOKENIZERS, default="pieces")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=float, default=1.2)
    parser.add_argument("--prepare", help=argparse.SUPPRESS)  # the config, in the measured process
    return parser.parse_args()


def _prepare(config: dict[str, Any]) -> int:
    from transformer_mt.config.schema import Config
    from transformer_mt.data.prepare import prepare

    wanted = config["data"]["corpus"]["train"]
    prepared = prepare(Config.model_validate(config))
    read = prepared.manifest.report["pairs"]["train"]["read"]
    assert read == wanted, f"{read} pairs read of {wanted}"
    return 0


def _measure(pairs: int, tokenizer: str, workers: int) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        config = {
            "name": "bench",
            "data": {
                "source": "ko",
                "target": "en",
                "corpus": {"kind": "phrasebook", "train": pairs},
                "prepared": folder,
                "workers": workers,
            },
            "tokenizer": TOKENIZERS[tokenizer],
            "training": {"max_epochs": 1},
        }
        peak, started = Peak(), time.perf_counter()
        with subprocess.Popen([sys.executable, __file__, "--prepare", json.dumps(config)]) as process:
            while process.poll() is None:
                peak.update(process.pid)
                time.sleep(PAUSE)
        if process.returncode:
            sys.exit(f"preparing {pairs:,} pairs failed")
        return Row(pairs, time.perf_counter() - started, peak)


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
    speed = row.pairs / row.seconds
    print(
        f"{row.pairs:10,}  {row.seconds:8.1f}  {speed:8,.0f}  {main:8.0f}  {worker:10.0f}  {together:8.0f}", flush=True
    )


def _check_growth(rows: Sequence[Row], limit: float) -> int:
    if len(rows) < 2:
        return 0
    before, last = rows[-2:]
    growth = {"main": last.peak.main / before.peak.main, "all": last.peak.together / before.peak.together}
    changes = ", ".join(f"{name} {ratio - 1:+.1%}" for name, ratio in growth.items())
    print(f"peak memory from {before.pairs:,} to {last.pairs:,} pairs: {changes} (limit {limit - 1:+.0%})")
    return 1 if max(growth.values()) > limit else 0


if __name__ == "__main__":
    sys.exit(main())
