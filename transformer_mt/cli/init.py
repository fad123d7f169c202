"""`tmt init NAME` writes a commented config to start from; `tmt init --schema` a JSON schema for editors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from transformer_mt.cli.completion import configs as configs_to_copy
from transformer_mt.cli.options import print_json
from transformer_mt.errors import TmtError
from transformer_mt.reporting.program import program_name, quoted

FIRST = ("quickstart", "multi30k-de-en", "multi30k-en-de", "aihub-ko-en", "files")


def init(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help=f"{', '.join(FIRST)}, or classics/NAME.",
            show_default=False,
            autocompletion=configs_to_copy,
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="File to write; - for stdout. Default: NAME.yaml."),
    ] = None,
    schema: Annotated[
        bool,
        typer.Option("--schema", help="Also write a JSON schema for editors; without NAME: only the schema."),
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
            f"Wrote {file}. Editors use it for configs with this first line:\n{configs.header(file)}",
            end="",
            file=sys.stderr,
        )
        return
    if not name:
        names = "\n    ".join(configs.described(FIRST))
        raise TmtError("give the name of a config", remedy=f"For example:  tmt init {FIRST[0]}\n\n    {names}")
    text = configs.shipped_config(name, FIRST)
    if output is not None and not to_stdout:  # the commands in its comments
        text = text.replace(f"--config {name.removesuffix('.yaml')}.yaml ", f"--config {output} ")
    if to_stdout:
        if schema:
            remedy = "Remove one of the two options."
            raise TmtError("--schema writes a file next to the config, but -o - writes no file", remedy=remedy)
        sys.stdout.write(text)
        return
    file = output or Path(f"{name.removesuffix('.yaml').rsplit('/', 1)[-1]}.yaml")
    if schema:
        configs.require_new(file)
        configs.write_schema(file.parent / configs.SCHEMA)
        text = configs.header(Path(configs.SCHEMA)) + text
    configs.write_config(file, text)
    print(f"Wrote {file}. Edit it, then:  {program_name()} train --config {quoted(file)}", file=sys.stderr)
