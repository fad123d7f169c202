"""Trains for a long time in processes that are killed at random moments. `scripts/soak` starts it.

A worker trains the tiny model of torture.py from the corpus to the end, compares it with the expected one, deletes it
and starts again. The parent kills workers; the next one continues where the last one was. The last worker lives for
half of the time: its memory and open files must not grow.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import transformer_mt as tmt
from scripts.torture import difference, leftovers, new_folder, state_of
from scripts.torture_ranks import redirect

WARM_UP = 10  # trainings after which a worker has loaded and cached everything
GROWTH = 0.03  # of the memory between the first and the last third of a worker's trainings; caches still fill
LONGEST = 30  # seconds until a kill
JOURNAL, OUTPUT = "journal.jsonl", "output.txt"  # what workers have done; what the current training prints
TRASH = "trash"


@dataclass
class Training:
    """A finished training. memory: resident bytes of its process afterwards; files: open ones."""

    worker: int
    problem: str
    left: list[str]
    memory: int
    files: int


def work(folder: Path, wanted: dict[str, str]) -> None:
    """Train, compare, delete, until the process is killed."""
    os.chdir(folder)
    while True:
        redirect(Path(OUTPUT))
        tmt.train("run.yaml")
        problem, left = difference(state_of(folder), wanted), leftovers(folder)
        start_again(folder)
        done = Training(os.getpid(), problem, left, memory(), len([*Path("/proc/self/fd").iterdir()]))
        with Path(JOURNAL).open("a", encoding="utf-8") as journal:
            journal.write(json.dumps(asdict(done)) + "\n")


def start_again(folder: Path) -> None:
    """Delete the run and the prepared data. They are moved first, because a worker may be killed at any moment."""
    shutil.rmtree(folder / TRASH, ignore_errors=True)
    (folder / TRASH).mkdir()
    for name in ("runs", "data"):
        (folder / name).rename(folder / TRASH / name)
    shutil.rmtree(folder / TRASH)


def memory() -> int:
    """Resident bytes of this process, after glibc has given back what it keeps of freed memory."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def worker(folder: Path, wanted: dict[str, str]) -> int:
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            try:
                work(folder, wanted)
            except BaseException:
                traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    return child


def ended(child: int, seconds: float) -> bool:
    """Whether a worker ends by itself within this time, which it never should."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def soak(folder: Path, minutes: float, seed: int, wanted: dict[str, str]) -> tuple[int, list[str]]:
    """Returns the number of kills, and the problems of workers that ended by themselves."""
    generator, start = random.Random(seed), time.monotonic()
    kills, problems = 0, []
    while (passed := time.monotonic() - start) < 60 * minutes:
        last = passed > 30 * minutes
        left = (60 if last else 30) * minutes - passed
        seconds = left if last else generator.uniform(0.2, max(0.2, min(LONGEST, left)))
        if ended(worker(folder, wanted), seconds):
            problems.append((folder / OUTPUT).read_text(encoding="utf-8", errors="replace")[-2000:])
            break
        kills += 1
    return kills, problems


def report(journal: list[Training], kills: int, problems: list[str]) -> int:
    problems += [f"another result: {one.problem}" for one in journal if one.problem]
    problems += [f"left behind: {one.left}" for one in journal if one.left]
    print(f"{len(journal):,} trainings in {kills} processes, each killed; {len(problems)} problems")
    trained = [one for one in journal if one.worker == journal[-1].worker][WARM_UP:] if journal else []
    third = len(trained) // 3
    if third:
        first, last = (statistics.median(one.memory for one in part) for part in (trained[:third], trained[-third:]))
        fewest, most = min(one.files for one in trained), max(one.files for one in trained)
        print(f"the last process: {len(trained) + WARM_UP:,} trainings")
        print(f"memory {first / 1e6:.1f} MB, later {last / 1e6:.1f} MB; open files {fewest} to {most}")
        if last > first * (1 + GROWTH):
            problems.append("the memory grows")
        if most > fewest:
            problems.append("the number of open files grows")
    for problem in problems:
        print(problem)
    return int(bool(problems))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long (10)")
    parser.add_argument("--seed", type=int, default=1, help="of the kills (1)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        reference, folder = new_folder(Path(place, "reference")), new_folder(Path(place, "soak"))
        os.chdir(reference)
        tmt.train("run.yaml")
        kills, problems = soak(folder, given.minutes, given.seed, state_of(reference))
        file = folder / JOURNAL
        journal = [Training(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []
        os.chdir("/")
        return report(journal, kills, problems)


if __name__ == "__main__":
    sys.exit(main())
