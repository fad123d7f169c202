"""`tmt tune`: search for better hyper-parameters within some minutes. The same command resumes it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transformer_mt.cli.completion import config_files, runs
from transformer_mt.cli.options import ConfigOption, JsonOption, SetOption, print_json
from transformer_mt.reporting.program import program_name, quoted

_SPACE = "YAML file with the keys to search and their values."
_MINUTES = "Time for the search, over all starts."
_TRIALS = "End after N trials. Default: when the time is over."
_RUN_DIR = "Folder of the search. Default: runs/NAME-tune."


def tune(
    config: ConfigOption,
    space: Annotated[Path, typer.Option(metavar="FILE", help=_SPACE, autocompletion=config_files)],
    minutes: Annotated[float, typer.Option(metavar="M", help=_MINUTES)],
    trials: Annotated[int | None, typer.Option(min=1, metavar="N", help=_TRIALS)] = None,
    set_: SetOption = None,
    run_dir: Annotated[Path | None, typer.Option(metavar="DIR", help=_RUN_DIR, autocompletion=runs)] = None,
    json: JsonOption = False,
) -> None:
    """Search for better values of the config's keys; write the best config."""
    from transformer_mt import tune as work

    report = work(config, space, minutes, trials=trials, overrides=set_ or (), run_dir=run_dir)
    if json:
        print_json(report.to_json())
        return
    print("\n".join(report.lines))
    if report.best is not None:
        print(f"\n{report.best}: the config of the best trial")
        print(f"{report.picture}: all trials")
        print(f"next: {program_name()} train --config {quoted(report.best)}")
