"""`tmt init NAME` writes a commented config to start from, `tmt init files --data FILE` one for the user's own data.

`tmt init --schema` writes a JSON schema for editors.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from transformer_mt.cli.completion import configs as configs_to_copy
from transformer_mt.cli.options import STDOUT, print_json
from transformer_mt.errors import TmtError, visible
from transformer_mt.reporting.program import program_name, quoted

FIRST = ("quickstart", "multi30k-de-en", "multi30k-en-de", "aihub-ko-en", "files")

_NAME = f"{', '.join(FIRST)}, or another; without NAME: a list of all."
_OUTPUT = "File to write; - for stdout. Default: NAME.yaml."
_DATA = "files: look at this file or folder of sentence pairs, and write a config for it; repeat it for more."
_SCHEMA = "Also write a JSON schema for editors; without NAME: only the schema."


def init(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help=_NAME, show_default=False, autocompletion=configs_to_copy)
    ] = "",
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help=_OUTPUT)] = None,
    data: Annotated[list[Path] | None, typer.Option("--data", metavar="FILE", help=_DATA)] = None,
    source: Annotated[str, typer.Option("--source", metavar="CODE", help="--data: language to translate from.")] = "",
    target: Annotated[str, typer.Option("--target", metavar="CODE", help="--data: language to translate into.")] = "",
    minutes: Annotated[
        float | None, typer.Option("--minutes", min=0.1, help="--data: time for the training.", show_default=False)
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help=_SCHEMA)] = False,
) -> None:
    """Write a commented config to start from."""
    if data and name not in ("", "files"):
        remedy = f"Type:  tmt init files --data FILE{' --data FILE' * Path(name).exists()}"
        raise TmtError(f"needs the config `files`, not `{name}`", place="--data", remedy=remedy)
    if not data and (source or target or minutes):
        raise TmtError("this option needs --data", remedy="Type:  tmt init files --data FILE --source de --target en")
    if not name and not data and schema:
        _write_schema(output)
    elif data:
        file = output or Path("files.yaml")
        _write(file, schema, lambda: _proposed(data, source, target, minutes, file))
    else:
        file = output or Path(f"{name.removesuffix('.yaml').rsplit('/', 1)[-1]}.yaml")
        _write(file, schema, lambda: _shipped(name, file))


def _write_schema(output: Path | None) -> None:
    from transformer_mt.config.reference import json_schema
    from transformer_mt.workflows import configs

    if output == STDOUT:
        print_json(json_schema())
        return
    file = output or Path(configs.SCHEMA)
    configs.write_schema(file)
    first = f"Editors use it for configs with this first line:\n{configs.header(file)}"
    print(f"Wrote {file}. {first}", end="", file=sys.stderr)


def _write(file: Path, schema: bool, text_of: Callable[[], str]) -> None:
    """Write a config, if there is no such file yet, or print it."""
    from transformer_mt.workflows import configs

    if file == STDOUT:
        if schema:
            remedy = "Remove one of the two options."
            raise TmtError("--schema writes a file next to the config, but -o - writes no file", remedy=remedy)
        sys.stdout.write(text_of())
        return
    text = text_of() if not file.exists() else ""
    configs.require_new(file)
    if schema:
        configs.write_schema(file.parent / configs.SCHEMA)
        text = configs.header(Path(configs.SCHEMA)) + text
    configs.write_config(file, text)
    print(f"Wrote {file}. Check it, then:  {program_name()} train --config {quoted(file)}", file=sys.stderr)


def _shipped(name: str, output: Path) -> str:
    """The text of a shipped config; the commands in its comments name the file that is written."""
    from transformer_mt.workflows import configs

    if not name:
        names = "\n    ".join(configs.described(FIRST))
        raise TmtError("give the name of a config", remedy=f"For example:  tmt init {FIRST[0]}\n\n    {names}")
    text = configs.shipped_config(name, FIRST)
    if output == STDOUT:
        return text
    own = rf"--config (?:configs/)?{re.escape(name.removesuffix('.yaml'))}\.yaml(?=\s)"
    return re.sub(own, lambda _: f"--config {quoted(output)}", text)


def _proposed(data: list[Path], source: str, target: str, minutes: float | None, file: Path) -> str:
    """The text of a config for these files. Prints what was found, and what was chosen."""
    from transformer_mt.workflows.propose import propose_config

    named = "files.yaml" if file == STDOUT else str(file)
    proposal = propose_config(data, source or None, target or None, minutes=minutes, file=named)
    for title, text in proposal.summary:
        print(visible(f"{title:<10} {text}"), file=sys.stderr)
    return proposal.text
