"""The folder of a run: what is in it, and whether a config may continue the run."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from transformer_mt.config.load import CONFIG, differences, dump_config, load_config
from transformer_mt.config.schema import Config
from transformer_mt.errors import TmtError, from_os_error
from transformer_mt.files.lock import HeldError, lock
from transformer_mt.files.replace import recover_all, replace_text
from transformer_mt.training.checkpoint import Checkpoints

FACTS, MODEL, SHIPPED = "run.json", "model", ".steps"
PACKAGES = ("torch", "numpy", "sentencepiece", "spacy", "soynlp", "torchtext", "sacrebleu", "safetensors")
# What may change when a run continues: when it ends, what it keeps and shows, and where it computes.
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
# These change BLEU in validation, and so which checkpoint is best: they must not change if BLEU is monitored.
JUDGING = (
    "training.bleu_sentences",
    "decoding.max_length_ratio",
    "decoding.max_length_offset",
    "decoding.min_length_ratio",
    "decoding.no_repeat_ngram",
)


class Shipped(NamedTuple):
    """What model/ holds: the mean of the checkpoints of these steps, and the command that made it."""

    steps: list[int]
    by: str


class RunDirectory:
    """runs/NAME: config.yaml, run.json, checkpoints/, metrics.jsonl, train.log, plots/, model/."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.model = folder, folder / MODEL
        self.checkpoints = Checkpoints(folder / "checkpoints")
        recover_all(folder)
        recover_all(self.checkpoints.folder)
        self._held = ExitStack()  # holds the lock, if it was taken

    def shipped(self, steps: list[int]) -> Shipped | None:
        """What model/ holds, if that is still the final model; None if the model must be written.

        It is still final as the mean of `steps`, or if `tmt average` made it with the newest checkpoint in it.
        """
        try:
            noted = json.loads((self.model / SHIPPED).read_text(encoding="utf-8"))
            shipped = Shipped([int(step) for step in noted["steps"]], str(noted["by"]))
        except (OSError, ValueError, TypeError, KeyError):  # there is no such note, or it is damaged
            return None
        was_chosen = shipped.by == "average" and shipped.steps[-1:] == self.checkpoints.steps()[-1:]
        return shipped if was_chosen or shipped.steps == steps else None

    def note_shipped(self, shipped: Shipped) -> None:
        """Write beside the model what it is made of, for `shipped`."""
        replace_text(self.model / SHIPPED, json.dumps(shipped._asdict()))

    def ship_config(self, config: Config) -> None:
        """Write the present config to the final model: its decoding section may have changed."""
        try:
            replace_text(self.model / CONFIG, dump_config(config))
        except OSError as error:
            raise from_os_error(error, "writing the model's config") from None

    def set_aside(self) -> Path | None:
        """Rename the folder of an earlier run, and return its new path; None if there is no such run.

        Raises TmtError if the folder holds something else, or is the current folder, which would move too.
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
        """Make the folder, or check that this config may continue the run in it with this data.

        Returns the keys that have changed, as `key: there | here`; all of them may change.
        Raises TmtError: with the keys that differ from the run's config and may not; if the corpus has changed; if
        another process trains here; if the folder cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._require_run()
            self._lock()
            history: list[Any] = []  # the facts of all starts of this run, oldest first
            with suppress(OSError, ValueError):  # there is no file yet, or it cannot be read
                noted = json.loads((self.folder / FACTS).read_text(encoding="utf-8"))
                history = [one for one in noted if isinstance(one, dict)] if isinstance(noted, list) else []
            changed: list[str] = []
            if (self.folder / CONFIG).exists():
                changed = self._require_same(config)
                self._require_same_corpus(history, facts)
            replace_text(self.folder / FACTS, json.dumps([*history, facts], indent=1))  # first: this file marks a run
            replace_text(self.folder / CONFIG, dump_config(config))
            return changed
        except OSError as error:
            raise from_os_error(error, "opening the folder of the run") from None

    def close(self) -> None:
        """Release the lock, so that other processes may train here."""
        self._held.close()

    def _require_run(self) -> None:
        """Raises TmtError if the folder holds files but no run."""
        if (self.folder / FACTS).exists():
            return
        foreign = [path.name for path in self.folder.iterdir() if not path.name.startswith(".")]
        if foreign:
            raise TmtError(
                f"this folder holds files ({', '.join(sorted(foreign)[:3])}) but no run",
                place=self.folder,
                remedy="Give a new or empty folder as --run-dir.",
            )

    def _lock(self) -> None:
        """Take the lock of the folder. Raises TmtError if another process has it."""
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
        """Raises TmtError if the content of the corpus differs from the last start; its files may have moved."""
        before, now = _checksums(history[-1] if history else {}), _checksums(facts)
        changed = [path for path, digest in now.items() if before and before.get(path) != digest]
        if changed and sorted(before.values()) != sorted(now.values()):
            raise TmtError(
                "the corpus has changed since this run was started: " + ", ".join(changed),
                place=self.folder,
                remedy="Put the old files back, or start anew with --fresh (the old run is kept beside it).",
            )

    def _require_same(self, config: Config) -> list[str]:
        """The keys that differ from the run's config. Raises TmtError if one of them may not change."""
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


def _checksums(facts: dict[str, Any]) -> dict[str, str]:
    """The checksum of each file of the corpus, by path; none if the facts of a start are damaged."""
    try:
        return {str(file["path"]): str(file["sha256"]) for file in facts["corpus"]}
    except (TypeError, KeyError):
        return {}


def facts_of(files: list[dict[str, Any]], processes: int = 1) -> dict[str, Any]:
    """What is needed to repeat a run, besides its config: versions, git state, machine, command, corpus checksums.

    files: of the corpus, each with its `path` and `sha256`. processes: how many train together.
    """
    packages = dict.fromkeys(("transformer_mt", *PACKAGES), "not installed")
    for name in packages:
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    return {
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
        "command": sys.argv,
        "processes": processes,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "packages": packages,
        "git": _git_state(),
        "corpus": files,
    }


def _git_state() -> str:
    """The commit of the code, with `+changes` if files differ from it; `none` outside a repository."""
    here = Path(__file__).parent
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty=+changes"], cwd=here, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return "none"
    return described.stdout.strip() or "none"
