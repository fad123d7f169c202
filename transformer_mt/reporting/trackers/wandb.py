"""Weights & Biases. Its environment variables decide the rest, such as WANDB_PROJECT and WANDB_MODE=offline."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer_mt.errors import TmtError
from transformer_mt.reporting.trackers.base import Tracker

PROJECT = "transformer_mt"  # without WANDB_PROJECT


class Wandb(Tracker):
    name = "wandb"

    @classmethod
    def require(cls) -> None:
        try:
            import wandb  # noqa: F401
        except ImportError:
            raise TmtError(
                "Weights & Biases is not installed",
                place="training.tracker",
                remedy="pip install wandb   (or set training.tracker: null)",
            ) from None

    def start(self, folder: Path, title: str, known: str, config: Mapping[str, Any]) -> str:
        import wandb

        identity = known or uuid.uuid4().hex[:12]
        # console off: it would copy the screen. A prompt for a key would wait for ever.
        quiet = wandb.Settings(console="off", silent=True, login_timeout=1, init_timeout=30)
        project = None if "WANDB_PROJECT" in os.environ else PROJECT
        place = None if "WANDB_DIR" in os.environ else str(folder)
        self._run = wandb.init(
            project=project, dir=place, id=identity, name=title, resume="allow", config=dict(config), settings=quiet
        )
        self._run.define_metric("*", step_metric="step")  # a resumed run goes back some steps
        return identity

    def log(self, figures: Mapping[str, float], step: int | None) -> None:
        if step is None:
            self._run.summary.update(dict(figures))
        else:
            self._run.log({**figures, "step": step})

    def finish(self) -> None:
        self._run.finish()
