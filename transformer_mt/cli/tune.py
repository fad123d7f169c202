"""`tmt tune`: search for better hyper-parameters within some minutes. The same command resumes it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transformer_mt.cli.completion import config_files, runs
from transformer_mt.cli.options import ConfigOption, JsonOption, SetOption, print_json
from transformer_mt.reporting.program import program_name, quoted


def tune(
    config: ConfigOption,
    space: Annotated[
        Path,
        typer.Option(
            "--space",
            metavar="FILE",
            help="YAML file with the keys to search and their values.",
            show_default=False,
            autocompletion=config_files,
        ),
    ],
    minutes: Annotated[
        float, typer.Option("--minutes", metavar="M", help="Time for the search, over all starts.", show_default=False)
    ],
    trials: Annotated[
        int | None,
        typer.Option("--trials", min=1, metavar="N", help="End after N trials. Default: when the time is over."),
    ] = None,
    set_: SetOption = None,
    run_dir: Annotated[
        Path | None,
        typer.Option(
            "--run-dir",
            metavar="DIR",
            help="Folder of the search. Default: runs/NAME-tune.",
            show_default=False,
            autocompletion=runs,
        ),
    ] = None,
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
