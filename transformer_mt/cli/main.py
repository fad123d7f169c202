"""`tmt`: the commands, and how whatever goes wrong reaches the user.

Imports nothing but typer at the top: `tmt --help` must answer at once.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer

from transformer_mt import __version__
from transformer_mt.cli.streams import forgive_stderr, open_closed_streams, settle
from transformer_mt.errors import INTERRUPTED, USER_FAULT, TmtError, from_os_error

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_UsageError: Any = typer.BadParameter.__base__  # what typer raises for every mistake in the arguments


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


COMMANDS = ("init", "download", "prepare", "train", "translate", "evaluate", "inspect", "average", "plot", "export")


def run() -> None:
    """The console script: run a command and turn what goes wrong into one message and an exit code."""
    # Idle threads shall sleep, not spin: on a machine that is busy with other things spinning ones stop all progress.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    signal.signal(signal.SIGTERM, _interrupt)
    arguments = sys.argv[1:]
    open_closed_streams()
    forgive_stderr()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot write Hangul shows ?, as stderr does
    _add_commands(arguments)
    code = _run(arguments)
    settle(sys.stdout)
    settle(sys.stderr)
    sys.exit(code)


def _interrupt(kind: int, frame: object) -> None:
    """SIGTERM ends a command as Ctrl-C does: files aside are removed, the exit code is 130."""
    raise KeyboardInterrupt


def _add_commands(arguments: list[str]) -> None:
    """The command that is asked for; or all by name, with a sentence each and no options, where help lists them."""
    first = arguments[0] if arguments else ""
    if first in COMMANDS:
        app.command(first)(_command(first))
    elif first != "--version":
        for name in COMMANDS:
            app.command(name, short_help=(_command(name).__doc__ or "").split("\n")[0])(_listed)


def _command(name: str) -> Callable[..., None]:
    command: Callable[..., None] = getattr(import_module(f"transformer_mt.cli.{name}"), name)
    return command


def _listed() -> None:
    """Stands for a command in a list of them: to look at every option of every command takes longer than the rest."""


def _run(arguments: list[str]) -> int:
    try:
        code = _invoke(arguments)
        sys.stdout.flush()
        return code
    except TmtError as error:
        return _tell(str(error), error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        return _tell("interrupted", INTERRUPTED)
    except _UsageError as error:
        error.show()
        if remedy := _remedy(error.format_message(), arguments):
            print(f"  {remedy}", file=sys.stderr)
        return USER_FAULT
    except BrokenPipeError:  # whoever read our output has gone (`| head`)
        return 0
    except OSError as error:
        return _tell(str(from_os_error(error, "running this command")), USER_FAULT)


def _remedy(message: str, arguments: list[str]) -> str:
    """What the command line library's own message leaves open: words too many, and no config."""
    if "Missing option '--config'" in message:
        return f"Name the config with --config:  tmt {arguments[0]} --config my.yaml"
    if "unexpected extra argument" in message and "=" in message.rpartition("(")[2]:
        return "Give --set before each KEY=VALUE:  --set training.max_epochs=5 --set seed=2"
    return ""


def _invoke(arguments: list[str]) -> int:
    command = typer.main.get_command(app)
    try:
        with command.make_context("tmt", arguments) as context:  # not command.main(): it exits 1 on a broken pipe
            command.invoke(context)
    except typer.Exit as leave:
        return leave.exit_code
    return 0


def _tell(message: str, code: int) -> int:
    print(f"tmt: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    run()
