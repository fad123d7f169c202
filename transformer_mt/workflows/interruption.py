"""The error after a Ctrl-C that did not wait for a checkpoint."""

from __future__ import annotations

from pathlib import Path

from transformer_mt.errors import InterruptionError
from transformer_mt.training.run_directory import RunDirectory


def interrupted_error(folder: Path | None) -> InterruptionError:
    """What an interrupted training can go on from. folder: of the run; None: it had not begun"""
    saved = RunDirectory(folder).checkpoints.steps() if folder is not None else []
    if saved:
        again, last = "Run the same command again to continue there.", saved[-1]
        return InterruptionError(f"interrupted; the last checkpoint is of step {last:,}", remedy=again)
    begin = "The same command starts from the beginning."
    return InterruptionError("interrupted; there is no checkpoint yet", remedy=begin)
