"""What a run shows: progress bar and lines on stderr, train.log, metrics.jsonl, plots, and TensorBoard on request.

metrics.jsonl has one JSON object per line, with `event`, `time` (seconds since 1970) and, once training runs, `step`.
The program only appends to these files. After `resumed` at a step, earlier records of later steps are no longer valid.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer_mt.config.runs import LOG, METRICS
from transformer_mt.config.schema import Config
from transformer_mt.errors import TmtError, from_os_error, visible
from transformer_mt.reporting.bars import PLAIN_SECONDS, bar, is_watched
from transformer_mt.reporting.curves import PLOTS, draw_curves
from transformer_mt.reporting.table import sample_line, table_head, table_row
from transformer_mt.reporting.terminal import columns_of, painted, wrapped
from transformer_mt.reporting.tracking import Tracking, is_figure

PLOT_SECONDS = 20.0  # between drawings of the curves
HEAD_EVERY = 10  # rows of the table
BAR, NARROW_BAR = "{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}{postfix}", "{desc} {percentage:3.0f}%{postfix}"
BAR_COLUMNS = 78  # a terminal needs that many for BAR
Printer = Callable[[str], None]


class Events:
    """Everything that a run shows to a person or a program. A silent object (for ranks other than 0) writes nothing."""

    def __init__(
        self,
        folder: Path,
        silent: bool = False,
        tensorboard: bool = False,
        epochs: int | None = None,
        prints: bool = True,
        tracking: Tracking | None = None,
    ) -> None:
        """epochs: how many there will be, if that is known. prints: also on stderr; False: only files."""
        self._tracking = tracking
        self.folder, self.silent, self.epochs, self.prints = folder, silent, epochs, prints
        self._bar: Any = None  # of tqdm, while an epoch goes on and somebody watches
        self._epoch, self._rows = 0, 0
        self._shown = self._drawn = time.monotonic()
        self._figures = ""
        self._tensorboard: Any = _tensorboard() if tensorboard and not silent else None
        self._writer: Any = None

    @classmethod
    def of(cls, config: Config, folder: Path, silent: bool = False, prints: bool = True) -> Events:
        """As a config says. Raises TmtError if a package that it needs is not installed."""
        tracking = None if silent else Tracking.of(config, folder)
        return cls(folder, silent, config.runtime.tensorboard, config.training.max_epochs, prints, tracking)

    def record(self, event: str, **values: Any) -> None:
        """Append a record to metrics.jsonl; numbers with a step also go to TensorBoard."""
        if self.silent:
            return
        for key, value in values.items():
            if isinstance(value, float) and not math.isfinite(value):
                values[key] = None  # JSON has no infinity and no NaN
        record = {"event": event, "time": round(time.time(), 2), **values}
        self._append(METRICS, json.dumps(record, ensure_ascii=False))
        if self._tensorboard is not None and "step" in values:
            self._draw_live(event, values)
        if self._tracking is not None:
            self._tracking.record(event, values)
            self._say_problem(self._tracking.problem())

    def _draw_live(self, event: str, values: Mapping[str, Any]) -> None:
        """Send numbers to TensorBoard. If a run was resumed at this step, TensorBoard drops those of later steps."""
        if self._writer is None:
            past = values["step"] + 1 if event == "resumed" else None
            self._writer = self._tensorboard(str(self.folder / "tensorboard"), purge_step=past)
        for key, value in values.items():
            if is_figure(key, value):
                self._writer.add_scalar(f"{event}/{key}", value, values["step"])

    def say(self, text: str, style: str = "", log: str = "", write: Printer | None = None) -> None:
        """Print a line on stderr, broken into several if the terminal is narrow, and append it to train.log.

        style: its colour, if the terminal has colours. log: what train.log gets, if that differs. write: prints it
        elsewhere.
        """
        if self.silent:
            return
        text, log = visible(text), visible(log)  # they may have sentences of a corpus
        if self._bar is not None:
            self._bar.clear()
        if self.prints and write is not None:
            write(text)
        elif self.prints:
            shown = wrapped(text, columns_of(sys.stderr)) if sys.stderr.isatty() else text
            print(painted(shown, style, sys.stderr), file=sys.stderr, flush=True)
        self._append(LOG, f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {log or text}")

    def _say_problem(self, problem: str) -> None:
        if problem:
            self.say(f"note       {problem}")

    def _append(self, name: str, line: str) -> None:
        """Append a line; end a line that a killed run left incomplete. Raises TmtError if the disk refuses."""
        try:
            with (self.folder / name).open("ab+") as file:
                if file.tell():
                    file.seek(-1, 2)
                    if file.read(1) != b"\n":
                        file.write(b"\n")
                file.write(line.encode("utf-8", errors="replace") + b"\n")
        except OSError as error:
            error.filename = error.filename or str(self.folder / name)
            raise from_os_error(error, f"writing {name}") from None

    def start_epoch(self, epoch: int, updates: int, done: int) -> None:
        """Show a new progress bar. updates: those of the epoch; done: how many of them are already done."""
        self.end_epoch()
        self._epoch = epoch
        name = f"epoch {epoch}/{self.epochs}" if self.epochs else f"epoch {epoch}"
        if self._bar is not None:
            self._bar.reset(updates)
            self._bar.update(done)
            self._bar.set_description(name)
        elif not self.silent and is_watched():
            figures = self._figures or None
            form = BAR if columns_of(sys.stderr) >= BAR_COLUMNS else NARROW_BAR
            self._bar = bar(desc=name, total=updates, initial=done, postfix=figures, bar_format=form)

    def advance(self, step: int, figures: str) -> None:
        """Show one more update, and new figures such as loss and tokens/s if there are any."""
        if self.silent:
            return
        self._figures = figures or self._figures
        if self._bar is not None:
            self._bar.set_postfix_str(self._figures, refresh=False)
            self._bar.update()
        elif figures and time.monotonic() - self._shown > PLAIN_SECONDS and not is_watched():
            self.say(f"epoch {self._epoch}  step {step:,}  {figures}")
            self._shown = time.monotonic()

    def end_epoch(self) -> None:
        """Remove the progress bar; in a notebook, the next epoch takes it, or the page would keep one of each."""
        if self._bar is not None and not hasattr(self._bar, "container"):
            self._remove_bar()

    def _remove_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def validated(self, values: Mapping[str, Any], samples: Sequence[tuple[str, str, str]]) -> None:
        """Show a row of the table and samples of (source, translation, reference); sometimes draw the curves."""
        if self.silent:
            return
        keys = ("source", "translation", "reference")
        self.record("validation", **values, samples=[dict(zip(keys, sample, strict=True)) for sample in samples])
        columns = columns_of(sys.stderr)
        room = columns - 1 if sys.stderr.isatty() else None
        if self._rows % HEAD_EVERY == 0:
            self.say(table_head(columns), "bold", log=table_head())
        self._rows += 1
        self.say(table_row(values, columns), "green" if values["best"] else "", log=table_row(values))
        if of_each := values.get("bleu_by_direction"):
            self.say(f"       BLEU {', '.join(f'{name} {bleu:.2f}' for name, bleu in of_each.items())}")
        for sample in samples:
            self.say(sample_line(*sample, room), log=sample_line(*sample))
        if self.prints and time.monotonic() - self._drawn > PLOT_SECONDS:
            self.draw(apart=False)
        self._shown = time.monotonic()

    def draw(self, apart: bool = True) -> Path | None:
        """Draw the curves of the whole run; return their folder. None, with a note, if that is not possible.

        A picture can be drawn again, so it ends no training. apart: see `draw_curves`.
        """
        folder = self.folder / PLOTS
        self._drawn = time.monotonic()
        try:
            draw_curves(self.folder / METRICS, folder, apart=apart)
            return folder
        except TmtError as error:
            self._say_problem(f"the curves are not drawn: {error.place}: {error.message}")
            return None

    def close(self) -> None:
        """Remove the progress bar, and end the files of TensorBoard and the run of a tracker."""
        self._remove_bar()
        if self._tracking is not None:
            self._say_problem(self._tracking.close())
        if self._writer is not None:
            self._writer.close()


def _tensorboard() -> Any:
    """The class that writes files for TensorBoard. Raises TmtError if TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise TmtError(
            "TensorBoard is not installed",
            place="runtime.tensorboard",
            remedy="pip install tensorboard   (or set runtime.tensorboard: false)",
        ) from None
    return SummaryWriter
