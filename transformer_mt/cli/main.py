"""`tmt`: the commands, and how whatever goes wrong reaches the user.

Imports nothing but typer at the top: `tmt --help` must answer at once.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from transformer_mt import __version__

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"tmt {__version__}")
        raise typer.Exit


@app.callback()
def tmt(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train a Transformer on your own sentences, from a YAML file, and translate with it."""


def _add_commands() -> None:
    from importlib import import_module

    for name in COMMANDS:
        app.command(name)(getattr(import_module(f"transformer_mt.cli.{name}"), name))


COMMANDS = ("init", "download", "prepare", "train", "translate", "evaluate", "inspect", "average", "plot", "export")


def run() -> None:
    """The console script: run a command and turn what goes wrong into one message and an exit code."""
    _add_commands()
    sys.exit(_run(typer.main.get_command(app)))


def _run(command: typer.core.TyperGroup | object) -> int:
    import click

    from transformer_mt.errors import INTERRUPTED, USER_FAULT, TmtError, from_os_error

    try:
        code = command(standalone_mode=False)  # type: ignore[operator]
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except TmtError as error:
        return _tell(str(error), error.exit_code)
    except click.exceptions.Abort:
        return _tell("interrupted", INTERRUPTED)
    except click.ClickException as error:
        error.show()
        return USER_FAULT
    except KeyboardInterrupt:
        return _tell("interrupted", INTERRUPTED)
    except BrokenPipeError:
        return _leave_quietly()
    except OSError as error:
        return _tell(str(from_os_error(error, "running this command")), USER_FAULT)


def _tell(message: str, code: int) -> int:
    print(f"tmt: {message}", file=sys.stderr)
    return code


def _leave_quietly() -> int:
    """Whoever read our output has gone (`| head`); say nothing, and keep Python from trying to flush."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    run()
