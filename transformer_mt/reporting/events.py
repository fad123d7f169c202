"""What a run tells: the bar and lines on stderr, train.log, metrics.jsonl, and TensorBoard where it is wanted.

metrics.jsonl has one JSON object a line, each with `event`, `time` (seconds since 1970) and, once training
runs, `step`. Files are appended to, never rewritten; after `resumed` at a step, earlier records of later
steps are superseded.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from transformer_mt.errors import TmtError

METRICS, LOG = "metrics.jsonl", "train.log"
PLAIN_SECONDS = 30.0  # between progress lines where there is no terminal


class Events:
    """Everything a person or a program learns of a run. A silent one (other ranks) writes nothing."""

    def __init__(self, folder: Path, silent: bool = False, tensorboard: bool = False) -> None:
        self.folder, self.silent = folder, silent
        self._bar: tqdm[Any] | None = None
        self._told = 0.0
        self._writer = _tensorboard(folder / "tensorboard") if tensorboard and not silent else None

    def record(self, event: str, **values: Any) -> None:
        """Append one record to metrics.jsonl; numbers with a step go to TensorBoard too."""
        if self.silent:
            return
        values = {key: _plain(value) for key, value in values.items()}
        with (self.folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, "time": round(time.time(), 2), **values}, ensure_ascii=False) + "\n")
        if self._writer is not None and "step" in values:
            for key, value in values.items():
                if isinstance(value, (int, float)) and key not in ("step", "epoch"):
                    self._writer.add_scalar(f"{event}/{key}", value, values["step"])

    def say(self, text: str) -> None:
        """A line for the person at the terminal, and for the log."""
        if self.silent:
            return
        if self._bar is not None:
            self._bar.clear()
        print(text, file=sys.stderr, flush=True)
        with (self.folder / LOG).open("a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {text}\n")

    def start_epoch(self, epoch: int, updates: int, done: int) -> None:
        """A new bar: so many updates, so many of them done before."""
        self.end_epoch()
        if not self.silent and sys.stderr.isatty():
            self._bar = tqdm(total=updates, initial=done, desc=f"epoch {epoch}", unit=" steps", leave=False)

    def advance(self, **figures: str) -> None:
        """One update done; figures such as loss and tokens/s. Without a terminal a plain line now and then."""
        if self.silent:
            return
        if self._bar is not None:
            self._bar.set_postfix(figures, refresh=False)
            self._bar.update()
        elif time.monotonic() - self._told > PLAIN_SECONDS and not sys.stderr.isatty():
            if self._told:
                self.say("  ".join(f"{key} {value}" for key, value in figures.items()))
            self._told = time.monotonic()

    def end_epoch(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def close(self) -> None:
        self.end_epoch()
        if self._writer is not None:
            self._writer.close()


def _plain(value: Any) -> Any:
    """JSON has no infinity and no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _tensorboard(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise TmtError(
            "TensorBoard is not installed",
            place="runtime.tensorboard",
            remedy="pip install 'transformer_mt[tensorboard]'   (or set runtime.tensorboard: false)",
        ) from None
    return SummaryWriter(str(folder))


COLUMNS = (
    ("epoch", 5),
    ("step", 7),
    ("train loss", 10),
    ("valid loss", 10),
    ("perplexity", 10),
    ("valid BLEU", 10),
    ("time", 7),
)


def table_head() -> str:
    return "  ".join(name.rjust(width) for name, width in COLUMNS)


def table_row(values: Mapping[str, Any]) -> str:
    """A line of the table of epochs; `best` marks the best one so far."""
    cells = [
        str(values["epoch"]),
        f"{values['step']:,}",
        _number(values["train_loss"], "{:.3f}"),
        _number(values["loss"], "{:.3f}"),
        _number(values["perplexity"], "{:.2f}"),
        _number(values["bleu"], "{:.2f}"),
        duration(values["seconds"]),
    ]
    row = "  ".join(cell.rjust(width) for cell, (_, width) in zip(cells, COLUMNS, strict=True))
    return row + ("  *" if values["best"] else "")


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def duration(seconds: float) -> str:
    """Seconds as h:mm:ss or m:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
