"""`tmt compare`: runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from transformer_mt.cli.completion import runs as known_runs
from transformer_mt.cli.options import JsonOption, print_json
from transformer_mt.errors import TmtError
from transformer_mt.evaluation.metrics import METRICS

_TEST_SETS = "Show the scores of this test set; repeat it for several. Default: all."
_METRICS = f"Show this metric: {', '.join(METRICS)}; repeat it for several. Default: the first that a run has."
_FORMAT = "Form of the tables; latex needs the package booktabs."
_RUNS = "Folders of runs, such as runs/NAME. Default: all in runs/."


def compare(
    runs: Annotated[list[Path] | None, typer.Argument(metavar="RUN", help=_RUNS, autocompletion=known_runs)] = None,
    test_set: Annotated[list[str] | None, typer.Option("--test-set", metavar="NAME", help=_TEST_SETS)] = None,
    metric: Annotated[list[str] | None, typer.Option("--metric", metavar="NAME", help=_METRICS)] = None,
    form: Annotated[Literal["text", "markdown", "latex"], typer.Option("--format", help=_FORMAT)] = "text",
    json: JsonOption = False,
) -> None:
    """Compare runs: settings that differ, validations, test scores, means over seeds."""
    from transformer_mt import compare_runs

    if json and (test_set or metric or form != "text"):
        raise TmtError("--json has all scores", remedy="Leave --test-set, --metric and --format away.")
    report = compare_runs(runs or ())
    if json:
        print_json(report.to_json())
    else:
        print("\n".join(report.written(form, test_set or (), metric or ())))
