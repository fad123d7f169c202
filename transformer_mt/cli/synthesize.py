"""`tmt synthesize`: text that models write, and a model that learns from it. The same command goes on."""

from __future__ import annotations

from typing import Annotated

import typer

from transformer_mt.cli.options import ConfigOption, JsonOption, SetOption, print_json
from transformer_mt.cli.train import DeviceChoice


def synthesize(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="back, forward, diversify or distill.")],
    config: ConfigOption,
    set_: SetOption = None,
    device: DeviceChoice = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the steps with their time and disk space; only prepare the data.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Train teachers, translate text with them, and train a model on real and synthetic pairs."""
    from transformer_mt import synthesize as work
    from transformer_mt.runtime.distributed import is_main_process

    overrides = [*(set_ or ()), *([f"runtime.device={device}"] if device else [])]
    report = work(config, method, overrides=overrides, dry_run=dry_run)
    if is_main_process():
        if json:
            print_json(report.to_json())
        else:
            print(report.table)
