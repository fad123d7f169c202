"""The runs under runs/, for shell completion: importing this file takes no time."""

from __future__ import annotations

from pathlib import Path

from transformer_mt.config.runs import FACTS, MODEL, RUNS, WEIGHTS


def run_folders(finished: bool = False) -> list[Path]:
    """Folders of runs, sorted by name. finished: only those with a model."""
    marker = f"*/{MODEL}/{WEIGHTS}" if finished else f"*/{FACTS}"
    return sorted(RUNS / file.relative_to(RUNS).parts[0] for file in RUNS.glob(marker))
