"""`tmt init NAME`: a commented config to start from, copied as it is shipped; `tmt init --schema` for editors."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from transformer_mt.cli.options import print_json

FIRST = ("quickstart", "multi30k-de-en", "multi30k-en-de", "aihub-ko-en", "files")


def init(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help=f"{', '.join(FIRST)}, or classics/NAME.", show_default=False)
    ] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write, - for stdout; default: ./NAME.yaml.")
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Write the JSON schema of all keys, by which an editor completes them.")
    ] = False,
) -> None:
    """Write a commented config to start from."""
    from transformer_mt.workflows import configs

    if schema:
        _write_schema(output)
        return
    text = configs.shipped_config(name, FIRST)
    if output == Path("-"):
        sys.stdout.write(text)
        return
    file = output or Path(f"{name.removesuffix('.yaml').rsplit('/', 1)[-1]}.yaml")
    configs.write_config(file, text)
    print(f"Wrote {file}. Adapt it, then:  tmt train --config {file}", file=sys.stderr)


def _write_schema(output: Path | None) -> None:
    from transformer_mt.config.reference import json_schema
    from transformer_mt.workflows.configs import write_config

    if output is None or output == Path("-"):
        print_json(json_schema())
        return
    write_config(output, json.dumps(json_schema(), ensure_ascii=False, indent=1) + "\n")
    told = f"Wrote {output}. A config that begins with this line is completed by editors with YAML support:"
    print(f"{told}\n# yaml-language-server: $schema={output}", file=sys.stderr)
