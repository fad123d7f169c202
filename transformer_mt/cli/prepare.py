"""`tmt prepare`: from a corpus to token ids on disk, with a report."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from transformer_mt.cli.options import ConfigOption, JsonOption, SetOption, print_json
from transformer_mt.reporting.program import program_name, quoted
from transformer_mt.reporting.terminal import columns_of

_CLUSTER = "Ray cluster that does the work: auto, local or ray://host:port."


def prepare(
    config: ConfigOption,
    set_: SetOption = None,
    force: Annotated[bool, typer.Option("--force", help="Prepare again even if nothing has changed.")] = False,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help=_CLUSTER)] = None,
    json: JsonOption = False,
) -> None:
    """Clean and split a corpus, learn tokenizers, write token ids; report on the data."""
    from transformer_mt import load_config
    from transformer_mt import prepare as work
    from transformer_mt.workflows.data_report import remarks, report_lines

    prepared = work(load_config(config, set_ or ()), force, cluster)
    report = prepared.report
    if json:
        print_json(
            {
                **prepared.manifest.report,
                "remarks": [remark._asdict() for remark in remarks(report)],
                "files": [file.model_dump() for file in prepared.manifest.files],
                "folder": str(prepared.folder),
                "is_new": prepared.is_new,
            }
        )
        return
    made = f"prepared in {report.seconds:,} s" if prepared.is_new else "up to date; --force prepares again"
    lines = report_lines(report, columns_of(sys.stdout) if sys.stdout.isatty() else None)
    print("\n".join([*lines, "", f"{prepared.folder}: {made}\n{prepared.picture}: lengths of the training sentences"]))
    given = " --set ".join(map(quoted, [config, *(set_ or ())]))
    print(f"next: {program_name()} train --config {given}", file=sys.stderr)
