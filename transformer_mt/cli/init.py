"""`tmt init NAME`: a commented config to start from, copied as it is shipped; `tmt init --schema` for editors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from transformer_mt.cli.options import print_json
from transformer_mt.errors import TmtError

FIRST = ("quickstart", "multi30k-de-en", "multi30k-en-de", "aihub-ko-en", "files")


def init(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help=f"{', '.join(FIRST)}, or classics/NAME.", show_default=False)
    ] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write, - for stdout; default: ./NAME.yaml.")
    ] = None,
    schema: Annotated[
        bool,
        typer.Option("--schema", help="Write the JSON schema too (alone without NAME): editors complete keys by it."),
    ] = False,
) -> None:
    """Write a commented config to start from."""
    from transformer_mt.config.reference import json_schema
    from transformer_mt.workflows import configs

    to_stdout = output == Path("-")
    if not name and schema:
        if to_stdout:
            print_json(json_schema())
            return
        file = output or Path(configs.SCHEMA)
        configs.write_schema(file)
        print(
            f"Wrote {file}. Editors complete a config that begins with\n{configs.header(file)}", end="", file=sys.stderr
        )
        return
    if not name:
        raise TmtError(
            "no config is named", remedy=f"For example:  tmt init {FIRST[0]}   There are: {', '.join(FIRST)}."
        )
    text = configs.shipped_config(name, FIRST)
    if to_stdout:
        if schema:
            remedy = "Leave one of the two out."
            raise TmtError("--schema writes a file beside the config, and -o - writes none", remedy=remedy)
        sys.stdout.write(text)
        return
    file = output or Path(f"{name.removesuffix('.yaml').rsplit('/', 1)[-1]}.yaml")
    if schema:
        configs.require_new(file)
        configs.write_schema(file.parent / configs.SCHEMA)
        text = configs.header(Path(configs.SCHEMA)) + text
    configs.write_config(file, text)
    print(f"Wrote {file}. Adapt it, then:  tmt train --config {file}", file=sys.stderr)
