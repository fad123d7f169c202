"""`tmt train`: from a config to a model. The same command resumes an interrupted run, and works under torchrun."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from transformer_mt.cli.completion import devices, runs
from transformer_mt.cli.options import ConfigOption, SetOption

_RUN_DIR = "Folder of the run. Default: runs/NAME."
_FRESH = "Start again from step 0; the previous run is renamed and kept."
_DEVICE = "auto, cpu, cuda or mps. Default: the config's runtime.device."
DeviceChoice = Annotated[str | None, typer.Option("--device", metavar="NAME", help=_DEVICE, autocompletion=devices)]


def train(
    config: ConfigOption,
    set_: SetOption = None,
    run_dir: Annotated[Path | None, typer.Option(metavar="DIR", help=_RUN_DIR, autocompletion=runs)] = None,
    device: DeviceChoice = None,
    fresh: Annotated[bool, typer.Option("--fresh", help=_FRESH)] = False,
) -> None:
    """Train a model, or resume its training; print the test scores."""
    from transformer_mt.workflows.train import run_training

    overrides = [*(set_ or ()), *([f"runtime.device={device}"] if device else [])]
    run_training(config, run_dir, overrides, fresh, _show)


def _show(score: str) -> None:
    with suppress(BrokenPipeError):  # the reader may have gone; the scores are also stored with the model
        print(score, flush=True)
