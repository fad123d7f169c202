"""Attacks with damaged files, as tests/fuzz does, for as long as wanted. `scripts/fuzz` starts it.

Each target is attacked in rounds. A round is a child process, so that a crash or a hang is noticed, too: the file of
the current attack is on disk before it is used.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from tests.fuzz.strategies import Case  # noqa: E402
from tests.fuzz.targets import TARGETS, Target, made, survive  # noqa: E402

ROUND = 1_000  # attacks in a child process
PATIENCE = 300  # seconds for a round without a new attack
FAILURES = Path("fuzz-failures")
LAST, FILES, COUNT = "last", "files", "count"


def attack(target: Target, place: Path, number: int, kept: Path) -> None:
    """A round of attacks. Each kind of failure is kept once: its shortest file."""
    folder = made(target, place / FILES)
    done = 0
    shortest: dict[str, int] = {}

    @seed(number)
    @settings(
        max_examples=ROUND,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=target.cases(folder))
    def one(case: Case) -> None:
        nonlocal done
        done += 1
        write(place / LAST, case)
        (place / COUNT).write_text(str(done))
        try:
            survive(target, folder, case)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}"
            if len(case[1]) < shortest.get(kind, len(case[1]) + 1):
                shortest[kind] = len(case[1])
                keep(target, case, kept, kind, "".join(traceback.format_exception(error)))

    one()


def warm_up(target: Target) -> None:
    """Import what an attack needs, and make hypothesis' tables of characters, so that all children have them."""
    with tempfile.TemporaryDirectory() as name:
        folder = made(target, Path(name) / FILES)
        target.use(folder)

        @settings(max_examples=1, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        @given(case=target.cases(folder), text=st.text())
        def one(case: Case, text: str) -> None:
            pass

        one()


def write(folder: Path, case: Case) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    file = folder / case[0]
    file.parent.mkdir(parents=True)
    file.write_bytes(case[1])


def keep(target: Target, case: Case, kept: Path, kind: str, trace: str) -> None:
    """Write a failure to disk, and print how to make a test of it."""
    name = hashlib.sha256(kind.encode()).hexdigest()[:8]
    folder = kept / target.name / name
    is_new = not folder.exists()
    write(folder, case)
    (kept / target.name / f"{name}.txt").write_text(f"{kind}\n\n{trace}", encoding="utf-8", errors="backslashreplace")
    if is_new:
        print(f"{target.name}: {kind}: {folder}", flush=True)
        print(
            f"  a test of it:  mkdir -p tests/fuzz/found/{target.name} && mv {folder} tests/fuzz/found/{target.name}/"
        )


def round_of(target: Target, number: int, kept: Path) -> int:
    """Attack in a child process. Returns the number of attacks."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                attack(target, place, number, kept)
                code = 0
            except BaseException:
                traceback.print_exc()
            os._exit(code)
        code = wait(child, place)
        count = int((place / COUNT).read_text() or 0) if (place / COUNT).exists() else 0
        if code != 0 and (place / LAST).exists():
            file = next(one for one in (place / LAST).rglob("*") if one.is_file())
            case = file.relative_to(place / LAST).as_posix(), file.read_bytes()
            kind = "an error of the fuzzer" if code == 1 else "no end" if code is None else f"ended by signal {-code}"
            keep(target, case, kept, kind, "")
        return count


def wait(child: int, place: Path) -> int | None:
    """The exit code of a child; negative for a signal, None if it made no attack for PATIENCE seconds."""
    last, seen = time.monotonic(), ""
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        now = (place / COUNT).read_text() if (place / COUNT).exists() else ""
        if now != seen:
            last, seen = time.monotonic(), now
        if time.monotonic() - last > PATIENCE:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.05)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long (10)")
    parser.add_argument("--each", type=int, help="stop when each target has had so many attacks")
    parser.add_argument("--seed", type=int, default=1, help="other seeds, other files (1)")
    parser.add_argument("--only", nargs="+", choices=[target.name for target in TARGETS], help="some targets")
    given_ = parser.parse_args()
    targets = [target for target in TARGETS if given_.only is None or target.name in given_.only]
    torch.set_num_threads(1)  # threads do not survive a fork
    for target in targets:
        warm_up(target)
    end, number, counts = time.monotonic() + 60 * given_.minutes, 0, Counter[str]()
    spent: Counter[str] = Counter()
    while time.monotonic() < end:
        if given_.each is not None:
            targets = [target for target in targets if counts[target.name] < given_.each]
        if not targets:
            break
        target = min(targets, key=lambda one: spent[one.name])  # the same time for all
        started = time.monotonic()
        counts[target.name] += round_of(target, given_.seed * 1_000_003 + number, FAILURES)
        spent[target.name] += time.monotonic() - started  # type: ignore[assignment]
        number += 1
    found = len([one for one in FAILURES.glob("*/*") if one.is_dir()])
    print(f"{counts.total():,} attacks: {', '.join(f'{name} {count:,}' for name, count in sorted(counts.items()))}")
    print(f"{found} kinds of failures in {FAILURES}" if found else "no failures")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
