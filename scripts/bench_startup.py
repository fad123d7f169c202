"""Measures how long commands take that do almost nothing, against the import that they cannot do without.

    python scripts/bench_startup.py [--runs 20] [--limit 1.5] [--model MODEL]

`tmt --help` and `tmt --version` against `python -c "import typer"`; with --model, `tmt translate` of one word against
`python -c "import torch"`. The commands take turns, so that load on the machine affects all of them. Compares medians;
exits with 1 if the ratio of one of the first two is above --limit.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

TYPER, TORCH = "import typer", "import torch"


def main() -> int:
    options = _options()
    start = _start()
    print(f"median of {options.runs} runs each, taking turns")
    ratios = _compared(TYPER, {f"tmt {one}": [*start, one] for one in ("--help", "--version")}, options.runs)
    if options.model:
        _compared(TORCH, {"tmt translate": [*start, "translate", "--model", options.model, "hello"]}, options.runs)
    if max(ratios) > options.limit:
        print(f"slower than {options.limit} times the import of typer", file=sys.stderr)
        return 1
    return 0


def _compared(base: str, commands: dict[str, list[str]], runs: int) -> list[float]:
    """Prints the times of the commands. Returns how many times longer than the import `base` each takes."""
    seconds = _measure({base: [sys.executable, "-c", base], **commands}, runs)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    for name, median in medians.items():
        ratio, fastest = median / medians[base], min(seconds[name])
        print(f"{name:15} {median * 1000:6.0f} ms  {ratio:5.2f} x  (fastest {fastest * 1000:.0f} ms)")
    return [medians[name] / medians[base] for name in commands]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--limit", type=float, default=1.5)
    parser.add_argument("--model", help="a run or model folder: `tmt translate` is measured too")
    return parser.parse_args()


def _start() -> list[str]:
    tmt = Path(sysconfig.get_path("scripts")) / "tmt"
    return [str(tmt)] if tmt.exists() else [sys.executable, "-m", "transformer_mt.cli.main"]


def _measure(commands: dict[str, list[str]], runs: int) -> dict[str, list[float]]:
    for command in commands.values():
        _time(command)  # the first run writes byte code
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            seconds[name].append(_time(command))
    return seconds


def _time(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
