"""Injects faults into small trainings, and counts what survives. `scripts/torture` starts it.

One process imports everything and forks a child for each command, so that a command does not start Python again. The
child counts its file-system operations: audit events of Python, and calls of fsync, of the exchange of two folders and
of safetensors, which raise none.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import sacrebleu  # noqa: F401
import torch._dynamo  # noqa: F401

import transformer_mt.training.checkpoint as checkpoint
from scripts.torture_ranks import LOST, RANKS, Fault, moments, redirect, train_together, verdict
from transformer_mt.cli import main as commands
from transformer_mt.decoding import model_directory
from transformer_mt.files import replace

WORDS = [
    *("one", "eins", "two", "zwei", "three", "drei", "four", "vier"),
    *("five", "fünf", "six", "sechs", "seven", "sieben"),
]
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
EVENTS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.link", "os.truncate", "shutil.copyfile"}
NOTES = "notes of the user"  # in model/, which a training replaces
TRAIN, LONGER = ["train", "--config", "run.yaml"], ["train", "--config", "run.yaml", "--set", "training.max_epochs=3"]
AVERAGE = ["average", "--run", "runs/torture", "--last", "2", "--force"]
RANK_FAULTS = 12
LOGS = Path(tempfile.mkdtemp())
PATIENCE = 120  # seconds for one command


@dataclass
class Row:
    """A line of the table. lost: what went wrong, one sentence each."""

    fault: str
    injected: int = 0
    lost: list[str] = field(default_factory=list)
    remark: str = ""

    def check(self, problem: str) -> None:
        """Count a fault. problem: empty if it was survived."""
        self.injected += 1
        if problem:
            self.lost.append(problem)
            print(f"  {self.fault}: {problem}", flush=True)


def new_folder(folder: Path) -> Path:
    """A folder with a config and a corpus of number words."""
    folder.mkdir(parents=True)
    generator, pairs = random.Random(5), list(zip(WORDS[::2], WORDS[1::2], strict=True))
    rows: set[str] = set()
    while len(rows) < 120:
        words = generator.choices(pairs, k=generator.randint(1, 8))
        rows.add("\t".join(" ".join(side) for side in zip(*words, strict=True)))
    (folder / "pairs.tsv").write_text("\n".join(sorted(rows)) + "\n", encoding="utf-8")
    corpus = {"kind": "tsv", "files": "pairs.tsv", "split": {"validation": 10, "test": 5}}
    config = {
        "name": "torture",
        "data": {"source": "en", "target": "de", "corpus": corpus, "workers": 1, "cleaning": {"language": "off"}},
        "tokenizer": {"kind": "whitespace", "min_frequency": 1},
        "model": {"d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1, "decoder_layers": 1},
        "training": {
            "batch_tokens": 256,
            "schedule": "constant",
            "learning_rate": 0.003,
            "warmup_steps": 0,
            "max_epochs": 2,
            "bleu_sentences": 0,
            "checkpoint_every": 2,
            "ema_decay": 0.9,
            "average": "last",
            "keep_best": 1,
            "average_checkpoints": 2,
        },
        "decoding": {"beam": 1, "max_length_offset": 2},
        "runtime": {"device": "cpu", "threads": 1},
    }
    (folder / "run.yaml").write_text(json.dumps(config), encoding="utf-8")
    return folder


@dataclass
class Result:
    """How a command ended. code: negative for a signal; None if it did not end in time."""

    code: int | None
    output: str
    operations: int = 0


def run_command(folder: Path, arguments: list[str], kill_at: int = 0, hook: Callable[[], None] | None = None) -> Result:
    """Run a `tmt` command in a forked process, which kills itself before file-system operation `kill_at`."""
    log, count = LOGS / "output", LOGS / "operations"  # not on the disk that may be full
    child = os.fork()
    if child == 0:
        redirect(log)
        code = 99
        try:
            os.chdir(folder)
            if hook is not None:
                hook()
            operations = count_operations(partial(_kill_at, kill_at))
            code = commands.main(arguments)
            count.write_text(str(operations()))
        except BaseException:
            import traceback

            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    last = time.monotonic() + PATIENCE
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > last:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return Result(None, "")
        time.sleep(0.002)
    counted = int(count.read_text()) if count.exists() else 0
    count.unlink(missing_ok=True)
    return Result(os.waitstatus_to_exitcode(status), log.read_text(encoding="utf-8", errors="replace"), counted)


def _kill_at(number: int, operation: int) -> None:
    if operation == number:
        os.kill(os.getpid(), signal.SIGKILL)


def count_operations(before: Callable[[int], None]) -> Callable[[], int]:
    """Count the operations of this process from now on, and call `before` with the number of each."""
    done = 0

    def operation() -> None:
        nonlocal done
        done += 1
        before(done)

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING
        if (writes and not str(arguments[0]).startswith("/dev/")) or event in EVENTS:
            operation()

    def counted(own: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            operation()
            result = own(*arguments, **options)
            operation()
            return result

        return call

    os.fsync = counted(os.fsync)
    replace._exchange = counted(replace._exchange)
    for module in (checkpoint, model_directory):
        module.save_weights = counted(module.save_weights)  # type: ignore[attr-defined]
    sys.addaudithook(audit)
    return lambda: done


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def state_of(folder: Path) -> dict[str, str]:
    """Checksums of what a run must keep: its model, its checkpoints, and the user's files in the model folder."""
    run = folder / "runs" / "torture"
    files = [run / "model" / "model.safetensors", run / "model" / NOTES, *run.glob("checkpoints/step-*/*.safetensors")]
    return {file.relative_to(run).as_posix(): digest(file) for file in files if file.exists()}


def leftovers(folder: Path) -> list[str]:
    found = [path for path in folder.rglob(".*") if path.suffix in (".new", ".old")]
    return [path.relative_to(folder).as_posix() for path in found]


def difference(found: dict[str, str], wanted: dict[str, str]) -> str:
    """What differs, in words; empty if nothing does."""
    words = [f"{name} is missing" for name in wanted if name not in found]
    words += [f"{name} is there, too" for name in found if name not in wanted]
    return "; ".join([*words, *(f"{name} differs" for name in wanted if found.get(name, wanted[name]) != wanted[name])])


def finishes(folder: Path, arguments: list[str], wanted: dict[str, str]) -> str:
    """Run a command without faults; what is wrong then, or an empty text."""
    result = run_command(folder, arguments)
    if result.code != 0:
        return f"the next {arguments[0]} ended with {result.code}: {result.output.strip()[-300:]}"
    left = leftovers(folder)
    return difference(state_of(folder), wanted) or (f"left behind: {', '.join(left)}" if left else "")


class Torture:
    """The faults. Each method fills a row of the table."""

    def __init__(self, place: Path, every: int, seed: int) -> None:
        self.place, self.every, self.random = place, every, random.Random(seed)
        self.number = 0
        self.fresh = new_folder(place / "fresh")
        self.trained = self.copy(self.fresh)
        self.operations = {"train": run_command(self.trained, TRAIN).operations}
        self.wanted = {"train": state_of(self.trained)}
        assert self.wanted["train"], (LOGS / "output").read_text()
        (self.trained / "runs" / "torture" / "model" / NOTES).write_text("mine", encoding="utf-8")
        for name, arguments in (("longer", LONGER), ("average", AVERAGE)):
            folder = self.copy(self.trained)
            result = run_command(folder, arguments)
            assert result.code == 0, result.output
            self.operations[name], self.wanted[name] = result.operations, state_of(folder)

    def copy(self, folder: Path) -> Path:
        self.number += 1
        return Path(shutil.copytree(folder, self.place / f"case-{self.number}"))

    def kills(self) -> Iterator[Row]:
        cases = [("train", self.fresh, TRAIN), ("longer", self.trained, LONGER), ("average", self.trained, AVERAGE)]
        labels = {
            "train": "kill: prepare and train",
            "longer": "kill: train a finished run on, with the user's notes in model/",
            "average": "kill: average",
        }
        for name, start, arguments in cases:
            row = Row(labels[name], remark=f"{self.operations[name]} operations")
            for operation in range(1, self.operations[name] + 1, self.every):
                folder = self.copy(start)
                killed = run_command(folder, arguments, kill_at=operation)
                problem = "" if killed.code == -signal.SIGKILL else f"ended with {killed.code} instead of being killed"
                problem = problem or finishes(folder, arguments, self.wanted[name])
                row.check(f"operation {operation}: {problem}" if problem else "")
                shutil.rmtree(folder)
            yield row

    def disks(self) -> Iterator[Row]:
        full, read_only = Row("full disk, then space again"), Row("read-only disk, then writable again")
        place = self.place / "disk"
        place.mkdir()
        try:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            full.remark = read_only.remark = f"skipped: mounting a small disk is not allowed here ({error})"
            yield from (full, read_only)
            return
        try:
            needed = self._used(place)
            for kibibytes in range(4 * ((needed // 30 + 3) // 4), needed, 4 * max(1, needed // 120)):
                full.check(self._on_disk(place, f"size={kibibytes}k", f"size={needed * 3}k", "the disk is full"))
            for state in ("empty", "trained"):
                start = self.fresh if state == "empty" else self.trained
                read_only.check(self._on_disk(place, "ro", "rw", "no permission", start))
        finally:
            subprocess.run(["umount", place], check=True)
        yield from (full, read_only)

    def _used(self, place: Path) -> int:
        """KiB that a training needs."""
        folder = Path(shutil.copytree(self.fresh, place / "run"))
        run_command(folder, TRAIN)
        used = shutil.disk_usage(place).used >> 10
        shutil.rmtree(folder)
        return used

    def _on_disk(self, place: Path, worse: str, better: str, expected: str, start: Path | None = None) -> str:
        def remount(option: str) -> None:
            subprocess.run(["mount", "-o", f"remount,{option}", place], check=True)

        remount("size=64m,rw")
        folder = Path(shutil.copytree(start or self.fresh, place / "run"))
        before = state_of(folder)
        arguments = TRAIN if start is not self.trained else LONGER
        name = "train" if start is not self.trained else "longer"
        try:
            remount(worse)
        except subprocess.CalledProcessError:  # the corpus alone is larger
            shutil.rmtree(folder)
            return ""
        result = run_command(folder, arguments)
        lost = [file for file in before if file not in state_of(folder)]
        remount(better)
        problem = ""
        if result.code != 0 and (result.code != 2 or expected not in result.output):
            problem = f"{worse}: ended with {result.code}: {result.output.strip()[-400:]}"
        if result.code == 0 and worse == "ro":
            problem = "it trained on a read-only disk"
        after = finishes(folder, arguments, self.wanted[name])
        shutil.rmtree(folder)
        return problem or (f"lost {lost}" if lost else "") or (f"{worse}: {after}" if after else "")

    def flips(self) -> Iterator[Row]:
        """A flipped bit in each file of a run: a message, or the same results; other results are a loss."""
        places = {
            "flipped bit: checkpoints": ("runs/torture/checkpoints", LONGER, "longer"),
            "flipped bit: other files of the run": ("runs/torture", LONGER, "longer"),
            "flipped bit: prepared data": ("data/prepared", LONGER, "longer"),
        }
        for label, (inside, arguments, name) in places.items():
            row, noticed = Row(label), 0
            for file in sorted((self.trained / inside).rglob("*")):
                path = file.relative_to(self.trained)
                skipped = file.suffix in (".png", ".lock") or file.name == NOTES or file.stat().st_size == 0
                if (
                    not file.is_file()
                    or skipped
                    or (label.endswith("run") and path.parts[2] in ("checkpoints", "model"))
                ):
                    continue
                folder = self.copy(self.trained)
                self._flip(folder / path)
                result = run_command(folder, arguments)
                changed = difference(state_of(folder), self.wanted[name])
                problem = "" if result.code in (0, 2) else f"{path}: ended with {result.code}: {result.output[-300:]}"
                if result.code == 0 and changed:
                    problem = f"{path}: {changed}"
                noticed += result.code == 2
                row.check(problem)
                shutil.rmtree(folder)
            row.remark = f"{noticed} ended with a message"
            yield row
        yield self._model_flips()

    def _flip(self, file: Path) -> None:
        content = bytearray(file.read_bytes())
        content[self.random.randrange(len(content))] ^= 1 << self.random.randrange(8)
        file.write_bytes(content)

    def _model_flips(self) -> Row:
        row, noticed = Row("flipped bit: model/"), 0
        command = ["translate", "--model", "runs/torture", "--device", "cpu", "one two three", "seven six"]
        right = run_command(self.trained, command).output
        files = [
            file for file in (self.trained / "runs/torture/model").rglob("*") if file.is_file() and file.name != NOTES
        ]
        for file in sorted(files) * 5:
            folder = self.copy(self.trained)
            self._flip(folder / file.relative_to(self.trained))
            result = run_command(folder, command)
            problem = "" if result.code in (0, 2) else f"ended with {result.code}: {result.output[-300:]}"
            if result.code == 0 and result.output != right:
                problem = "another translation, without a message"
            row.check(f"{file.name}: {problem}" if problem else "")
            noticed += result.code == 2
            shutil.rmtree(folder)
        row.remark = f"{noticed} ended with a message"
        return row

    def writers(self) -> Iterator[Row]:
        row = Row("two trainings of the same run at the same time")
        for _ in range(5):
            folder = self.copy(self.fresh)
            code = f"import os, sys; sys.argv = ['tmt', *{TRAIN!r}]; from transformer_mt.cli.main import run; run()"
            environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
            both = [
                subprocess.Popen(
                    [sys.executable, "-c", code], cwd=folder, stdout=-1, stderr=subprocess.STDOUT, env=environment
                )
                for _ in range(2)
            ]
            outputs = [one.communicate()[0].decode() for one in both]
            codes = sorted(one.returncode for one in both)
            refused = any("another process is training here" in output for output in outputs)
            problem = "" if codes == [0, 0] or (codes == [0, 2] and refused) else f"ended with {codes}: {outputs}"
            row.check(problem or difference(state_of(folder), self.wanted["train"]))
            shutil.rmtree(folder)
        yield row

    def clocks(self) -> Iterator[Row]:
        row = Row("clock that jumps by up to ten years, back and forth")
        for _ in range(5):
            own, generator = time.time, random.Random(self.random.random())

            def jump(own: Callable[[], float] = own, generator: random.Random = generator) -> None:
                time.time = lambda: own() + generator.uniform(-3e8, 3e8)

            folder = self.copy(self.fresh)
            result = run_command(folder, TRAIN, hook=jump)
            problem = "" if result.code == 0 else f"ended with {result.code}: {result.output[-300:]}"
            row.check(problem or difference(state_of(folder), self.wanted["train"]))
            shutil.rmtree(folder)
        yield row

    def ranks(self) -> Iterator[Row]:
        """One of two processes is killed, or stands still as if its machine had vanished."""
        start = self.copy(self.fresh)
        alone = train_together(start, TRAIN, LOGS, count_operations)
        assert alone is not None, "two processes do not end"
        assert all(one.code == 0 for one in alone), [one.output[-1000:] for one in alone]
        wanted, operations = state_of(start), alone[0].operations
        for label, kind, number in (
            ("one of two processes killed", signal.SIGKILL, RANK_FAULTS),
            ("one of two processes stands still", signal.SIGSTOP, RANK_FAULTS // 2),
        ):
            row, finished, told = Row(label), 0, 0
            for index, moment in enumerate(moments(operations, number, self.random.randrange(1 << 30))):
                fault = Fault(kind, index % RANKS, moment)
                folder = self.copy(self.fresh)
                ended = train_together(folder, TRAIN, LOGS, count_operations, fault)
                problem = verdict(fault, ended)
                told += ended is not None and any(LOST.search(one.output) for one in ended)
                finished += ended is not None and all(one.code == 0 for one in ended)
                again = train_together(folder, TRAIN, LOGS, count_operations)
                if again is None or any(one.code != 0 for one in again):
                    problem = problem or f"the next train: {again and [one.output[-300:] for one in again]}"
                left = ", ".join(leftovers(folder))
                problem = problem or difference(state_of(folder), wanted) or (f"left behind: {left}" if left else "")
                row.check(f"rank {fault.rank} before operation {moment}: {problem}" if problem else "")
                shutil.rmtree(folder)
            row.remark = f"{told} ended with the message of the other process"
            yield row


def main() -> int:
    faults = ("kills", "ranks", "disks", "flips", "writers", "clocks")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=5, help="kill after every n-th operation (5)")
    parser.add_argument("--seed", type=int, default=1, help="of the flipped bits and the clocks (1)")
    parser.add_argument("--only", nargs="+", choices=faults, default=faults, help="which faults")
    given = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as place, contextlib.suppress(KeyboardInterrupt):
        torture = Torture(Path(place), given.every, given.seed)
        for fault in given.only:
            for row in getattr(torture, fault)():
                rows.append(row)
                print(f"{row.fault}: {row.injected - len(row.lost)} of {row.injected}", flush=True)
    print("\n| fault | injected | survived | lost | |\n| --- | --- | --- | --- | --- |")
    for row in rows:
        print(f"| {row.fault} | {row.injected} | {row.injected - len(row.lost)} | {len(row.lost)} | {row.remark} |")
    shutil.rmtree(LOGS)
    return int(any(row.lost for row in rows))


if __name__ == "__main__":
    sys.exit(main())
