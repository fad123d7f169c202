"""The runs under runs/, for shell completion: importing this file takes no time."""

from __future__ import annotations

from pathlib import Path

from transformer_mt.decoding.finding import RUNS


def run_folders(finished: bool = False) -> list[Path]:
    """Folders of runs, sorted by name. finished: only those with a model."""
    marker = "*/model/model.safetensors" if finished else "*/run.json"
    return sorted(RUNS / file.relative_to(RUNS).parts[0] for file in RUNS.glob(marker))
