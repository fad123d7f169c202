"""The folder of a run: what stands in it, and whether a config may go on in it."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from transformer_mt.config.load import CONFIG, differences, dump_config, load_config
from transformer_mt.config.schema import Config
from transformer_mt.errors import TmtError, from_os_error
from transformer_mt.files.lock import HeldError, lock
from transformer_mt.files.replace import replace_text
from transformer_mt.training.checkpoint import Checkpoints

FACTS, MODEL, SHIPPED = "run.json", "model", ".steps"
PACKAGES = ("torch", "numpy", "sentencepiece", "spacy", "soynlp", "torchtext", "sacrebleu", "safetensors")
# What may change between the parts of one run: when it ends, what is kept and told, and where it computes.
CHANGEABLE = (
    "training.max_epochs",
    "training.max_steps",
    "training.max_minutes",
    "training.patience",
    "training.keep_last",
    "training.keep_best",
    "training.average",
    "training.average_checkpoints",
    "training.bleu_sentences",
    "training.checkpoint_every",
    "decoding.",
    "runtime.",
    "data.workers",
    "data.prepared",
)
# What validation's BLEU hangs on, and so which checkpoint is best: it must stay where BLEU is monitored.
JUDGING = (
    "training.bleu_sentences",
    "decoding.max_length_ratio",
    "decoding.max_length_offset",
    "decoding.min_length_ratio",
    "decoding.no_repeat_ngram",
)


class Shipped(NamedTuple):
    """What model/ holds: the mean of the checkpoints of these steps, and the command that made it so."""

    steps: list[int]
    by: str


class RunDirectory:
    """runs/NAME: config.yaml, run.json, checkpoints/, metrics.jsonl, train.log, plots/, model/."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoints = Checkpoints(folder / "checkpoints")
        self._held: ExitStack | None = None

    @property
    def model(self) -> Path:
        return self.folder / MODEL

    def shipped(self, steps: list[int]) -> Shipped | None:
        """What model/ holds, where it is the final model still: the mean of `steps`, or what `tmt average` made
        when the newest checkpoint was there. None where it is to be written."""
        try:
            shipped = Shipped(**json.loads((self.model / SHIPPED).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        was_chosen = shipped.by == "average" and shipped.steps[-1:] == self.checkpoints.steps()[-1:]
        return shipped if was_chosen or shipped.steps == steps else None

    def note_shipped(self, shipped: Shipped) -> None:
        replace_text(self.model / SHIPPED, json.dumps(shipped._asdict()))

    def ship_config(self, config: Config) -> None:
        """Let a final model have the config as it is now: how it searches may have changed since."""
        try:
            replace_text(self.model / CONFIG, dump_config(config))
        except OSError as error:
            raise from_os_error(error, "writing the model's config") from None

    def set_aside(self) -> Path | None:
        """Move a former run out of the way, keeping it; returns where it went.

        Raises TmtError where the folder holds something else, or this program stands in it: it would move along.
        """
        if not self.folder.exists():
            return None
        self._require_run()
        if Path.cwd().is_relative_to(self.folder.resolve()):
            raise TmtError(
                "you are in this folder, which --fresh would set aside",
                place=self.folder.resolve(),
                remedy="Go to another folder, and name this one by --run-dir.",
            )
        self._lock()
        number = 1
        while (place := self.folder.with_name(f"{self.folder.name}.{number}")).exists():
            number += 1
        try:
            return self.folder.rename(place)
        except OSError as error:
            raise from_os_error(error, "setting the former run aside") from None

    def open(self, config: Config, facts: dict[str, Any]) -> list[str]:
        """Make the folder, or check that this config may go on in it with this data.

        Returns the keys that were changed since, as `key: there | here`, all of them such as may change.
        Raises TmtError: with the keys that differ from the config the run was started with; where the corpus has
        changed since; where another process trains here; where the folder cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._require_run()
            self._lock()
            history, changed = _history(self.folder / FACTS), []
            if (self.folder / CONFIG).exists():
                changed = self._require_same(config)
                self._require_same_corpus(history, facts)
            replace_text(self.folder / FACTS, json.dumps([*history, facts], indent=1))  # first: by it a run is known
            replace_text(self.folder / CONFIG, dump_config(config))
            return changed
        except OSError as error:
            raise from_os_error(error, "opening the folder of the run") from None

    def _require_run(self) -> None:
        """Raises TmtError where the folder holds something, but no run."""
        if (self.folder / FACTS).exists():
            return
        foreign = [path.name for path in self.folder.iterdir() if not path.name.startswith(".")]
        if foreign:
            raise TmtError(
                f"this folder holds files ({', '.join(sorted(foreign)[:3])}) but no run",
                place=self.folder,
                remedy="Give a new or empty folder as --run-dir.",
            )

    def close(self) -> None:
        """Let others train here."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def _lock(self) -> None:
        """One process trains in a folder at a time."""
        self.close()
        try:
            self._held = lock(self.folder / ".lock")
        except HeldError:
            raise TmtError(
                "another process is training here",
                place=self.folder,
                remedy="Wait for it, or choose another --run-dir.",
            ) from None

    def _require_same_corpus(self, history: list[Any], facts: dict[str, Any]) -> None:
        before = _checksums(history[-1] if history else {})
        changed = [path for path, digest in _checksums(facts).items() if before and before.get(path) != digest]
        if changed and sorted(before.values()) != sorted(_checksums(facts).values()):
            raise TmtError(
                "the corpus has changed since this run was started: " + ", ".join(changed),
                place=self.folder,
                remedy="Put the old files back, or start anew with --fresh (the old run is kept beside it).",
            )

    def _require_same(self, config: Config) -> list[str]:
        changed = differences(load_config(self.folder / CONFIG), config)
        judging = JUDGING if config.training.monitor == "bleu" else ()
        refused = [line for line in changed if line.startswith(judging) or not line.startswith(CHANGEABLE)]
        if refused:
            raise TmtError(
                "this folder holds a run of another config; it differs in (there | here)\n    "
                + "\n    ".join(refused),
                place=self.folder,
                remedy="Choose another --run-dir or name, go on with the old values, or start anew with --fresh"
                " (the old run is kept beside it).",
            )
        return changed


def facts_of(files: list[dict[str, Any]], processes: int = 1) -> dict[str, Any]:
    """What one needs to repeat a run beside its config: versions, git state, machine, command line, number of
    processes, checksums of the corpus."""
    return {
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
        "command": sys.argv,
        "processes": processes,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in ("transformer_mt", *PACKAGES)},
        "git": _git_state(),
        "corpus": files,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _git_state() -> str:
    """Commit of the code, with `+changes` where files differ from it; `none` outside a repository."""
    here = Path(__file__).parent
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty=+changes"], cwd=here, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return "none"
    return described.stdout.strip() or "none"


def _checksums(facts: dict[str, Any]) -> dict[str, str]:
    return {file["path"]: file["sha256"] for file in facts.get("corpus", [])}


def _history(file: Path) -> list[Any]:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return values if isinstance(values, list) else []
