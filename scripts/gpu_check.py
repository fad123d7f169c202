"""Checks and measures this project on a GPU: one command for the first ten minutes.

    python scripts/gpu_check.py [--minutes 10] [--parts train decode] [--json FILE]

Needs Linux, a CUDA GPU, torch (2.11 or later) and numpy; nothing else has to be installed, and nothing is downloaded.
The model, its training and its searches are those of this repository, on random sentences and with random weights.
`gpu_cases.py` lists the measurements: each runs in a process of its own, so that a failure or a full memory ends only
that one. The time is shared among the parts. Prints tables on stdout; --json keeps everything, and is written again
after each measurement. --list names all of them, and --cases selects. Exit codes: 0; 1 if a measurement failed or
a check found a difference; 2 without a GPU; 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import stand_ins  # noqa: E402
import torch  # noqa: E402
import torch._dynamo  # noqa: E402  (once, instead of in each process)

with stand_ins.installed():
    from gpu_cases import CASES, PARTS, Case
    from gpu_kernels import PEAK, uses_gpu
    from gpu_run import Row, Run

NO_GPU, DIFFERENT, INTERRUPTED = 2, 1, 130
LEAST_SECONDS = 5.0  # a case is not started with less
PATIENCE = 60.0  # seconds that a case may take, also if it takes more than half of what is left: one may hang


def main() -> None:
    options = parse()
    cases = [one for one in CASES if one.part in options.parts and is_chosen(one.name, options.cases)]
    if options.dry_run:  # big is as small as base then
        cases = [one for one in cases if not one.name.startswith("big,")]
    if options.list:
        print_table([{"part": one.part, "case": one.name} for one in cases])
        return
    run = Run("cpu", toy=True) if options.dry_run else Run("cuda", processes=find_gpu())
    warnings.filterwarnings("ignore", ".*fork.*", DeprecationWarning)  # no thread of this process holds a lock
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the measuring process too
    report = Report(options.json)
    try:
        for part in (part for part in PARTS if part in options.parts):
            later = [PARTS[other].weight for other in list(PARTS)[list(PARTS).index(part) :] if other in options.parts]
            seconds = (options.minutes * 60 - report.seconds) * PARTS[part].weight / sum(later)
            run = run_part(part, [one for one in cases if one.part == part], run, seconds, report)
    except KeyboardInterrupt:
        report.end("interrupted; what was measured is above", INTERRUPTED)
    failed = [f"{one['part']}: {one['case']}" for one in report.measured if "problem" in one or differs(one["rows"])]
    if failed:
        report.end("failed: " + "; ".join(failed), DIFFERENT)
    print(f"\ndone in {report.seconds:.0f} s{', as a dry run: no figure above means anything' if run.toy else ''}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="time for everything, shared among the parts")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="default: all, in this order")
    parser.add_argument(
        "--cases", nargs="+", default=[""], metavar="TEXT", help="only the one of this name, else all with it in theirs"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to this file")
    parser.add_argument("--list", action="store_true", help="list the measurements and end")
    parser.add_argument(
        "--dry-run", action="store_true", help="run everything at toy sizes on the CPU, to check this script"
    )
    options = parser.parse_args()
    for text in options.cases:
        if not any(is_chosen(one.name, [text]) for one in CASES):
            parser.error(f"no measurement has '{text}' in its name; --list names all")
    return options


def is_chosen(name: str, texts: list[str]) -> bool:
    """Whether a measurement is asked for: by its whole name, or by a part of it that is no whole name."""
    names = {one.name for one in CASES}
    return any(name == text if text in names else text in name for text in texts)


def find_gpu() -> str:
    """How processes that use the GPU can be started: fork, or spawn. Ends with exit code 2 without a GPU."""
    if sys.platform != "linux":
        problem, remedy = "this script needs Linux", "Run it there, or in WSL."
    elif torch.version.cuda is None:
        problem = f"this PyTorch ({torch.__version__}) was built without CUDA"
        remedy = "Install PyTorch for CUDA (pytorch.org/get-started), on a machine with an NVIDIA GPU."
    else:
        for start in ("fork", "spawn"):  # after a fork, CUDA fails if this process has used it
            if in_child(Case("machine", "GPUs", uses_gpu), Run("cuda", processes=start), 60).get("rows"):
                return start
        problem, remedy = "PyTorch finds no GPU that it can use", "See what  nvidia-smi  says."
    print(f"gpu_check: {problem}\n  {remedy}\n  --dry-run checks the script itself on the CPU.", file=sys.stderr)
    raise SystemExit(NO_GPU)


class Report:
    """What was measured, and since when."""

    def __init__(self, file: Path | None) -> None:
        self.file, self.started, self.measured = file, time.monotonic(), list[dict[str, Any]]()
        self.head = {"command": sys.argv, "date": time.strftime("%Y-%m-%d %H:%M"), "commit": commit()}

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def add(self, case: Case, result: dict[str, Any]) -> None:
        self.measured.append({"part": case.part, "case": case.name, **result})
        if self.file is not None:
            aside = self.file.with_name(f"{self.file.name}.part")
            aside.write_text(json.dumps({**self.head, "measured": self.measured}, indent=1), encoding="utf-8")
            aside.replace(self.file)

    def end(self, message: str, exit_code: int) -> None:
        print(f"\n{message}", flush=True)
        raise SystemExit(exit_code)


def commit() -> str:
    with suppress(OSError):
        asked = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True)
        return asked.stdout.strip()
    return ""


def run_part(part: str, cases: list[Case], run: Run, seconds: float, report: Report) -> Run:
    """Measure the cases of a part, and print their rows as one table. Returns `run`, with what later parts use."""
    end, results = time.monotonic() + seconds, []
    for number, case in enumerate(cases):
        left = end - time.monotonic()
        limit = left if number == len(cases) - 1 else min(left, max(left / 2, PATIENCE))
        if limit < LEAST_SECONDS:
            result: dict[str, Any] = {"problem": "not run: no time was left; use --minutes or --cases"}
        else:
            print(f"{part}: {case.name} ...", file=sys.stderr, flush=True)
            started = time.monotonic()
            result = in_child(case, run, limit)
            result["seconds"] = round(time.monotonic() - started, 1)
        report.add(case, result)
        results.append((case, result))
        peaks = [row["value"] for row in result.get("rows", ()) if row.get("what") == PEAK]
        run = replace(run, peak=peaks[0] * 1e12) if peaks else run
    print(f"\n{part}: {PARTS[part].title}")
    print_table([row for _, result in results for row in result.get("rows", ())])
    for case, result in results:
        if "problem" in result:
            print(f"  {case.name}: {result['problem'].splitlines()[-1]}")
    sys.stdout.flush()
    return run


def in_child(case: Case, run: Run, limit: float) -> dict[str, Any]:
    """What is measured in a new process: its rows, or a problem. The process is killed after `limit` seconds."""
    context: Any = multiprocessing.get_context(run.processes)
    reading, writing = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(case, run, writing))
    sys.stdout.flush()
    process.start()
    writing.close()
    try:
        if not reading.poll(limit):
            return {"problem": f"stopped after {limit:.0f} s; --minutes gives it more"}
        result: dict[str, Any] = reading.recv()
        return result
    except EOFError:
        process.join()
        return {"problem": f"the process died with exit code {process.exitcode}"}
    finally:
        process.kill()
        with suppress(ProcessLookupError):  # what it has started
            os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()


def child(case: Case, run: Run, answer: Connection) -> None:
    """Measure, with a process group of its own, and stdout for tables only."""
    os.setpgid(0, 0)
    os.dup2(2, 1)
    try:
        answer.send({"rows": case.measure(run)})
    except Exception as error:
        answer.send({"problem": f"{traceback.format_exc()}{type(error).__name__}: {first_line(error)}"})


def first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), "")


def differs(rows: list[Row]) -> bool:
    return any(row.get("ok") is False for row in rows)


def print_table(rows: list[Row]) -> None:
    """The rows in columns; numbers to the right."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    texts = [[shown(row.get(name)) for name in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *texts, strict=True)]
    numbers = [any(isinstance(row.get(name), (int, float)) for row in rows) for name in columns]
    for line in [columns, *texts] if rows else []:
        cells = zip(line, widths, numbers, strict=True)
        print(
            "  " + "  ".join(text.rjust(width) if right else text.ljust(width) for text, width, right in cells).rstrip()
        )


def shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    main()
