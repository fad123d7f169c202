"""Measures `tmt --help` and `tmt --version` against `python -c "import typer"`, the minimum of a program with typer.

    python scripts/bench_startup.py [--runs 20] [--limit 1.5]

The commands take turns, so that load on the machine affects all of them. Compares medians; exits with 1 if a ratio is
above --limit.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

BASE = "import typer"


def main() -> int:
    options = _options()
    commands = _commands()
    seconds = _measure(commands, options.runs)
    base = statistics.median(seconds[BASE])
    slow = 0
    print(f"median of {options.runs} runs each, taking turns")
    for name, times in seconds.items():
        median = statistics.median(times)
        slow += median / base > options.limit
        print(f"{name:15} {median * 1000:6.0f} ms  {median / base:5.2f} x  (fastest {min(times) * 1000:.0f} ms)")
    if slow:
        print(f"slower than {options.limit} times the import of typer", file=sys.stderr)
    return 1 if slow else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--limit", type=float, default=1.5)
    return parser.parse_args()


def _commands() -> dict[str, list[str]]:
    tmt = Path(sysconfig.get_path("scripts")) / "tmt"
    start = [str(tmt)] if tmt.exists() else [sys.executable, "-m", "transformer_mt.cli.main"]
    return {
        BASE: [sys.executable, "-c", BASE],
        "tmt --help": [*start, "--help"],
        "tmt --version": [*start, "--version"],
    }


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
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
