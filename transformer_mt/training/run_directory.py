"""The folder of a run: what stands in it, and whether a config may go on in it."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from transformer_mt.config.load import differences, dump_config, load_config
from transformer_mt.config.schema import Config
from transformer_mt.errors import TmtError
from transformer_mt.training.checkpoint import Checkpoints

CONFIG, FACTS, MODEL = "config.yaml", "run.json", "model"
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


class RunDirectory:
    """runs/NAME: config.yaml, run.json, checkpoints/, metrics.jsonl, train.log, plots/, model/."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoints = Checkpoints(folder / "checkpoints")

    @property
    def model(self) -> Path:
        return self.folder / MODEL

    def set_aside(self) -> Path | None:
        """Move a former run out of the way, keeping it; returns where it went."""
        if not self.folder.exists():
            return None
        number = 1
        while (place := self.folder.with_name(f"{self.folder.name}.{number}")).exists():
            number += 1
        return self.folder.rename(place)

    def open(self, config: Config, facts: dict[str, Any]) -> None:
        """Make the folder, or check that this config may go on in it.

        Raises TmtError with the keys that differ from the config the run was started with.
        """
        if (self.folder / CONFIG).exists():
            self._require_same(config)
        self.folder.mkdir(parents=True, exist_ok=True)
        _replace(self.folder / CONFIG, dump_config(config))
        history = _history(self.folder / FACTS)
        _replace(self.folder / FACTS, json.dumps([*history, facts], indent=1, ensure_ascii=False))

    def _require_same(self, config: Config) -> None:
        before = load_config(self.folder / CONFIG)
        changed = [line for line in differences(before, config) if not line.startswith(CHANGEABLE)]
        if changed:
            raise TmtError(
                "this folder holds a run of another config; it differs in (there | here)\n    "
                + "\n    ".join(changed),
                place=self.folder,
                remedy="Choose another --run-dir or name, go on with the old values, or start anew with --fresh"
                " (the old run is kept beside it).",
            )


def facts_of(files: list[dict[str, Any]]) -> dict[str, Any]:
    """What one needs to repeat a run: versions, git state, machine, command line, checksums of the corpus."""
    return {
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
        "command": sys.argv,
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


def _history(file: Path) -> list[Any]:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return values if isinstance(values, list) else []


def _replace(file: Path, text: str) -> None:
    """Write aside and rename, so that no reader and no kill sees half a file."""
    aside = file.with_name(f".{file.name}.new")
    aside.write_text(text, encoding="utf-8")
    aside.replace(file)
